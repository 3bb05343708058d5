//! What a training is made of, from its configuration: the network, the patches, the trainer, the memory.

use super::{Config, Method, Start};
use crate::dataset::{ImageSet, Levels, Pairs, PatchSpec, Patches};
use crate::denoiser::Standard;
use crate::model::{Model, Provenance};
use crate::training::{Taught, Trainer};
use crate::{Result, engine::SampleLoss, network::Network};
use std::sync::Arc;

/// Patches in an epoch, at least, unless their number is given.
const LEAST_PATCHES: usize = 1000;

impl Config {
    /// The network that the training starts from.
    pub fn network(&self) -> Result<Network<f32>> {
        let network = match &self.from {
            Some(network) => network.clone(),
            None => self.new_network()?,
        };
        let own = self.settings.own_synthesis == Some(true);
        let mut network = if own { network.with_own_synthesis() } else { network };
        if let Some(stable) = self.constraint.stable {
            stable.check(&network)?;
            stable.begin(&mut network);
        }
        network.validate()?;
        self.method.validate(&network)?;
        Ok(network)
    }

    fn new_network(&self) -> Result<Network<f32>> {
        let all = &self.settings;
        let start = match all.start.unwrap_or_default() {
            Start::Random => Network::glorot,
            Start::Cosines => Network::cosines,
        };
        let mut network = start(self.architecture, all.lambda.unwrap_or(0.0), self.seed)?;
        if let Some(knots @ 2..) = all.knots {
            network = network.with_knots(knots);
        }
        network.bounded = all.bounded == Some(true);
        network.border = all.border.unwrap_or(0);
        network.validate()?;
        if self.constraint.tied || self.constraint.stable.is_some() {
            let first = network.theta[1].clone();
            network.theta.fill(first);
        }
        if self.constraint.zero_mean {
            network = network.centered(self.seed);
        }
        let scale = all.step_scale.unwrap_or(1.0) as f32;
        Ok(network.unrolled(all.unrolling.unwrap_or_default(), scale, self.seed))
    }

    /// The trainer of `network`, for `samples` patches.
    pub fn trainer(&self, network: &Network<f32>, samples: usize) -> Result<Box<dyn Trainer + Send>> {
        let trainer = self.method.trainer(network, self.constraint, samples, self.seed)?;
        Ok(match &self.teacher {
            Some((teacher, share)) => Box::new(Taught::new(trainer, network, teacher.clone(), *share)?),
            None => trainer,
        })
    }

    /// The patches of `images`; without a number in the settings one for each image, but at least 1000.
    pub fn patches(&self, images: Arc<ImageSet>) -> Result<Patches> {
        refuse!(images.channels().count() != self.architecture.colours() =>
            "the images have {} channels, but the network was made for {}",
            images.channels().count(), self.architecture.colours());
        Patches::new(images.clone(), self.patch_spec(images.len()))
    }

    /// The patches of pairs, as [`Config::patches`] gives them.
    pub fn patches_of_pairs(&self, pairs: &Pairs) -> Result<Patches> {
        Patches::of_pairs(Standard::pairs(pairs, self.sigma)?, self.patch_spec(pairs.noisy.len()))
    }

    fn patch_spec(&self, images: usize) -> PatchSpec {
        PatchSpec {
            size: self.patch,
            count: self.settings.count.unwrap_or(LEAST_PATCHES.max(images)),
            augment: self.settings.augment == Some(true),
            sigma: self.sigma as f32,
            levels: self.settings.sigma_range.map(|range| Levels {
                range: range.map(|level| level as f32),
                power: match self.settings.loss.unwrap_or_default() {
                    SampleLoss::Squared => Levels::FOR_SQUARES,
                    SampleLoss::Norm => Levels::FOR_NORMS,
                },
            }),
            noise: self.settings.noise.unwrap_or_default(),
            seed: self.seed,
        }
    }

    /// The network after `epoch` epochs, as a model.
    pub fn model(&self, mut provenance: Provenance, epoch: usize, network: &Network<f32>) -> Model {
        provenance.insert("epochs".into(), format!("{epoch} of {}", self.plan.epochs));
        let noise = self.settings.noise.unwrap_or_default();
        let mut network = network.clone();
        if let Some(stable) = self.constraint.stable
            && let Err(error) = stable.prove(&mut network)
        {
            tracing::warn!("the Lipschitz constant is not proven: {error}");
        }
        Model { network, sigma: self.sigma, noise, provenance }
    }

    /// Bytes of `u` that are kept for `samples` patches: `n (K - 1) J pixels` floats, if any.
    pub fn persistent_bytes(&self, samples: usize) -> usize {
        let sizes = self.architecture;
        let layers = match &self.method {
            Method::FixedPoint(options) => usize::from(options.warm),
            _ if self.is_persistent() => sizes.depth - 1,
            _ => 0,
        };
        samples * layers * sizes.features * self.plane_bytes()
    }

    /// Bytes of one batch's variables, about: `z`, `x` and three fields for each layer.
    pub fn batch_bytes(&self) -> usize {
        let sizes = self.architecture;
        let values = 2 * sizes.channels + 3 * sizes.depth * sizes.features;
        self.plan.batch.max(self.plan.last_batch) * values * self.plane_bytes()
    }

    fn plane_bytes(&self) -> usize {
        (self.patch / self.architecture.stride()).pow(2) * size_of::<f32>()
    }
}
