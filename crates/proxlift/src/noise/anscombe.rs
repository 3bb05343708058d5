//! Counts made as noisy everywhere: the generalised Anscombe transform and its exact unbiased inverse.
//!
//! The model is `z = gain p + offset + n`, where `p` is Poisson of mean `(x - offset) / gain` and `n` Gaussian of
//! standard deviation `read_noise`: the variance is `gain (x - offset) + read_noise^2`. The transform
//! `f(z) = 2 sqrt(y + 3/8 + s^2)`, with `y = (z - offset) / gain` and `s = read_noise / gain`, has variance about 1.
//!
//! What is left when the noise is gone is an estimate of `E f(z)`, which is not `f(E z)`. So the inverse is that of the
//! map from the mean to `E f(z)`: tabulated for few counts, a series for many. M. Mäkitalo, A. Foi, "Optimal inversion of
//! the generalized Anscombe transformation for Poisson-Gaussian noise", IEEE Transactions on Image Processing 22, 2013.

use crate::{Error, Result};

/// Means up to this many counts are tabulated.
const TABULATED: f64 = 60.0;
/// Means in the table, evenly spaced in their square roots.
const ENTRIES: usize = 400;
/// Points of the quadrature over read noise, and how many standard deviations it reaches.
const POINTS: (usize, f64) = (41, 6.0);

/// The generalised Anscombe transform for a gain, an offset and a read noise.
///
/// ```
/// use proxlift::noise::Anscombe;
/// let counts = Anscombe::new(1.0, 0.0, 0.0)?;
/// // The mean of the transform at 10 counts, computed by hand, goes back to 10.
/// let poisson = |k: i32| (1..=k).fold((-10.0f64).exp(), |p, i| p * 10.0 / f64::from(i));
/// let mean: f64 = (0..80).map(|k| poisson(k) * counts.forward(f64::from(k))).sum();
/// assert!((counts.inverse(mean) - 10.0).abs() < 1e-3);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Anscombe {
    gain: f64,
    offset: f64,
    read_noise: f64,
    /// `s^2`.
    variance: f64,
    /// `E f` at the means of the table.
    means: Vec<f64>,
}

impl Anscombe {
    /// The transform for noise of variance `gain (x - offset) + read_noise^2`.
    ///
    /// # Errors
    /// When the gain is not above zero, the read noise is negative, or a number is not finite.
    pub fn new(gain: f64, offset: f64, read_noise: f64) -> Result<Self> {
        let s = read_noise / gain;
        if !(gain > 0.0 && gain.is_finite() && offset.is_finite() && s >= 0.0 && s.is_finite()) {
            return Err(Error::invalid(format!(
                "the gain must be above zero and the read noise not negative, but they are {gain} and {read_noise}"
            )));
        }
        let mut transform = Self { gain, offset, read_noise, variance: s * s, means: Vec::new() };
        transform.means = (0..ENTRIES).map(|i| transform.mean(count(i as f64))).collect();
        Ok(transform)
    }

    /// Its gain, offset and read noise.
    pub fn numbers(&self) -> [f64; 3] {
        [self.gain, self.offset, self.read_noise]
    }

    /// The transform for the variance `a + b x`. The offset is 0, or if `a` is negative what makes the variance 0 there.
    ///
    /// # Errors
    /// When `b` is not above zero.
    pub fn of_variance(a: f64, b: f64) -> Result<Self> {
        Self::new(b, if a < 0.0 { -a / b } else { 0.0 }, a.max(0.0).sqrt())
    }

    /// What a noisy value becomes: its noise has a variance of about 1.
    pub fn forward(&self, z: f64) -> f64 {
        self.of_counts((z - self.offset) / self.gain)
    }

    /// What noisy versions of a clean value become on average: [`inverse`](Self::inverse) goes back.
    pub fn expected(&self, x: f64) -> f64 {
        let counts = ((x - self.offset) / self.gain).max(0.0);
        if counts >= TABULATED {
            let variance = counts + 0.375 + self.variance;
            return 2.0 * variance.sqrt() - (counts + self.variance) / (4.0 * variance.powf(1.5));
        }
        let last = self.means.len() - 1;
        let place = (counts / TABULATED).sqrt() * last as f64;
        let i = (place as usize).min(last - 1);
        self.means[i] + (place - i as f64) * (self.means[i + 1] - self.means[i])
    }

    /// The value whose noisy versions become `d` on average.
    pub fn inverse(&self, d: f64) -> f64 {
        let last = self.means.len() - 1;
        let counts = if d >= self.means[last] {
            self.series(d)
        } else {
            let i = self.means.partition_point(|&mean| mean <= d).clamp(1, last);
            let (low, high) = (self.means[i - 1], self.means[i]);
            count((i - 1) as f64 + ((d - low) / (high - low)).max(0.0))
        };
        self.offset + self.gain * counts
    }

    fn of_counts(&self, y: f64) -> f64 {
        2.0 * (y + 0.375 + self.variance).max(0.0).sqrt()
    }

    /// `E f` at a mean of so many counts.
    fn mean(&self, counts: f64) -> f64 {
        let most = (counts + 12.0 * counts.sqrt() + 12.0) as usize;
        let mut share = (-counts).exp();
        let mut sum = 0.0;
        for k in 0..=most {
            sum += share * self.over_read_noise(k as f64);
            share *= counts / (k + 1) as f64;
        }
        sum
    }

    /// The mean of `f` over the read noise at `k` counts.
    fn over_read_noise(&self, k: f64) -> f64 {
        if self.variance == 0.0 {
            return self.of_counts(k);
        }
        let (points, reach) = POINTS;
        let s = self.variance.sqrt();
        let (sum, total) = (0..points).fold((0.0, 0.0), |(sum, total), i| {
            let t = reach * (2.0 * i as f64 / (points - 1) as f64 - 1.0);
            let weight = (-0.5 * t * t).exp();
            (sum + weight * self.of_counts(k + s * t), total + weight)
        });
        sum / total
    }

    /// The inverse for many counts (Mäkitalo and Foi), in counts.
    fn series(&self, d: f64) -> f64 {
        let root = 1.5f64.sqrt();
        d * d / 4.0 + root / (4.0 * d) - 11.0 / (8.0 * d * d) + 5.0 * root / (8.0 * d.powi(3))
            - 0.125
            - self.variance
    }
}

/// The mean at a place of the table.
fn count(i: f64) -> f64 {
    TABULATED * (i / (ENTRIES - 1) as f64).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::seeded;
    use rand_distr::{Distribution, Normal, Poisson};

    #[test]
    fn noise_has_the_same_variance_everywhere_and_means_come_back() {
        let mut rng = seeded(3);
        for (gain, offset, read) in [(1.0, 0.0, 0.0), (0.02, 0.1, 0.05), (3.0, -20.0, 1.5)] {
            let transform = Anscombe::new(gain, offset, read).unwrap();
            for counts in [6.0, 25.0, 59.0, 61.0, 400.0] {
                let (poisson, normal) = (Poisson::new(counts).unwrap(), Normal::new(0.0, read).unwrap());
                let mut draw = || gain * poisson.sample(&mut rng) + offset + normal.sample(&mut rng);
                let values: Vec<f64> = (0..40_000).map(|_| transform.forward(draw())).collect();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
                assert!((variance - 1.0).abs() < 0.06, "{gain} {counts}: variance {variance}");
                let (x, back) = (gain * counts + offset, transform.inverse(mean));
                let error = gain * (counts + (read / gain).powi(2)).sqrt() / 200.0;
                assert!((back - x).abs() < 4.0 * error, "{gain} {counts}: {x} comes back as {back}");
            }
        }
    }

    #[test]
    fn few_counts_come_back_where_the_plain_inverse_is_far_off() {
        let transform = Anscombe::new(1.0, 0.0, 0.0).unwrap();
        for counts in [0.0, 0.1, 0.5, 1.0, 2.0, 5.0] {
            let mean = transform.mean(counts);
            assert!((transform.inverse(mean) - counts).abs() < 1e-3);
            let plain = (mean / 2.0).powi(2) - 0.375;
            assert!(
                counts == 0.0 || (plain - counts).abs() > 0.02,
                "the plain inverse of {counts} is {plain}"
            );
        }
        assert_eq!(transform.inverse(-1.0), 0.0);
    }

    #[test]
    fn table_and_series_meet() {
        for read in [0.0, 0.5, 3.0] {
            let transform = Anscombe::new(1.0, 0.0, read).unwrap();
            let last = transform.means[ENTRIES - 1];
            assert!((transform.series(last) - TABULATED).abs() < 0.02, "{}", transform.series(last));
        }
    }

    #[test]
    fn the_variance_of_an_offset_is_found_again() {
        let transform = Anscombe::of_variance(-0.5, 2.0).unwrap();
        assert_eq!((transform.offset, transform.variance), (0.25, 0.0));
        let transform = Anscombe::of_variance(9.0, 2.0).unwrap();
        assert_eq!((transform.offset, transform.variance), (0.0, 2.25));
        assert!(Anscombe::new(0.0, 0.0, 1.0).is_err() && Anscombe::new(1.0, 0.0, f64::NAN).is_err());
    }
}
