//! The noise that a picture has, from the picture alone.

mod anscombe;
mod blocks;
mod features;
mod intensity;

pub use anscombe::Anscombe;
pub use intensity::Variance;

use crate::image::Image;

/// What [`features`](self) a colour picture has, for the training of the estimator; none if it is too small or clipped.
#[doc(hidden)]
pub fn estimator_features(image: &Image) -> Option<Vec<f32>> {
    features::features(image).map(|features| features.to_vec())
}
