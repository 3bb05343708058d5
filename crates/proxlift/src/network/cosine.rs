//! Initialisation by cosines: every layer starts as the discrete cosine transform of its windows, a frame in which noise
//! and image are already apart, so that the untrained network is a shrinkage of cosine coefficients.
//!
//! The `k^2` orthonormal cosines of a `k x k` window, divided by `k`, form a tight frame, `L* L = I`. The constant is left
//! out (filters of zero mean); features beyond the others start at random, small.

use super::{Architecture, Network};
use crate::{Real, Result, operator::Filters};

/// Colours: brightness, then the two differences, orthonormal.
const COLOURS: [[f64; 3]; 3] = [
    [0.577_350_269_189_625_8; 3],
    [std::f64::consts::FRAC_1_SQRT_2, 0.0, -std::f64::consts::FRAC_1_SQRT_2],
    [0.408_248_290_463_863, -0.816_496_580_927_726, 0.408_248_290_463_863],
];

/// How large the random features are beside those of [`Network::glorot`].
const REST: f64 = 0.1;

impl<T: Real> Network<T> {
    /// Every filter a cosine, from low frequencies to high, brightness twice as dense as colour differences; the threshold
    /// is `lambda`, for which two to three times `sigma / k` is a good start.
    pub fn cosines(architecture: Architecture, lambda: f64, seed: u64) -> Result<Self> {
        let Architecture { depth, features, kernel, channels } = architecture;
        let random = Self::glorot(architecture, lambda, seed)?;
        let mut functions: Vec<(usize, usize, usize)> = Vec::new();
        for colour in 0..channels {
            let (rows, columns) = (0..kernel, 0..kernel);
            let all = rows.flat_map(|p| columns.clone().map(move |q| (colour, p, q)));
            functions.extend(all.filter(|&(_, p, q)| p + q > 0));
        }
        functions.sort_by_key(|&(colour, p, q)| ((p + q) * if colour == 0 { 1 } else { 2 }, colour, p));
        functions.truncate(features);
        let taps = kernel * kernel;
        let theta = (0..=depth).map(|k| {
            let mut weights: Vec<T> = random.theta[k].weights().iter().map(|&w| T::of(REST) * w).collect();
            for (&(colour, p, q), filter) in functions.iter().zip(weights.chunks_exact_mut(channels * taps)) {
                for (c, filter) in filter.chunks_exact_mut(taps).enumerate() {
                    let tint = if channels == 1 { 1.0 } else { COLOURS[colour][c] };
                    for (t, w) in filter.iter_mut().enumerate() {
                        let value = cosine(kernel, p, t / kernel) * cosine(kernel, q, t % kernel);
                        *w = T::of(tint * value / kernel as f64);
                    }
                }
            }
            Filters::new(features, channels, kernel, weights)
        });
        let theta = theta.collect::<Result<Vec<_>>>()?;
        Ok(Self { theta, ..random }.centered(seed))
    }
}

/// The orthonormal cosine of frequency `p` on `n` points, at `i`.
fn cosine(n: usize, p: usize, i: usize) -> f64 {
    let scale = if p == 0 { 1.0 } else { 2.0 } / n as f64;
    scale.sqrt() * (std::f64::consts::PI * (2 * i + 1) as f64 * p as f64 / (2 * n) as f64).cos()
}
