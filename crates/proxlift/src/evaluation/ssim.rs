//! Structural similarity.
//!
//! Z. Wang, A. C. Bovik, H. R. Sheikh, E. P. Simoncelli, "Image quality assessment: from error visibility to
//! structural similarity", IEEE TIP 13(4), 2004: Gaussian window of standard deviation 1.5 and 11 x 11 taps,
//! `K1 = 0.01`, `K2 = 0.03`, averaged over the pixels whose window lies inside the image.

use super::{Peak, check_same_shape};
use crate::{Result, image::Image};
use rayon::prelude::*;

const TAPS: usize = 11;
const SIGMA: f64 = 1.5;
const K1: f64 = 0.01;
const K2: f64 = 0.03;

/// The mean structural similarity; colour images by the mean over channels.
///
/// Agrees with scikit-image's `structural_similarity(..., gaussian_weights=True, sigma=1.5,
/// use_sample_covariance=False, data_range=peak)`.
///
/// ```
/// # use proxlift::{dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
/// use proxlift::evaluation::{Peak, ssim};
/// let clean = dead_leaves(1, 0, 64, 64, Channels::Grey)?;
/// let noisy = add_gaussian(&clean, 0.1, 1, 0)?;
/// assert!(ssim(&clean, &clean, Peak::ONE)? > 0.999 && ssim(&clean, &noisy, Peak::ONE)? < 0.8);
/// # Ok::<(), proxlift::Error>(())
/// ```
pub fn ssim(clean: &Image, estimate: &Image, peak: Peak) -> Result<f64> {
    check_same_shape(clean, estimate)?;
    let peak = peak.of(clean)?;
    let (channels, height, width) = clean.shape();
    refuse!(height < TAPS || width < TAPS =>
        "SSIM needs at least {TAPS} x {TAPS} pixels, the image has {width} x {height}");
    let window = window();
    let constants = ((K1 * peak).powi(2), (K2 * peak).powi(2));
    let rows: Vec<f64> = (0..channels * (height - TAPS + 1))
        .into_par_iter()
        .map_init(
            || vec![[0.0; 5]; width],
            |moments, i| {
                let (c, y) = (i / (height - TAPS + 1), i % (height - TAPS + 1));
                let band = y * width..(y + TAPS) * width;
                vertical(&clean.plane(c)[band.clone()], &estimate.plane(c)[band], &window, moments);
                moments.windows(TAPS).map(|around| similarity(&horizontal(around, &window), constants)).sum()
            },
        )
        .collect();
    let pixels = (height - TAPS + 1) * (width - TAPS + 1);
    Ok(rows.iter().sum::<f64>() / (channels * pixels) as f64)
}

fn window() -> [f64; TAPS] {
    let mut window = std::array::from_fn(|i| {
        let x = i as f64 - (TAPS / 2) as f64;
        (-0.5 * (x / SIGMA).powi(2)).exp()
    });
    let total: f64 = window.iter().sum();
    window.iter_mut().for_each(|w| *w /= total);
    window
}

/// Column-wise window means of `a, b, a^2, b^2, ab` over a band of [`TAPS`] rows.
fn vertical(a: &[f32], b: &[f32], window: &[f64; TAPS], moments: &mut [[f64; 5]]) {
    moments.fill([0.0; 5]);
    let width = moments.len();
    for ((w, a), b) in window.iter().zip(a.chunks_exact(width)).zip(b.chunks_exact(width)) {
        for ((m, &a), &b) in moments.iter_mut().zip(a).zip(b) {
            let (a, b) = (f64::from(a), f64::from(b));
            m.iter_mut().zip([a, b, a * a, b * b, a * b]).for_each(|(m, v)| *m += w * v);
        }
    }
}

fn horizontal(around: &[[f64; 5]], window: &[f64; TAPS]) -> [f64; 5] {
    let mut total = [0.0; 5];
    for (w, m) in window.iter().zip(around) {
        total.iter_mut().zip(m).for_each(|(t, v)| *t += w * v);
    }
    total
}

fn similarity(&[a, b, aa, bb, ab]: &[f64; 5], (c1, c2): (f64, f64)) -> f64 {
    let (variance_a, variance_b, covariance) = (aa - a * a, bb - b * b, ab - a * b);
    ((2.0 * a * b + c1) * (2.0 * covariance + c2)) / ((a * a + b * b + c1) * (variance_a + variance_b + c2))
}
