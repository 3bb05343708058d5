//! Whether noise follows the light: its variance as `a + b x`, fitted over intensities.
//!
//! Blocks are sorted by their mean into bins. In each bin the blocks with least energy at low frequencies hold least of
//! the picture, and their high frequencies are noise, which is independent of what they were chosen by. A line is fitted
//! to the variances of the bins; a bin far above it, where texture was left, counts less.

use super::blocks::{Block, Cosines, SIDE, block, places};
use rayon::prelude::*;

/// Low frequencies choose, high ones measure: the sum of a coefficient's two numbers.
const LOW: std::ops::RangeInclusive<usize> = 1..=4;
/// See [`LOW`].
const HIGH: usize = 9;
/// Coefficients at high frequencies.
const COUNT: usize = 21;
/// Bins at the most and at the least, and the blocks that one has at least.
const BINS: (usize, usize, usize) = (14, 4, 80);
/// The share of a bin that is measured, and the least number of blocks.
const WEAKEST: (f64, usize) = (0.1, 12);
/// Where more values than this share are the least or the largest of all, noise was clipped.
const PILE: f64 = 0.001;
/// Bins count if they are this many standard deviations away from where noise was clipped.
const MARGIN: f64 = 2.0;
/// A bin this share above the line counts less.
const OUTLIER: f64 = 0.25;
/// Rounds of the fit.
const ROUNDS: usize = 12;
/// Noise follows the light if its variance grows by this factor from the dark to the bright part of the picture.
const GROWS: f64 = 1.5;
/// The dark and the bright part begin at these quantiles of the means.
const ENDS: [f64; 2] = [0.05, 0.95];
/// An `a` below this share of the variance in the middle is none.
const NEGLIGIBLE: f64 = 0.4;

/// The variance of noise as a function of the intensity: `a + b x`.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Variance {
    /// At black.
    pub a: f64,
    /// Its slope, never negative; 0 where the noise does not follow the light.
    pub b: f64,
    /// What it was fitted to: intensity and variance of each bin.
    pub points: Vec<[f64; 2]>,
}

impl Variance {
    /// Fits the variance of white noise in a plane, from so many blocks at the most; none if it has too few.
    pub(super) fn fit(plane: &[f32], size: (usize, usize), blocks: usize) -> Option<Self> {
        let cosines = Cosines::new();
        let measure = |&place: &_| Measured::new(&cosines.transform(&block(plane, size.1, place)));
        let mut blocks: Vec<Measured> = places(size, SIDE, blocks).par_iter().map(measure).collect();
        blocks.sort_unstable_by(|a, b| a.mean.total_cmp(&b.mean));
        let bins = BINS.0.min(blocks.len() / BINS.2);
        if bins < BINS.1 {
            return None;
        }
        let ends = ENDS.map(|share| blocks[(share * blocks.len() as f64) as usize].mean);
        let bound = |i: usize| i * blocks.len() / bins;
        let bounds: Vec<_> = (0..bins).map(|i| bound(i)..bound(i + 1)).collect();
        let points: Vec<[f64; 2]> = bounds.into_iter().map(|bin| point(&mut blocks[bin])).collect();
        let points = away_from_limits(points, plane);
        let (a, b) = line(&points);
        let (middle, [low, high]) = (a + 0.5 * b * (ends[0] + ends[1]), ends.map(|x| a + b * x));
        Some(match (high > GROWS * low.max(0.0), a.abs() < NEGLIGIBLE * middle) {
            (false, _) => Self { a: constant(&points), b: 0.0, points },
            (true, true) => Self { a: 0.0, b: slope(&points), points },
            (true, false) => Self { a, b, points },
        })
    }

    /// The variance at the intensity `x`.
    pub fn at(&self, x: f64) -> f64 {
        (self.a + self.b * x).max(0.0)
    }
}

/// A block, as far as noise is concerned.
struct Measured {
    mean: f64,
    /// The energy of its low frequencies.
    texture: f64,
    /// The squares of its coefficients at high frequencies.
    squares: [f32; COUNT],
}

impl Measured {
    fn new(coefficients: &Block) -> Self {
        let (mut texture, mut squares, mut count) = (0.0, [0.0f32; COUNT], 0);
        for (i, row) in coefficients.iter().enumerate() {
            for (j, &v) in row.iter().enumerate() {
                let square = f64::from(v) * f64::from(v);
                if LOW.contains(&(i + j)) {
                    texture += square;
                } else if i + j >= HIGH {
                    squares[count] = square as f32;
                    count += 1;
                }
            }
        }
        Self { mean: f64::from(coefficients[0][0]) / SIDE as f64, texture, squares }
    }
}

/// Intensity and variance of the quiet blocks of a bin.
fn point(bin: &mut [Measured]) -> [f64; 2] {
    bin.sort_unstable_by(|a, b| a.texture.total_cmp(&b.texture));
    let quiet = &bin[..WEAKEST.1.max((WEAKEST.0 * bin.len() as f64) as usize).min(bin.len())];
    let number = quiet.len() as f64;
    let mut sums = [0.0f64; COUNT];
    for block in quiet {
        sums.iter_mut().zip(&block.squares).for_each(|(sum, square)| *sum += f64::from(*square));
    }
    sums.sort_by(f64::total_cmp);
    // The median of a chi-square variable is less than its mean (Wilson and Hilferty 1931).
    let share = (1.0 - 2.0 / (9.0 * number)).powi(3);
    [quiet.iter().map(|block| block.mean).sum::<f64>() / number, sums[COUNT / 2] / (share * number)]
}

/// The points without those near a limit at which many values lie, if enough are left: there noise was clipped, and has
/// less variance. Where few are left, as with few counts, zero is no limit but where the counts begin.
fn away_from_limits(points: Vec<[f64; 2]>, plane: &[f32]) -> Vec<[f64; 2]> {
    let ends =
        plane.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)));
    let piled = |limit: f32| plane.iter().filter(|&&v| v == limit).count() as f64 > PILE * plane.len() as f64;
    let limits = [ends.0, ends.1].map(|limit| piled(limit).then_some(f64::from(limit)));
    let margin = MARGIN * points.iter().map(|[_, variance]| *variance).fold(0.0, f64::max).sqrt();
    let far = |&&[x, _]: &&[f64; 2]| limits.iter().flatten().all(|limit| (x - limit).abs() >= margin);
    let kept: Vec<_> = points.iter().filter(far).copied().collect();
    if kept.len() >= BINS.1 { kept } else { points }
}

/// `a` and `b` of the line through the points.
fn line(points: &[[f64; 2]]) -> (f64, f64) {
    let mut variances: Vec<f64> = points.iter().map(|point| point[1]).collect();
    variances.sort_by(f64::total_cmp);
    let least = 0.05 * variances[variances.len() / 2] + f64::MIN_POSITIVE;
    let (mut a, mut b) = (0.0, 0.0);
    for round in 0..ROUNDS {
        let weighted = points.iter().map(|&[x, variance]| {
            let expected = if round == 0 { variance } else { a + b * x }.max(least);
            let above = if round == 0 { 0.0 } else { (variance - a - b * x) / expected };
            (x, variance, (OUTLIER / above.max(OUTLIER)) / (expected * expected))
        });
        let weighted: Vec<(f64, f64, f64)> = weighted.collect();
        let mean = |f: fn(&(f64, f64, f64)) -> f64| {
            weighted.iter().map(|point| point.2 * f(point)).sum::<f64>()
                / weighted.iter().map(|point| point.2).sum::<f64>()
        };
        let (x, variance) = (mean(|p| p.0), mean(|p| p.1));
        let covariance: f64 = weighted.iter().map(|p| p.2 * (p.0 - x) * (p.1 - variance)).sum();
        let spread: f64 = weighted.iter().map(|p| p.2 * (p.0 - x).powi(2)).sum();
        b = if spread > 0.0 { (covariance / spread).max(0.0) } else { 0.0 };
        a = variance - b * x;
    }
    (a, b)
}

/// The median variance.
fn constant(points: &[[f64; 2]]) -> f64 {
    median(points.iter().map(|point| point[1]))
}

/// The median slope of lines through black.
fn slope(points: &[[f64; 2]]) -> f64 {
    median(points.iter().filter(|point| point[0] > 0.0).map(|point| point[1] / point[0]))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::synthetic::dead_leaves;
    use crate::image::Channels;
    use crate::random::seeded;
    use rand_distr::{Distribution, Normal, Poisson};

    fn fit(noise: impl FnMut(f64) -> f64) -> Variance {
        let clean = dead_leaves(2, 0, 256, 256, Channels::Grey).unwrap();
        let noisy: Vec<f32> =
            clean.data().iter().map(|v| f64::from(*v)).map(noise).map(|v| v as f32).collect();
        Variance::fit(&noisy, (256, 256), 8000).unwrap()
    }

    #[test]
    fn counts_have_their_gain_and_no_constant() {
        let mut rng = seeded(1);
        for peak in [5.0, 20.0, 200.0] {
            let mut count =
                |v: f64| if v > 0.0 { Poisson::new(peak * v).unwrap().sample(&mut rng) } else { 0.0 };
            let found = fit(&mut count);
            assert!((found.b - 1.0).abs() < 0.12 && found.a.abs() < 0.1 * peak, "{peak}: {found:?}");
        }
    }

    #[test]
    fn white_noise_is_constant_even_where_black_clips_it() {
        let mut rng = seeded(2);
        for sigma in [0.02, 0.1, 0.2] {
            let normal = Normal::new(0.0, sigma).unwrap();
            let found = fit(|v| (v + normal.sample(&mut rng)).clamp(0.0, 1.0));
            assert!(found.b == 0.0 && (found.a.sqrt() / sigma - 1.0).abs() < 0.1, "{sigma}: {found:?}");
        }
    }

    #[test]
    fn an_offset_and_read_noise_are_found() {
        let (mut rng, read) = (seeded(3), Normal::new(0.0, 3.0).unwrap());
        let found = fit(|v| {
            2.0 * Poisson::new(100.0 * v + 1e-3).unwrap().sample(&mut rng) + 50.0 + read.sample(&mut rng)
        });
        // The variance is 2 (x - 50) + 9.
        assert!((found.b - 2.0).abs() < 0.5 && (found.at(150.0) - 209.0).abs() < 25.0, "{found:?}");
    }
}
