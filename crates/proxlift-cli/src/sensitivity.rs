//! How much of a small change of a picture comes through a network: norms of its Jacobian.

use proxlift::operator::{NormParams, PowerState, spectral_norm};
use proxlift::{Result, analysis::Jacobian, engine, image::Image, network::Network};
use rayon::prelude::*;

/// The power iteration: what it has found after so many steps is a lower bound, near enough to compare networks.
const NORM: NormParams = NormParams { tolerance: 1e-3, max_iterations: 60, min_iterations: 1 };

/// The norm of the Jacobian at each noisy picture, in order.
pub fn jacobian_norms(network: &Network<f32>, noisy: &[Image]) -> Result<Vec<f64>> {
    let engine = engine::standard();
    let norm = |image: &Image| -> Result<f64> {
        let sizes = network.architecture();
        let [height, width] = [image.height(), image.width()].map(|side| side - side % sizes.stride());
        let z = sizes.batch(image.crop(0..height, 0..width).data(), (height, width))?;
        let jacobian = Jacobian::at(&*engine, network, &z)?;
        let mut state = PowerState::new(&jacobian, 0);
        Ok(f64::from(spectral_norm(&jacobian, &mut state, &NORM).norm))
    };
    noisy.par_iter().map(norm).collect()
}
