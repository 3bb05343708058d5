//! The noise that a picture has, from the picture alone: [`NoiseModel`].

mod anscombe;
mod blocks;
mod features;
mod intensity;
mod learned;
mod model;
mod quiet;
mod white;

pub use anscombe::Anscombe;
pub use intensity::Variance;
pub(crate) use model::root_mean_square;
pub use model::{NoiseKind, NoiseModel};
pub use white::white_level;

use crate::image::Image;

/// What the learned estimator sees of a picture, for its training; none if the picture is too small or clipped.
#[doc(hidden)]
pub fn estimator_features(image: &Image) -> Option<Vec<f32>> {
    features::features(image)
}
