//! Noise, the same bits for the same seed: white and Gaussian here, as cameras make it in [`CameraNoise`].

mod camera;
mod spectrum;

pub use camera::{CameraNoise, Demosaicing};
pub use spectrum::middle_level;

use crate::image::Image;
use crate::random::{Purpose, stream};
use crate::{Result, error::check_not_negative};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// `z = x + sigma * n` with `n` standard normal, not clipped.
///
/// `index` picks the stream: image `index` of a set gets the same noise whatever was drawn before it and on
/// however many threads.
pub fn add_gaussian(clean: &Image, sigma: f32, seed: u64, index: u64) -> Result<Image> {
    check_sigma(sigma.into())?;
    let mut noisy = clean.clone();
    add_gaussian_in_place(&mut stream(seed, Purpose::ImageNoise, 0, index), sigma, noisy.data_mut());
    Ok(noisy)
}

/// Adds independent normal numbers of standard deviation `sigma` to `values`.
pub fn add_gaussian_in_place(rng: &mut impl Rng, sigma: f32, values: &mut [f32]) {
    for v in values {
        let n: f32 = StandardNormal.sample(rng);
        *v += sigma * n;
    }
}

/// Refuses a noise level that is negative, NaN or infinite.
pub fn check_sigma(sigma: f64) -> Result<()> {
    check_not_negative("the noise level sigma", sigma)
}

/// [`check_sigma`] for images where white is 1; refuses a level that is meant for another scale, too.
pub fn check_sigma_below_white(sigma: f64) -> Result<()> {
    check_sigma(sigma)?;
    refuse!(sigma > 1.0 =>
        "the noise level sigma is {sigma}, but white is 1: for {sigma} grey levels of 8 bits give {sigma}/255");
    Ok(())
}
