//! The scores of an estimate, all at once, and of a set of images.

use super::{Peak, psnr, ssim};
use crate::{Result, image::Image};
use rayon::prelude::*;
use std::fmt;

/// The scores of one estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// PSNR at peak 1.
    pub psnr: f64,
    /// SSIM at peak 1.
    pub ssim: f64,
    /// PSNR at the largest value of the clean image, as in the paper's tables; none if that is black.
    pub psnr_own_peak: Option<f64>,
}

impl Score {
    /// The scores of `estimate`.
    ///
    /// ```
    /// # use proxlift::{dataset::synthetic::dead_leaves, evaluation::Score, image::{Channels, noise::add_gaussian}};
    /// let clean = dead_leaves(1, 0, 64, 64, Channels::Grey)?;
    /// let score = Score::of(&clean, &add_gaussian(&clean, 0.1, 1, 0)?)?;
    /// assert!((score.psnr - 20.0).abs() < 0.3 && score.ssim < 1.0);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    /// Fails when the images differ in shape or are too small for SSIM.
    pub fn of(clean: &Image, estimate: &Image) -> Result<Self> {
        let own_peak = Peak::CleanMaximum.of(clean).ok().map(Peak::Value);
        Ok(Self {
            psnr: psnr(clean, estimate, Peak::ONE)?,
            ssim: ssim(clean, estimate, Peak::ONE)?,
            psnr_own_peak: own_peak.map(|peak| psnr(clean, estimate, peak)).transpose()?,
        })
    }
}

/// The mean PSNR, at peak 1, of an estimate for each clean image.
pub fn mean_psnr(clean: &[Image], estimates: &[Image]) -> Result<f64> {
    refuse!(clean.len() != estimates.len() => "{} estimates for {} clean images", estimates.len(), clean.len());
    let pairs = clean.par_iter().zip(estimates);
    let values =
        pairs.map(|(clean, estimate)| psnr(clean, estimate, Peak::ONE)).collect::<Result<Vec<_>>>()?;
    Ok(Summary::of(&values)?.mean)
}

/// Mean and standard deviation.
///
/// ```
/// use proxlift::evaluation::Summary;
/// assert_eq!(Summary::of(&[28.0, 30.0])?.to_string(), "29.00 ± 1.41");
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation with the divisor `count - 1`; 0 for one value.
    pub std: f64,
}

impl Summary {
    /// Summarises `values`, added in order; refuses an empty list.
    pub fn of(values: &[f64]) -> Result<Self> {
        refuse!(values.is_empty() => "there are no scores to summarise");
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let std = if count == 1 { 0.0 } else { (squares / (count - 1) as f64).sqrt() };
        Ok(Self { count, mean, std })
    }
}

impl fmt::Display for Summary {
    /// `mean +- std`, with the caller's precision (2 digits if none is asked for).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.std)
    }
}
