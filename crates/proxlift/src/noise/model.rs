//! The noise of a picture: of which kind, how strong, at which intensities.

use super::{Variance, learned::levels, quiet::spectrum, white_level};
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
    /// The level in quiet places of each channel by frequency, from the lowest to the highest; white noise has the same at
    /// all of them.
    pub spectrum: Vec<Vec<f64>>,
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
        let spectrum = spectrum(image);
        let correlated = whiteness < WHITE && middle > VISIBLE * range;
        if kind == Some(NoiseKind::Camera) || kind.is_none() && correlated {
            return Self {
                kind: NoiseKind::Camera,
                sigma: middle,
                levels,
                variances: Vec::new(),
                whiteness,
                spectrum,
            };
        }
        let size = (image.height(), image.width());
        let variances: Vec<Variance> = image
            .data()
            .chunks_exact(image.pixels())
            .filter_map(|plane| Variance::fit(plane, size))
            .collect();
        let middling = image.data().iter().map(|v| f64::from(*v)).sum::<f64>() / image.data().len() as f64;
        let at_middling = |variances: &[Variance]| -> Vec<f64> {
            variances.iter().map(|variance| variance.at(middling).sqrt()).collect()
        };
        let counts = counts(&variances, image.channels());
        let plausible = |counts: &Vec<Variance>| root_mean_square(&at_middling(counts)) < TEXTURE * middle;
        let kind = kind.unwrap_or(match counts.as_ref().filter(|counts| plausible(counts)) {
            None => NoiseKind::Gaussian,
            Some(counts) if counts.iter().all(|variance| variance.a == 0.0) => NoiseKind::Poisson,
            Some(_) => NoiseKind::PoissonGaussian,
        });
        if kind == NoiseKind::Gaussian {
            let sigma = if high > TEXTURE * middle { middle } else { high };
            let levels = vec![sigma; image.channels()];
            return Self { kind, sigma, levels, variances, whiteness, spectrum };
        }
        // Where the variance does not show how it rises, all of it is that of counts.
        let b = high * high / middling.abs().max(range / 256.0);
        let alone = Variance { a: 0.0, b, points: Vec::new() };
        let mut variances = counts.unwrap_or_else(|| vec![alone; image.channels()]);
        // Texture only adds to what the fit sees.
        let texture = (root_mean_square(&at_middling(&variances)) / middle).max(1.0).powi(2);
        if texture.is_finite() && texture < TEXTURE * TEXTURE {
            for variance in &mut variances {
                (variance.a, variance.b) = (variance.a / texture, variance.b / texture);
            }
        }
        let levels = at_middling(&variances);
        Self { kind, sigma: root_mean_square(&levels), levels, variances, whiteness, spectrum }
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

/// The variances of all channels, if most of them rise with the intensity; the others are taken for the mean of those.
fn counts(variances: &[Variance], channels: usize) -> Option<Vec<Variance>> {
    let rising: Vec<&Variance> = variances.iter().filter(|variance| variance.b > 0.0).collect();
    if 2 * rising.len() <= channels || variances.len() < channels {
        return None;
    }
    let mean = |f: fn(&Variance) -> f64| rising.iter().map(|v| f(v)).sum::<f64>() / rising.len() as f64;
    let common = Variance { a: mean(|v| v.a), b: mean(|v| v.b), points: Vec::new() };
    let of = |v: &Variance| {
        if v.b > 0.0 { v.clone() } else { Variance { points: v.points.clone(), ..common.clone() } }
    };
    Some(variances.iter().map(of).collect())
}

pub(crate) fn root_mean_square(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64).sqrt()
}
