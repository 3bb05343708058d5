//! A picture of the program's own, for visitors without one.

use crate::error::told;
use proxlift::dataset::synthetic::scene;
use proxlift::image::io::{Depth, Format, Picture, encode};
use proxlift::image::{Channels, noise::add_gaussian};
use wasm_bindgen::prelude::*;

/// The scene of `proxlift demo` as a PNG, with white noise of the level `sigma`, or clean.
#[wasm_bindgen]
pub fn sample(height: usize, width: usize, sigma: f32) -> Result<Vec<u8>, JsError> {
    let clean = scene(1, height, width, Channels::Rgb).map_err(told)?;
    let image = if sigma > 0.0 { add_gaussian(&clean, sigma, 1, 0).map_err(told)? } else { clean };
    encode(&Picture::new(image, Depth::Eight), Format::Png).map_err(told)
}
