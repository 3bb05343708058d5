//! White Gaussian noise, the same bits for the same seed.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::Image;
use crate::random::{Purpose, stream};
use crate::{Error, Result};

/// `z = x + sigma * n` with `n` standard normal, not clipped.
///
/// `index` picks the stream: image `index` of a set gets the same noise whatever was drawn before it and on
/// however many threads.
pub fn add_gaussian(clean: &Image, sigma: f32, seed: u64, index: u64) -> Result<Image> {
    check_sigma(sigma)?;
    let mut noisy = clean.clone();
    add_gaussian_in_place(&mut stream(seed, Purpose::ImageNoise, 0, index), sigma, noisy.data_mut());
    Ok(noisy)
}

/// Overwrites `out` with independent normal numbers of standard deviation `sigma`.
pub fn fill_gaussian(rng: &mut impl Rng, sigma: f32, out: &mut [f32]) {
    for v in out {
        let n: f32 = StandardNormal.sample(rng);
        *v = sigma * n;
    }
}

/// Adds independent normal numbers of standard deviation `sigma` to `values`.
pub fn add_gaussian_in_place(rng: &mut impl Rng, sigma: f32, values: &mut [f32]) {
    for v in values {
        let n: f32 = StandardNormal.sample(rng);
        *v += sigma * n;
    }
}

/// Refuses a negative, NaN or infinite noise level.
pub fn check_sigma(sigma: f32) -> Result<()> {
    if sigma.is_finite() && sigma >= 0.0 {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "the noise level sigma is {sigma}; it must be 0 or more, on the scale where white is 1"
        )))
    }
}
