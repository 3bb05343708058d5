//! The level of noise of any kind, as a small network tells it from [features](super::features).
//!
//! It was trained on photographs, clean, with white noise and with that of cameras (`experiments/noise_estimator.py`), and
//! knows the difference between noise and texture better than a rule does.

use super::features::features;
use crate::image::Image;
use safetensors::SafeTensors;
use std::sync::OnceLock;

/// Layers, each with its weights and biases; between them negative values become 0.
struct Layers(Vec<(Vec<f32>, Vec<f32>)>);

/// The weights for grey and for colour pictures.
#[cfg(not(target_family = "wasm"))]
fn weights() -> &'static [u8] {
    include_bytes!("../../models/noise.safetensors")
}
#[cfg(target_family = "wasm")]
fn weights() -> &'static [u8] {
    crate::storage::provided("noise")
}

impl Layers {
    /// Those that are called `name`.
    fn read(name: &str) -> Self {
        let file = SafeTensors::deserialize(weights()).expect("a test reads the weights");
        let tensor = |what: &str, i: usize| -> Option<Vec<f32>> {
            let view = file.tensor(&format!("{name}.{what}_{i}")).ok()?;
            Some(view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        };
        Self((0..).map_while(|i| Some((tensor("weight", i)?, tensor("bias", i)?))).collect())
    }

    fn apply(&self, mut values: Vec<f32>) -> Vec<f32> {
        for (i, (weights, biases)) in self.0.iter().enumerate() {
            let rows = weights.chunks_exact(values.len()).zip(biases);
            let least = if i + 1 < self.0.len() { 0.0 } else { f32::NEG_INFINITY };
            let sum = |row: &[f32]| row.iter().zip(&values).map(|(w, v)| w * v).sum::<f32>();
            values = rows.map(|(row, bias)| (sum(row) + bias).max(least)).collect();
        }
        values
    }
}

/// For each channel the level of white noise that is as strong as its noise at middle frequencies
/// ([`middle_level`](crate::image::noise::middle_level)), where white is 1; none if the picture is too small or clipped.
pub(super) fn levels(image: &Image) -> Option<Vec<f64>> {
    static LAYERS: [OnceLock<Layers>; 2] = [const { OnceLock::new() }; 2];
    let colour = image.channels() == 3;
    let name = if colour { "colour" } else { "grey" };
    let layers = LAYERS[usize::from(colour)].get_or_init(|| Layers::read(name));
    Some(layers.apply(features(image)?).iter().map(|log| f64::from(log.exp()) / 255.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::synthetic::dead_leaves;
    use crate::image::{Channels, noise::add_gaussian};

    #[test]
    fn levels_of_white_noise_are_told_in_grey_and_colour() {
        for channels in [Channels::Grey, Channels::Rgb] {
            let clean = dead_leaves(4, 0, 192, 192, channels).unwrap();
            for sigma in [0.03, 0.1] {
                let noisy = add_gaussian(&clean, sigma, 1, 0).unwrap();
                let levels = levels(&noisy).unwrap();
                assert_eq!(levels.len(), channels.count());
                for level in levels {
                    assert!((level / f64::from(sigma)).ln().abs() < 0.5, "{sigma}: {level}");
                }
            }
            assert!(levels(&clean.crop(0..15, 0..15)).is_none());
        }
    }
}
