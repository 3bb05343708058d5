//! Peak signal-to-noise ratio.

use super::check_same_shape;
use crate::{Result, image::Image};
use rayon::prelude::*;

/// What counts as white.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peak {
    /// A fixed value; 1 is the convention of this library and of most papers.
    Value(f64),
    /// The largest value of the clean image, as in the paper's tables.
    CleanMaximum,
}

impl Peak {
    /// White is 1.
    pub const ONE: Self = Self::Value(1.0);

    /// The value for this clean image; refuses what is not positive and finite.
    pub fn of(self, clean: &Image) -> Result<f64> {
        let peak = match self {
            Self::Value(value) => value,
            Self::CleanMaximum => f64::from(clean.data().iter().copied().fold(f32::NEG_INFINITY, f32::max)),
        };
        if peak.is_finite() && peak > 0.0 {
            Ok(peak)
        } else {
            Err(invalid!("the peak of a score is {peak}; it must be positive"))
        }
    }
}

/// Values summed by one task: fixed, so that the result does not depend on the number of threads.
const CHUNK: usize = 1 << 16;

/// The mean squared error over all pixels and channels.
pub fn mse(clean: &Image, estimate: &Image) -> Result<f64> {
    check_same_shape(clean, estimate)?;
    let sums: Vec<f64> = clean
        .data()
        .par_chunks(CHUNK)
        .zip(estimate.data().par_chunks(CHUNK))
        .map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum())
        .collect();
    Ok(sums.iter().sum::<f64>() / clean.data().len() as f64)
}

/// `10 log10(peak^2 / mse)` in decibels, colour images by the error over all channels; identical images give
/// `+inf`.
///
/// ```
/// use proxlift::{Image, evaluation::{Peak, psnr}};
/// let (clean, grey) = (Image::zeros(1, 8, 8)?, Image::new(1, 8, 8, vec![0.1; 64])?);
/// assert!((psnr(&clean, &grey, Peak::ONE)? - 20.0).abs() < 1e-5);
/// # Ok::<(), proxlift::Error>(())
/// ```
pub fn psnr(clean: &Image, estimate: &Image, peak: Peak) -> Result<f64> {
    let peak = peak.of(clean)?;
    Ok(10.0 * (peak * peak / mse(clean, estimate)?).log10())
}
