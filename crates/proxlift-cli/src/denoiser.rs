//! What removes noise, whichever kind was asked for: a trained network or total variation.

use crate::output::Progress;
use proxlift::denoise::denoise_image;
use proxlift::engine::Cpu;
use proxlift::engine::cpu::tiles::{TILE_BYTES, Tiles};
use proxlift::image::io::{Picture, Raster};
use proxlift::image::{Channels, Image};
use proxlift::model::Model;
use proxlift::network::Network;
use proxlift::solver::{TotalVariation, TvParams, total_variation};
use proxlift::{Error, Result};
use rayon::prelude::*;

/// The noise level that total variation is set for when none is told.
pub const DEFAULT_SIGMA: f64 = 0.1;

/// `lambda / sigma` of total variation for grey pictures: about the best single choice for photographs (the best
/// lambda is 0.073 to 0.075 at sigma 0.1).
pub const GREY_LAMBDA: f64 = 0.74;

/// The same for colour, where one norm is taken over three channels. The best of 0.74, 0.9, 1, 1.1, 1.2 and 1.3 on 14
/// photographs of the BSDS500 training folder at sigma 0.1 (28.07 dB; 0.74 gives 26.88).
pub const COLOUR_LAMBDA: f64 = 1.1;

/// Bytes that total variation takes for a sample: the picture, its estimate, and three fields of two numbers each.
const TV_BYTES: usize = 32;

/// The most that total variation may take.
const TV_MOST: usize = 8 << 30;

/// Pixels of a picture that keeps all threads busy through a network: what is done by one thread before and after is
/// little beside it, and several such pictures at once would take too much memory.
const LARGE: usize = 1 << 20;

/// Something that removes noise.
pub struct Denoiser {
    kind: Kind,
    /// The noise level it is set for.
    sigma: f64,
    /// Whether the result is clipped to `[0, 1]`.
    clip: bool,
    /// In a line for people.
    description: String,
}

enum Kind {
    Network { engine: Box<Cpu>, network: Network<f32> },
    TotalVariation { grey: f32, colour: f32 },
}

/// The pictures a network was made for.
pub fn channels_of(network: &Network<f32>) -> Channels {
    if network.architecture().channels == 1 { Channels::Grey } else { Channels::Rgb }
}

/// A network in a line: its sizes, and what it is unrolled from.
pub fn describe(network: &Network<f32>) -> String {
    let sizes = network.architecture();
    let mut text = format!(
        "K={}, J={}, {k}x{k} kernels, {}, unrolled from {}",
        sizes.depth,
        sizes.features,
        if sizes.channels == 1 { "grey" } else { "RGB" },
        network.unrolling,
        k = sizes.kernel,
    );
    if network.learns_activations() {
        text += &format!(", activations of {} knots", network.pieces());
    }
    if network.bounded {
        text += ", bounded";
    }
    if network.step_scale != 1.0 {
        text += &format!(", steps {} times as long", network.step_scale);
    }
    if network.border > 0 {
        text += &format!(", a border of {}", network.border);
    }
    text
}

impl Denoiser {
    /// A network as it is, for noise of level `sigma`.
    pub fn from_network(network: Network<f32>, sigma: f64) -> Self {
        let description = format!("network with {}", describe(&network));
        Self {
            kind: Kind::Network { engine: Box::new(Cpu::new()), network },
            sigma,
            clip: false,
            description,
        }
    }

    /// A model, set for noise of level `sigma` instead of the one it was trained for, `strength` times as strong.
    ///
    /// The network with thresholds `s lambda` is `z -> s G(z / s)`: the picture is brought to the contrast at which its
    /// noise has the level of the training, and back. So thresholds are scaled by `sigma` over the trained level.
    pub fn from_model(model: Model, sigma: Option<f64>, strength: f64) -> Result<Self> {
        let target = sigma.unwrap_or(model.sigma);
        if target != model.sigma && model.sigma == 0.0 {
            return Err(Error::invalid(
                "the model does not know the noise it was trained for (its sigma is 0): leave --sigma out and use \
                 --strength",
            ));
        }
        let scale = strength * if target == model.sigma { 1.0 } else { target / model.sigma };
        let mut network = model.network;
        if scale != 1.0 {
            network.scale_thresholds(scale as f32);
        }
        // Scaled thresholds may have left what a float can hold.
        network.validate()?;
        let mut denoiser = Self::from_network(network, target);
        if scale != 1.0 {
            let trained = model.sigma;
            denoiser.description += &format!(", trained for sigma {trained:.4}, thresholds times {scale:.3}");
        }
        Ok(denoiser)
    }

    /// Total variation with these weights for grey and for colour pictures, for noise of level `sigma`.
    pub fn total_variation(grey: f64, colour: f64, sigma: f64) -> Self {
        let description = if grey == colour {
            format!("total variation, lambda {grey:.4}")
        } else {
            format!("total variation, lambda {grey:.4} in grey, {colour:.4} in colour")
        };
        let kind = Kind::TotalVariation { grey: grey as f32, colour: colour as f32 };
        Self { kind, sigma, clip: false, description }
    }

    /// Total variation as it is set for noise of level `sigma` when nothing else is said.
    pub fn total_variation_for(sigma: f64) -> Self {
        Self::total_variation(GREY_LAMBDA * sigma, COLOUR_LAMBDA * sigma, sigma)
    }

    /// The same, with its result clipped to `[0, 1]` if `clip`.
    pub fn clipped(self, clip: bool) -> Self {
        Self { clip, ..self }
    }

    /// The noise level it is set for.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// In a line for people.
    pub fn describe(&self) -> &str {
        &self.description
    }

    /// Whether one picture already keeps all threads busy.
    pub fn is_parallel(&self) -> bool {
        matches!(self.kind, Kind::Network { .. })
    }

    /// Removes the noise of one picture. A grey network takes the channels of a colour picture one by one.
    ///
    /// # Errors
    /// When a colour network is given a grey picture, or a value is not finite.
    pub fn denoise(&self, noisy: &Image) -> Result<Image> {
        noisy.check_finite()?;
        let (channels, height, width) = noisy.shape();
        let mut data = match &self.kind {
            Kind::Network { engine, network } => denoise_image(engine.as_ref(), network, noisy)?.into_data(),
            Kind::TotalVariation { grey, colour } => {
                let (kind, lambda) = match noisy.kind() {
                    Channels::Grey => (TotalVariation::Isotropic, *grey),
                    Channels::Rgb => (TotalVariation::Vectorial, *colour),
                };
                total_variation(noisy.data(), channels, height, width, lambda, kind, &TvParams::default())?.0
            }
        };
        if self.clip {
            data.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
        }
        Image::new(channels, height, width, data)
    }

    /// [`Self::denoise`] in the depth of a file, whatever the size; `watch` shows how far it is.
    ///
    /// A network takes little memory beside the picture itself; total variation takes [`TV_BYTES`] a sample. Integers
    /// are clipped to what they hold, floats never.
    ///
    /// # Errors
    /// As [`Self::denoise`], and when total variation would take more than [`TV_MOST`].
    pub fn denoise_raster(&self, mut raster: Raster, watch: bool) -> Result<Raster> {
        let (height, width) = (raster.height(), raster.width());
        match &self.kind {
            Kind::Network { engine, network } => {
                let parts = Tiles::new(network.architecture(), height, width, TILE_BYTES);
                let progress = watch.then(|| Progress::new(parts.count(), "denoising"));
                let step = || progress.iter().for_each(Progress::step);
                proxlift::denoise::denoise(engine, network, &mut raster, &parts, step)?;
                Ok(raster)
            }
            Kind::TotalVariation { .. } => {
                check_tv_memory(raster.kind(), height, width)?;
                let picture = raster.into_picture();
                let image = self.denoise(&picture.image)?;
                Raster::of_picture(&Picture { image, ..picture })
            }
        }
    }

    /// [`Self::denoise`] for several pictures: at once, but large ones, each of which keeps all threads busy, one after the
    /// other.
    pub fn denoise_all(&self, noisy: &[Image]) -> Result<Vec<Image>> {
        if self.is_parallel() && noisy.iter().any(|image| image.pixels() > LARGE) {
            noisy.iter().map(|image| self.denoise(image)).collect()
        } else {
            noisy.par_iter().map(|image| self.denoise(image)).collect()
        }
    }
}

fn check_tv_memory(channels: Channels, height: usize, width: usize) -> Result<()> {
    let bytes = TV_BYTES * channels.count() * height * width;
    if bytes <= TV_MOST {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "total variation needs the whole picture at once, {:.1} GB of memory for {width} x {height} pixels, more than \
         {:.1} GB: use a network (--model), or cut the picture",
        bytes as f64 / 1e9,
        TV_MOST as f64 / 1e9
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxlift::dataset::synthetic::dead_leaves;
    use proxlift::model::Provenance;
    use proxlift::network::Architecture;

    fn model(channels: usize) -> Model {
        let architecture = Architecture { depth: 4, features: 6, kernel: 3, channels };
        let network = Network::glorot(architecture, 0.1, 1).unwrap();
        Model { network, sigma: 0.1, provenance: Provenance::new() }
    }

    #[test]
    fn thresholds_scaled_with_the_contrast_give_the_scaled_result() {
        let picture = dead_leaves(1, 0, 20, 30, Channels::Grey).unwrap();
        let mut double = picture.clone();
        double.data_mut().iter_mut().for_each(|v| *v *= 2.0);
        let once = Denoiser::from_model(model(1), None, 1.0).unwrap().denoise(&picture).unwrap();
        let twice = Denoiser::from_model(model(1), Some(0.2), 1.0).unwrap().denoise(&double).unwrap();
        for (a, b) in once.data().iter().zip(twice.data()) {
            assert!((2.0 * a - b).abs() < 1e-5, "{a} {b}");
        }
    }

    #[test]
    fn a_grey_network_takes_colour_channel_by_channel() {
        let picture = dead_leaves(1, 0, 20, 30, Channels::Rgb).unwrap();
        let denoiser = Denoiser::from_model(model(1), None, 1.0).unwrap();
        let whole = denoiser.denoise(&picture).unwrap();
        for c in 0..3 {
            let plane = Image::new(1, 20, 30, picture.plane(c).to_vec()).unwrap();
            assert_eq!(denoiser.denoise(&plane).unwrap().data(), whole.plane(c));
        }
    }

    #[test]
    fn strength_zero_changes_nothing() {
        let picture = dead_leaves(1, 0, 20, 30, Channels::Rgb).unwrap();
        let network = Denoiser::from_model(model(3), None, 0.0).unwrap();
        let tv = Denoiser::total_variation(0.0, 0.0, 0.1);
        assert_eq!(network.denoise(&picture).unwrap(), picture);
        assert_eq!(tv.denoise(&picture).unwrap(), picture);
    }

    #[test]
    fn total_variation_refuses_what_it_has_no_memory_for() {
        assert!(check_tv_memory(Channels::Rgb, 6000, 8000).is_ok());
        let refused = check_tv_memory(Channels::Grey, 20_000, 20_000).unwrap_err().to_string();
        assert!(refused.contains("12.8 GB") && refused.contains("--model"), "{refused}");
    }

    #[test]
    fn a_colour_network_refuses_grey() {
        let picture = dead_leaves(1, 0, 20, 30, Channels::Grey).unwrap();
        let denoiser = Denoiser::from_model(model(3), None, 1.0).unwrap();
        assert!(denoiser.denoise(&picture).unwrap_err().to_string().contains("grey"));
    }
}
