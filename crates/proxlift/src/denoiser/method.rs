//! What removes noise, and how it follows the noise level.
//!
//! A network is trained for one level, `sigma_0`. With all thresholds multiplied by `s` it is `z -> s G(z / s)`: the
//! picture is brought to the contrast at which its noise has the level of the training, and back. So thresholds are
//! multiplied by `sigma / sigma_0`. The weight of total variation is proportional to `sigma`.
//!
//! As the level goes to 0, every network tends to the identity: below the level of its training it changes no pixel by
//! more than `MOST_CHANGE` times the level, and at 0 none at all.

use super::{noise::Noise, solved, variation};
use crate::dataset::PatchNoise;
use crate::model::{BuiltIn, MOST_CHANGE, Model};
use crate::noise::NoiseKind;
use crate::{Error, Result, error::check_not_negative, image::Channels, network::Network};
use std::{borrow::Cow, sync::Arc};

/// Noise of a camera, which is stronger at low frequencies than at middle ones, needs a network for white noise to be set to
/// this many times its level.
const CAMERA: f64 = 2.0;

/// The level of a network that does not know the one of its training.
const USUAL_LEVEL: f64 = 0.1;

/// What removes noise.
#[derive(Clone)]
pub(super) enum Method {
    BuiltIn(BuiltIn),
    Model(Arc<Model>),
    TotalVariation { lambda: Option<f64> },
}

pub(super) enum Work<'a> {
    Nothing,
    /// With the most that a pixel may change, where there is a limit.
    Network(Cow<'a, Network<f32>>, Option<f32>),
    TotalVariation(f32),
    /// A network at its fixed point, to this share of the objective.
    Solved(Cow<'a, Network<f32>>, f64),
}

impl Method {
    /// The model for pictures with these channels.
    pub fn model(&self, channels: Channels) -> Option<&Model> {
        match self {
            Self::BuiltIn(model) => Some(model.model(channels)),
            Self::Model(model) => Some(model),
            Self::TotalVariation { .. } => None,
        }
    }

    /// What suits the noise: in colour, that of a camera needs another network than white noise does.
    pub fn suited(&self, channels: Channels, camera: bool) -> &Self {
        static PHOTO: Method = Method::BuiltIn(BuiltIn::Photo);
        match self {
            Self::BuiltIn(BuiltIn::Best) if camera && channels == Channels::Rgb => &PHOTO,
            other => other,
        }
    }

    /// Whether it can be adapted to a noise level: not a model that does not know its own, nor a weight that was given.
    pub fn follows_noise(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::Model(model) => model.sigma > 0.0,
            Self::TotalVariation { lambda } => lambda.is_none(),
        }
    }

    /// The level to denoise for.
    pub fn level(&self, channels: Channels, noise: &Noise) -> f64 {
        let for_white = self.model(channels).is_none_or(|model| model.noise == PatchNoise::White);
        match &noise.model {
            Some(model) if model.kind == NoiseKind::Camera && for_white => CAMERA * noise.sigma,
            _ => noise.sigma,
        }
    }

    /// Refuses a strength, or a weight times it, that has no meaning, and a noise level for a model that cannot follow.
    pub fn check(&self, strength: f64, sigma: Option<f64>) -> Result<()> {
        check_not_negative("the strength", strength)?;
        match self {
            Self::TotalVariation { lambda: Some(lambda) } => check_not_negative("lambda", strength * lambda),
            Self::Model(model) if sigma.is_some() && model.sigma == 0.0 => Err(Error::invalid(
                "the model does not say which noise level it was trained for (its sigma is 0), so it cannot be \
                 adapted to one: leave sigma out, and use the strength",
            )),
            _ => Ok(()),
        }
    }

    /// What is done to a picture with these channels, for noise of level `sigma`, or without it as trained.
    /// Fails when a network for colour is to take a grey picture, or the level is more than a network can be adapted to.
    pub fn work(
        &self,
        channels: Channels,
        strength: f64,
        sigma: Option<f64>,
        tolerance: Option<f64>,
    ) -> Result<Work<'_>> {
        let Some(model) = self.model(channels) else {
            return Ok(Work::TotalVariation(self.weight(channels, strength, sigma).unwrap_or(0.0) as f32));
        };
        refuse!(channels.count() < model.network.architecture().colours() =>
            "the picture is grey, but the model was trained on colour: use a grey model or convert the picture to \
             RGB");
        let mut network = Cow::Borrowed(&model.network);
        let scale = scale(model, strength, sigma);
        if scale == 0.0 {
            return Ok(Work::Nothing);
        }
        if scale != 1.0 {
            network.to_mut().scale_thresholds(scale as f32);
            network.validate().map_err(|_| {
                invalid!("thresholds times {scale:e} are more than numbers of 32 bits can hold")
            })?;
        }
        if let Some(tolerance) = tolerance {
            solved::check(Some(&network), tolerance)?;
            return Ok(Work::Solved(network, tolerance));
        }
        let trained = if model.sigma > 0.0 { model.sigma } else { USUAL_LEVEL };
        let most = (scale < 1.0).then_some((MOST_CHANGE * scale * trained) as f32);
        Ok(Work::Network(network, most))
    }

    /// In a line for people.
    pub fn describe(&self, channels: Channels, strength: f64, sigma: Option<f64>) -> String {
        let Some(model) = self.model(channels) else {
            let weight = self.weight(channels, strength, sigma);
            return weight.map_or("total variation".into(), |w| format!("total variation, lambda {w:.4}"));
        };
        let text = format!("network with {}", model.network);
        match scale(model, strength, sigma) {
            1.0 => text,
            scale => format!("{text}, trained for sigma {:.4}, thresholds times {scale:.3}", model.sigma),
        }
    }

    /// The weight of total variation, if it was given or follows from the noise.
    fn weight(&self, channels: Channels, strength: f64, sigma: Option<f64>) -> Option<f64> {
        let given = if let Self::TotalVariation { lambda } = self { *lambda } else { None };
        let lambda = given.or(sigma.map(|sigma| variation::lambda_per_sigma(channels) * sigma))?;
        Some(strength * lambda)
    }
}

/// What the thresholds of a model are multiplied by.
fn scale(model: &Model, strength: f64, sigma: Option<f64>) -> f64 {
    let other = sigma.filter(|&sigma| sigma != model.sigma && model.sigma > 0.0);
    strength * other.map_or(1.0, |sigma| sigma / model.sigma)
}
