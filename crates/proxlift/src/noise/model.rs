//! The noise of a picture: of which kind, how strong, at which intensities.

use super::{Variance, learned::levels, white_level};
use crate::{image::Image, named::named};

named! {
    /// A kind of noise.
    pub enum NoiseKind ("noise") {
        /// White and Gaussian, the same everywhere.
        Gaussian = "gaussian",
        /// Counts, of photons say: the variance is proportional to the intensity.
        Poisson = "poisson",
        /// Counts with read noise: the variance rises with the intensity, from that of the read noise.
        PoissonGaussian = "poisson-gaussian",
        /// Correlated from pixel to pixel, as a camera leaves it that interpolates colours, smooths and compresses.
        Camera = "camera",
    }
}

/// The noise of a picture, on the picture's own scale.
///
/// ```
/// use proxlift::dataset::synthetic::dead_leaves;
/// use proxlift::image::{Channels, noise::add_gaussian};
/// use proxlift::noise::{NoiseKind, NoiseModel};
/// let noisy = add_gaussian(&dead_leaves(1, 0, 128, 128, Channels::Grey)?, 0.1, 1, 0)?;
/// let noise = NoiseModel::estimate(&noisy, 1.0);
/// assert!(noise.kind == NoiseKind::Gaussian && (noise.sigma - 0.1).abs() < 0.01);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct NoiseModel {
    /// Its kind.
    pub kind: NoiseKind,
    /// Its level: the standard deviation of white noise; for counts that at a middling intensity; for a camera that of
    /// white noise as strong at middle frequencies.
    pub sigma: f64,
    /// The same for each channel.
    pub levels: Vec<f64>,
    /// The variance in each channel as a function of the intensity; empty for noise of a camera.
    pub variances: Vec<Variance>,
    /// The level at high frequencies as a share of that at middle ones: about 1 for white noise, much less for noise that
    /// was smoothed or compressed.
    pub whiteness: f64,
}

/// Noise with a smaller [whiteness](NoiseModel::whiteness) is that of a camera.
const WHITE: f64 = 0.45;
/// Noise of a camera that is weaker than this share of white is not told from texture.
const VISIBLE: f64 = 1.2 / 255.0;
/// An estimate from high frequencies that exceeds the learned one by this factor saw texture.
const TEXTURE: f64 = 1.8;

impl NoiseModel {
    /// The noise of a picture in which black and white are `range` apart.
    pub fn estimate(image: &Image, range: f64) -> Self {
        Self::of_kind(image, range, None)
    }

    /// The noise of a picture, if it is of this kind.
    pub fn of_kind(image: &Image, range: f64, kind: Option<NoiseKind>) -> Self {
        let high = white_level(image);
        let levels = Self::levels(image, range).unwrap_or_else(|| vec![high; image.channels()]);
        let middle = root_mean_square(&levels);
        let whiteness = if middle > 0.0 { high / middle } else { 1.0 };
        let correlated = whiteness < WHITE && middle > VISIBLE * range;
        if kind == Some(NoiseKind::Camera) || kind.is_none() && correlated {
            return Self { kind: NoiseKind::Camera, sigma: middle, levels, variances: Vec::new(), whiteness };
        }
        let size = (image.height(), image.width());
        let variances: Vec<Variance> = image
            .data()
            .chunks_exact(image.pixels())
            .filter_map(|plane| Variance::fit(plane, size))
            .collect();
        let rises = variances.iter().filter(|variance| variance.b > 0.0).count();
        let counted = 2 * rises > image.channels();
        let with_offset = variances.iter().any(|variance| variance.a != 0.0);
        let kind = kind.unwrap_or(match (counted, with_offset) {
            (false, _) => NoiseKind::Gaussian,
            (true, false) => NoiseKind::Poisson,
            (true, true) => NoiseKind::PoissonGaussian,
        });
        if kind == NoiseKind::Gaussian || variances.len() < image.channels() {
            let sigma = if high > TEXTURE * middle { middle } else { high };
            let levels = vec![sigma; image.channels()];
            return Self { kind: NoiseKind::Gaussian, sigma, levels, variances, whiteness };
        }
        let middling = image.data().iter().map(|v| f64::from(*v)).sum::<f64>() / image.data().len() as f64;
        let levels: Vec<f64> = variances.iter().map(|variance| variance.at(middling).sqrt()).collect();
        Self { kind, sigma: root_mean_square(&levels), levels, variances, whiteness }
    }

    /// Whether it rises with the intensity.
    pub fn is_counted(&self) -> bool {
        matches!(self.kind, NoiseKind::Poisson | NoiseKind::PoissonGaussian)
    }

    fn levels(image: &Image, range: f64) -> Option<Vec<f64>> {
        if range == 1.0 {
            return levels(image);
        }
        let mut scaled = image.clone();
        let least = image.data().iter().copied().fold(f32::INFINITY, f32::min);
        scaled.data_mut().iter_mut().for_each(|v| *v = (*v - least) / range as f32);
        Some(levels(&scaled)?.iter().map(|level| range * level).collect())
    }
}

fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64).sqrt()
}
