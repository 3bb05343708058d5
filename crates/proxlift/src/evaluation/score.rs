//! The scores of an estimate, all at once.

use super::{Peak, Summary, psnr, ssim};
use crate::{Result, image::Image};
use rayon::prelude::*;

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
/// Fails when there are none, or not as many of both, or two differ in shape.
pub fn mean_psnr(clean: &[Image], estimates: &[Image]) -> Result<f64> {
    refuse!(clean.len() != estimates.len() =>
        "{} estimates for {} clean images", estimates.len(), clean.len());
    let pairs = clean.par_iter().zip(estimates);
    let values =
        pairs.map(|(clean, estimate)| psnr(clean, estimate, Peak::ONE)).collect::<Result<Vec<_>>>()?;
    Ok(Summary::of(&values)?.mean)
}
