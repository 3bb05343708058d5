//! A noisy picture in, a clean one out, in one call: for every front end, and right at every noise level.
//!
//! ```text
//! noise level, given or estimated -> thresholds scaled to it -> tiles that fit the memory -> picture
//! ```
//!
//! ```
//! use proxlift::{Denoiser, dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
//! use proxlift::evaluation::{Peak, psnr};
//! use proxlift::model::BuiltIn;
//!
//! let clean = dead_leaves(1, 0, 96, 96, Channels::Grey)?;
//! let noisy = add_gaussian(&clean, 0.2, 1, 0)?;
//! let estimated = Denoiser::best().denoise(&noisy)?;
//! let given = Denoiser::from(BuiltIn::Small).sigma(0.2).denoise(&noisy)?;
//! let classical = Denoiser::total_variation().sigma(0.2).denoise(&noisy)?;
//! for result in [&estimated, &given, &classical] {
//!     assert!(psnr(&clean, result, Peak::ONE)? > psnr(&clean, &noisy, Peak::ONE)? + 6.0);
//! }
//! # Ok::<(), proxlift::Error>(())
//! ```

mod derivative;
mod map;
mod method;
mod noise;
mod pixels;
mod prepared;
mod progress;
mod settings;
mod settled;
mod solved;
mod span;
mod stabiliser;
mod standard;
mod tile;
mod variation;

pub use noise::{Noise, estimate_pixels, sample_rows};
pub use pixels::Pixels;
pub use prepared::{Prepared, Put};
pub use progress::Progress;
pub use settings::settings;
pub use settled::Settled;
pub use solved::Proof;
pub use span::{Span, Tile};
pub use stabiliser::Counts;
pub use standard::Standard;
pub(crate) use variation::lambda_per_sigma;

use crate::dataset::PatchNoise;
use crate::engine::SharedEngine;
use crate::image::io::{Depth, Raster};
use crate::image::noise::check_sigma;
use crate::image::{Channels, Image};
use crate::model::{BuiltIn, Model, Provenance};
use crate::noise::NoiseKind;
use crate::{Result, engine, network::Network};
use method::Method;
use rayon::prelude::*;
use std::{ops::ControlFlow, sync::Arc};

/// Removes noise from pictures: a trained network, or total variation.
///
/// Made once, used for many pictures: it holds an engine, which keeps its memory from one picture to the next. A clone
/// is cheap and shares model and engine.
#[derive(Clone)]
pub struct Denoiser {
    method: Method,
    level: Level,
    /// The kind of noise, unless it is found in each picture.
    kind: Option<NoiseKind>,
    counts: Counts,
    strength: f64,
    clip: bool,
    /// Whether also a map of one level is blended.
    blend: bool,
    tolerance: Option<f64>,
    engine: SharedEngine,
}

#[derive(Clone, Copy)]
enum Level {
    Estimated,
    Given(f64),
    AsTrained,
}

/// Pixels of a picture that keeps all threads busy through a network: what one thread does before and after is little
/// beside it, and several such pictures at once would take too much memory.
const LARGE: usize = 1 << 20;

/// The duality gap of [`BuiltIn::Convex`] and of weakly convex functions, as a share of the objective: no eye sees what is left.
const CONVEX_TOLERANCE: f64 = 1e-4;

/// Float pictures beyond this value are on another scale than `[0, 1]`.
const ANOTHER_SCALE: f32 = 4.0;

impl From<Method> for Denoiser {
    fn from(method: Method) -> Self {
        Self {
            method,
            level: Level::Estimated,
            kind: None,
            counts: Counts::default(),
            strength: 1.0,
            clip: false,
            blend: false,
            tolerance: None,
            engine: engine::standard(),
        }
    }
}

impl From<BuiltIn> for Denoiser {
    /// A built-in network; the one for grey or for colour pictures is chosen by the picture. [`BuiltIn::Convex`] and
    /// [`BuiltIn::WeaklyConvex`] are run to their fixed point, to a [`tolerance`](Denoiser::tolerance) of 1e-4.
    fn from(model: BuiltIn) -> Self {
        let solved = matches!(model, BuiltIn::Convex | BuiltIn::WeaklyConvex);
        let tolerance = solved.then_some(CONVEX_TOLERANCE);
        Self { tolerance, ..Method::BuiltIn(model).into() }
    }
}

impl From<Model> for Denoiser {
    /// A network of one's own. One for grey pictures takes the channels of a colour picture one by one. If its `sigma` is
    /// 0, the level that it was trained for is not known: then it is used as it is.
    fn from(model: Model) -> Self {
        Arc::new(model).into()
    }
}

impl From<Arc<Model>> for Denoiser {
    /// The same, sharing the model.
    fn from(model: Arc<Model>) -> Self {
        let tolerance = model.network.redescends().then_some(CONVEX_TOLERANCE);
        Self { tolerance, ..Method::Model(model).into() }
    }
}

impl From<Network<f32>> for Denoiser {
    /// A network as it is, whatever it was trained for.
    fn from(network: Network<f32>) -> Self {
        Model { network, sigma: 0.0, noise: PatchNoise::White, provenance: Provenance::new() }.into()
    }
}

impl Denoiser {
    /// The best built-in network for each picture: `photo` for colour pictures with the noise of a camera, else `best`.
    pub fn best() -> Self {
        BuiltIn::Best.into()
    }

    /// Total variation (Rudin, Osher, Fatemi 1992): isotropic, over all channels jointly in colour. Its weight follows
    /// the noise level.
    pub fn total_variation() -> Self {
        Method::TotalVariation { lambda: None }.into()
    }

    /// Total variation with the weight `lambda` in `1/2 ||x - z||^2 + lambda TV(x)`, whatever the noise level.
    pub fn total_variation_with(lambda: f64) -> Self {
        Method::TotalVariation { lambda: Some(lambda) }.into()
    }

    /// A built-in model by its name, or a model file.
    pub fn open(name: &str) -> Result<Self> {
        match BuiltIn::named(name) {
            Some(model) => Ok(model.into()),
            None => Ok(Model::open(name, Channels::Grey)?.into()),
        }
    }

    /// Denoises for noise of the standard deviation `sigma`, on the scale of the picture, instead of estimating it.
    #[must_use]
    pub fn sigma(self, sigma: f64) -> Self {
        Self { level: Level::Given(sigma), ..self }
    }

    /// Denoises for this kind of noise, instead of finding out which it is.
    #[must_use]
    pub fn noise(self, kind: NoiseKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// What is known of the camera or microscope whose counts are denoised; unless the kind of noise is given too, it is
    /// taken for counts with read noise.
    #[must_use]
    pub fn counts(self, counts: Counts) -> Self {
        Self { kind: self.kind.or(Some(NoiseKind::PoissonGaussian)), counts, ..self }
    }

    /// Leaves the thresholds of a network as they were trained, whatever the noise.
    #[must_use]
    pub fn as_trained(self) -> Self {
        Self { level: Level::AsTrained, ..self }
    }

    /// Denoises more (above 1) or less (below 1); 0 leaves pictures as they are.
    #[must_use]
    pub fn strength(self, strength: f64) -> Self {
        Self { strength, ..self }
    }

    /// Clips results to `[0, 1]`, or not, as unless this is called.
    #[must_use]
    pub fn clipped(self, clip: bool) -> Self {
        Self { clip, ..self }
    }

    /// Whether maps of noise levels are parts of larger ones: then also one that is the same everywhere is blended, as it
    /// would be in the whole.
    #[must_use]
    pub fn part_of_map(self, part: bool) -> Self {
        Self { blend: part, ..self }
    }

    /// Denoises in all eight orientations and averages ([`Turned`](engine::Turned)): eight times as long, and a little better.
    /// Set the engine before it, if at all.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { engine: Arc::new(engine::Turned(self.engine)), ..self }
    }

    /// Runs a network whose layers are all the same, such as `convex`, to its fixed point instead of through its layers: until
    /// the duality gap is at most this share of the objective ([`Prepared::proof`] has it). It is then the proximity operator of
    /// a convex function, and firmly non-expansive.
    #[must_use]
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance: Some(tolerance), ..self }
    }

    /// Computes with another engine, which may be shared.
    #[must_use]
    pub fn engine(self, engine: SharedEngine) -> Self {
        Self { engine, ..self }
    }

    /// The only kind of picture that it was made for; a built-in model is there for both.
    pub fn channels(&self) -> Option<Channels> {
        match &self.method {
            Method::Model(model) => Channels::from_count(model.network.architecture().colours()),
            Method::BuiltIn(_) | Method::TotalVariation { .. } => None,
        }
    }

    /// The level that its network was trained for, where there is one and it is known.
    pub fn trained_sigma(&self, channels: Channels) -> Option<f64> {
        self.method.model(channels).map(|model| model.sigma).filter(|&sigma| sigma > 0.0)
    }

    /// Whether one picture already keeps all threads busy.
    pub fn is_parallel(&self) -> bool {
        !matches!(self.method, Method::TotalVariation { .. })
    }

    /// In a line for people: what denoises pictures with these channels.
    pub fn describe(&self, channels: Channels) -> String {
        self.method.describe(channels, self.strength, self.given())
    }

    /// Checks the settings: every call does, and a front end may before it starts.
    /// Fails when a number is negative or not finite, or a level was given for a network that does not know its own.
    pub fn check(&self) -> Result<()> {
        self.given().map_or(Ok(()), check_sigma)?;
        let counted = matches!(self.kind, Some(NoiseKind::Poisson | NoiseKind::PoissonGaussian));
        refuse!(counted && self.given().is_some() =>
            "a noise level is for noise that is the same everywhere: give counts their gain and read noise instead");
        if let Some(tolerance) = self.tolerance {
            let network =
                self.method.model(self.channels().unwrap_or(Channels::Grey)).map(|model| &model.network);
            solved::check(network, tolerance)?;
        }
        self.method.check(self.strength, self.given())
    }

    /// Denoises a picture in memory.
    /// Fails when a setting is out of range, a value is not finite, or a network for colour is given a grey picture.
    pub fn denoise(&self, noisy: &Image) -> Result<Image> {
        let mut result = noisy.clone();
        let put = &mut |at: (usize, usize), tile: &Image| result.put(at, tile);
        self.denoise_pixels(noisy, put, &mut |_, _| ControlFlow::Continue(()))?;
        Ok(result)
    }

    /// Denoises whatever gives its pixels, part by part: `put` gets the parts of the result. Returns the noise level that
    /// it was denoised for, where there is one; `progress` may end the work.
    pub fn denoise_pixels(
        &self,
        picture: &impl Pixels,
        put: &mut Put<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Noise>> {
        picture.check_finite()?;
        let ready = self.prepare_pixels(picture)?;
        ready.denoise_pixels(picture, put, progress)?;
        Ok(ready.noise)
    }

    /// [`Denoiser::denoise`] for several pictures: at once, but large ones, each of which keeps all threads busy, one
    /// after the other.
    pub fn denoise_all(&self, noisy: &[Image]) -> Result<Vec<Image>> {
        if self.is_parallel() && noisy.iter().any(|image| image.pixels() > LARGE) {
            noisy.iter().map(|image| self.denoise(image)).collect()
        } else {
            noisy.par_iter().map(|image| self.denoise(image)).collect()
        }
    }

    /// Denoises a picture of any size in place, in the depth of its file, and returns the noise level that it was
    /// denoised for, where there is one. Integers are clipped to what they hold, floats never; alpha and metadata stay.
    ///
    /// A network takes little memory beside the picture itself, total variation 32 bytes a sample. `progress` is told
    /// how many tiles are done, and of how many; it may end the work.
    ///
    /// ```
    /// # use proxlift::{Denoiser, dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
    /// # use proxlift::image::io::{Depth, Picture, Raster};
    /// use std::ops::ControlFlow;
    /// # let noisy = add_gaussian(&dead_leaves(1, 0, 64, 64, Channels::Rgb)?, 0.1, 1, 0)?;
    /// # let mut raster = Raster::of_picture(&Picture::new(noisy, Depth::Eight))?; // io::read_raster(path, &limits)?
    /// let noise = Denoiser::best().denoise_raster(&mut raster, &mut |done, all| {
    ///     eprintln!("{done} of {all} tiles");
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!((noise.unwrap().sigma - 0.1).abs() < 0.01);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    pub fn denoise_raster(&self, raster: &mut Raster, progress: &mut Progress<'_>) -> Result<Option<Noise>> {
        let ready = self.prepare(raster)?;
        ready.denoise_raster(raster, progress)?;
        Ok(ready.noise)
    }

    /// The first half of [`Denoiser::denoise_raster`]: settles the noise level and adapts the network to it. A front end
    /// with many pictures does this for one while another one is denoised.
    pub fn prepare(&self, raster: &Raster) -> Result<Prepared<'_>> {
        let ready = self.prepare_pixels(raster)?;
        if raster.depth() == Depth::Float && self.is_parallel() && ready.noise.is_none() {
            let largest = raster.largest();
            if largest > ANOTHER_SCALE {
                tracing::warn!(
                    "values reach {largest}, but the network is for pictures where white is 1 and is used as it was \
                     trained: scale the picture to [0, 1] first"
                );
            }
        }
        Ok(ready)
    }

    fn given(&self) -> Option<f64> {
        if let Level::Given(sigma) = self.level { Some(sigma) } else { None }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/denoiser.rs"]
mod tests;
