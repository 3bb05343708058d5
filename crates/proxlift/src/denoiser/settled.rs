//! What is settled before a picture is denoised: the level, and for counts their transform. It takes a look at the whole
//! picture; the rest can be done part by part, also elsewhere.

use super::method::Method;
use super::noise::{self, Noise};
use super::pixels::Pixels;
use super::prepared::Prepared;
use super::stabiliser::Stabiliser;
use super::{Denoiser, Level, standard};
use crate::image::noise::check_sigma_below_white;
use crate::{Result, image::Channels, memory, noise::NoiseKind};
use std::sync::OnceLock;

/// What a [`Denoiser`] settled about a picture, in numbers that can travel: with the same denoiser, parts of the picture come
/// out as parts of the whole.
///
/// ```
/// # use proxlift::{Denoiser, Image, dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
/// use std::ops::ControlFlow;
/// let noisy = add_gaussian(&dead_leaves(1, 0, 64, 64, Channels::Grey)?, 0.1, 1, 0)?;
/// let denoiser = Denoiser::best();
/// let settled = denoiser.settle(&noisy)?;
/// let (mut whole, mut again) = (denoiser.denoise(&noisy)?, noisy.clone());
/// let put = &mut |at: (usize, usize), tile: &Image| again.put(at, tile);
/// let ready = denoiser.prepare_settled(Channels::Grey, &settled)?;
/// ready.denoise_pixels(&noisy, put, &mut |_, _| ControlFlow::Continue(()))?;
/// assert_eq!(whole, again);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settled {
    /// Whether the noise is that of a camera.
    pub camera: bool,
    /// The level that thresholds are set to; none for a network as it was trained, or a given weight.
    pub sigma: Option<f64>,
    /// Of counts, gain, offset and read noise of each channel; else empty.
    pub transforms: Vec<[f64; 3]>,
    /// The least transformed count, and how far the highest is from it.
    pub ends: [f64; 2],
}

struct Found {
    camera: bool,
    sigma: Option<f64>,
    stabiliser: Option<Stabiliser>,
    noise: Option<Noise>,
}

impl Denoiser {
    /// The first half of [`Denoiser::denoise_pixels`].
    pub fn prepare_pixels(&self, picture: &impl Pixels) -> Result<Prepared<'_>> {
        self.ready(picture.kind(), memory::or_error(|| self.find(picture))?)
    }

    /// What [`Denoiser::prepare_pixels`] settles, for [`Denoiser::prepare_settled`] to go on with.
    pub fn settle(&self, picture: &impl Pixels) -> Result<Settled> {
        Ok(self.settle_noise(picture)?.0)
    }

    /// The same with the noise that the picture will be denoised for, where there is one.
    pub fn settle_noise(&self, picture: &impl Pixels) -> Result<(Settled, Option<Noise>)> {
        picture.check_finite()?;
        let Found { camera, sigma, stabiliser, noise } = memory::or_error(|| self.find(picture))?;
        let (transforms, ends) = stabiliser.map_or((Vec::new(), [0.0; 2]), |stabiliser| stabiliser.numbers());
        Ok((Settled { camera, sigma, transforms, ends }, noise))
    }

    /// Ready for parts of a picture about which all is settled.
    pub fn prepare_settled(&self, channels: Channels, settled: &Settled) -> Result<Prepared<'_>> {
        self.check()?;
        let Settled { camera, sigma, transforms, ends } = settled;
        let counted = !transforms.is_empty();
        let stabiliser = counted.then(|| Stabiliser::of_numbers(transforms, *ends)).transpose()?;
        self.ready(channels, Found { camera: *camera, sigma: *sigma, stabiliser, noise: None })
    }

    fn find(&self, picture: &impl Pixels) -> Result<Found> {
        self.check()?;
        let white_is_one = picture.unit() != 1.0;
        if let Some(sigma) = self.given().filter(|_| white_is_one) {
            check_sigma_below_white(sigma)?;
        }
        let (mut noise, mut stabiliser) = (None, None);
        match self.level {
            Level::Given(sigma) => noise = Some(Noise::given(sigma, white_is_one)),
            Level::AsTrained if self.is_parallel() => {}
            _ if self.method.follows_noise() => {
                let sample = noise::sample(picture);
                let found = Noise::estimate(&sample, white_is_one, picture.unit(), self.kind);
                stabiliser =
                    standard::stabiliser(found.model.as_ref(), self.counts, &sample, picture.unit())?;
                noise = Some(found);
            }
            _ => {}
        }
        let found = noise.as_ref().and_then(|noise| noise.model.as_ref()).map(|model| model.kind);
        let camera = found.or(self.kind) == Some(NoiseKind::Camera);
        let method = self.method.suited(picture.kind(), camera);
        let sigma = match (&stabiliser, &noise) {
            (_, Some(noise)) if noise.is_none() => Some(0.0),
            (Some(stabiliser), _) => Some(stabiliser.sigma()),
            (None, Some(noise)) => Some(method.level(picture.kind(), noise)),
            (None, None) => None,
        };
        Ok(Found { camera, sigma, stabiliser, noise })
    }

    fn ready(&self, channels: Channels, found: Found) -> Result<Prepared<'_>> {
        let Found { camera, sigma, stabiliser, noise } = found;
        let method = self.method.suited(channels, camera);
        let work = method.work(channels, self.strength, sigma, self.tolerance)?;
        let built_in = if let Method::BuiltIn(model) = method { Some(*model) } else { None };
        let (clip, engine) = (self.clip, &*self.engine);
        Ok(Prepared { work, stabiliser, clip, noise, built_in, engine, proof: OnceLock::new() })
    }
}
