//! The noise of a picture: of which kind, how strong, at which intensities.

use super::{Variance, learned::levels, quiet::spectrum, white_level};
use crate::{image::Image, named::named};
use rayon::prelude::*;

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
    /// The variance in each channel, at high frequencies, as a function of the intensity; empty for a tiny picture.
    pub variances: Vec<Variance>,
    /// The level at high frequencies as a share of that at middle ones: about 1 for white noise, much less for noise that
    /// was smoothed or compressed.
    pub whiteness: f64,
    /// The level in quiet places of each channel by frequency, from the lowest to the highest; white noise has the same at
    /// all of them.
    pub spectrum: Vec<Vec<f64>>,
}

/// Blocks that the variance of a channel is fitted to, at the most; half as many in colour.
const BLOCKS: usize = 8000;
/// Noise with a smaller [whiteness](NoiseModel::whiteness) is that of a camera.
const WHITE: f64 = 0.45;
/// Noise of a camera that is weaker than this share of white is not told from texture.
const VISIBLE: f64 = 1.2 / 255.0;
/// An estimate from high frequencies that exceeds the learned one by this factor saw texture.
const TEXTURE: f64 = 1.8;
/// The ranges of photographs, whose texture often rises with the intensity; pictures on another scale are rather counts.
const PHOTOGRAPH: std::ops::Range<f64> = 0.2..1.6;
/// Counts on the scale of photographs have no read noise to be told from texture, and at most this many times the learned
/// level; on another scale the second one.
const PHOTONS: f64 = 1.25;
const COUNTS: f64 = 3.0;
/// Noise of counts is at most this many times the learned level.
const SEEN: f64 = 1.5;

impl NoiseModel {
    /// The noise of a picture in which black and white are `range` apart.
    pub fn estimate(image: &Image, range: f64) -> Self {
        Self::of_kind(image, range, None)
    }

    /// The noise of a picture, if it is of this kind.
    pub fn of_kind(image: &Image, range: f64, kind: Option<NoiseKind>) -> Self {
        let size = (image.height(), image.width());
        let fit = || -> Vec<Variance> {
            let planes = image.data().par_chunks_exact(image.pixels());
            planes.filter_map(|plane| Variance::fit(plane, size, BLOCKS / image.channels().min(2))).collect()
        };
        let ((high, learned), (variances, spectrum)) = rayon::join(
            || rayon::join(|| white_level(image), || Self::levels(image, range)),
            || rayon::join(fit, || spectrum(image)),
        );
        let levels = learned.unwrap_or_else(|| vec![high; image.channels()]);
        let middle = root_mean_square(&levels);
        let mean = image.data().iter().map(|v| f64::from(*v)).sum::<f64>() / image.data().len() as f64;
        let counts = counts(&variances, image.channels());
        // Of counts, quiet blocks are dark ones, and have less noise than others.
        let at_mean = |counts: &Vec<Variance>| root_mean_square(&levels_at(counts, mean));
        let whiteness =
            if middle > 0.0 { high.max(counts.as_ref().map_or(0.0, at_mean)) / middle } else { 1.0 };
        let kind = kind.unwrap_or_else(|| {
            let plausible = |counts: &&Vec<Variance>| {
                if PHOTOGRAPH.contains(&range) {
                    at_mean(counts) < PHOTONS * middle && counts.iter().all(|variance| variance.a == 0.0)
                } else {
                    at_mean(counts) < COUNTS * middle
                }
            };
            match counts.as_ref().filter(plausible) {
                _ if whiteness < WHITE && middle > VISIBLE * range => NoiseKind::Camera,
                None => NoiseKind::Gaussian,
                Some(counts) if counts.iter().all(|variance| variance.a == 0.0) => NoiseKind::Poisson,
                Some(_) => NoiseKind::PoissonGaussian,
            }
        });
        let mut found = Self { kind, sigma: middle, levels, variances, whiteness, spectrum };
        match kind {
            NoiseKind::Camera => {}
            NoiseKind::Gaussian => {
                found.sigma = if high > TEXTURE * middle { middle } else { high };
                found.levels.fill(found.sigma);
            }
            NoiseKind::Poisson | NoiseKind::PoissonGaussian => {
                // Where the variance does not show how it rises, all of it is that of counts.
                let b = if high > 0.0 { high * high / mean.abs().max(range / 256.0) } else { 0.0 };
                let alone = || vec![Variance { a: 0.0, b, points: Vec::new() }; image.channels()];
                found.variances = counts.unwrap_or_else(alone);
                // Texture only adds to what the fit sees.
                let texture = (at_mean(&found.variances) / (SEEN * middle)).powi(2);
                if texture > 1.0 && texture.is_finite() {
                    found.variances.iter_mut().for_each(|v| (v.a, v.b) = (v.a / texture, v.b / texture));
                }
                found.levels = levels_at(&found.variances, mean);
                found.sigma = root_mean_square(&found.levels);
            }
        }
        found
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

fn levels_at(variances: &[Variance], intensity: f64) -> Vec<f64> {
    variances.iter().map(|variance| variance.at(intensity).sqrt()).collect()
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
