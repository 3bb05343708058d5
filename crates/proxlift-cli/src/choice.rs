//! The flags that choose what removes noise, and the choice made ready for pictures of any kind and noise.

use crate::denoiser::{COLOUR_LAMBDA, DEFAULT_SIGMA, Denoiser, GREY_LAMBDA, channels_of};
use crate::flags::{check_not_negative, number};
use proxlift::image::Channels;
use proxlift::model::BuiltIn;
use proxlift::model::Model;
use proxlift::{Error, Result};
use std::path::Path;

/// The flags that choose a denoiser.
#[derive(clap::Args)]
pub struct Choice {
    /// A trained network: `best` or `small` (built in, faster), or a file that `proxlift train` wrote [default: best]
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "method")]
    model: Option<String>,
    /// A classical method instead of a network
    #[arg(long)]
    method: Option<Method>,
    /// The weight of total variation in 1/2 ||x - z||^2 + lambda TV(x) [default: 0.74 sigma; 1.1 sigma in colour]
    #[arg(long, value_name = "X", value_parser = number, allow_negative_numbers = true)]
    #[arg(requires = "method", conflicts_with = "model")]
    lambda: Option<f64>,
    /// Denoise more (above 1) or less (below 1); 0 leaves the picture as it is
    #[arg(long, value_name = "X", value_parser = number, allow_negative_numbers = true, default_value = "1")]
    strength: f64,
}

/// Methods without a model.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Method {
    /// Total variation (Rudin, Osher, Fatemi 1992): isotropic, over all channels jointly in colour
    Tv,
}

/// A choice with its models loaded.
pub struct Chosen {
    source: Source,
    strength: f64,
}

enum Source {
    BuiltIn { grey: Box<Model>, colour: Box<Model> },
    File { path: String, model: Box<Model> },
    TotalVariation { lambda: Option<f64> },
}

impl Choice {
    /// Loads what was chosen.
    pub fn load(&self) -> Result<Chosen> {
        check_not_negative("--strength", self.strength)?;
        let source = match self.method {
            Some(Method::Tv) => Source::TotalVariation { lambda: self.lambda },
            None => Source::model(self.model_name())?,
        };
        if let Source::TotalVariation { lambda: Some(lambda) } = source {
            check_not_negative("--lambda", self.strength * lambda)?;
        }
        Ok(Chosen { source, strength: self.strength })
    }

    /// The model's name or file, or the method's name.
    pub fn name(&self) -> &str {
        if self.method.is_some() { "tv" } else { self.model_name() }
    }

    fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or(BuiltIn::Best.name())
    }
}

/// The file of a model that is not built in; what is neither gets the names that there are.
pub fn check_file(name: &str) -> Result<&Path> {
    let path = Path::new(name);
    if path.exists() {
        return Ok(path);
    }
    let names = BuiltIn::ALL.map(BuiltIn::name).join(" and ");
    Err(Error::file(
        path,
        format!("there is no such file, nor such a model; the models built in are {names}"),
    ))
}

impl Source {
    /// A model built in, or a file.
    fn model(name: &str) -> Result<Self> {
        match BuiltIn::named(name) {
            Some(built_in) => {
                let load = |channels| built_in.load(channels).map(Box::new);
                Ok(Self::BuiltIn { grey: load(Channels::Grey)?, colour: load(Channels::Rgb)? })
            }
            None => {
                let model = Box::new(Model::load(check_file(name)?)?);
                Ok(Self::File { path: name.to_string(), model })
            }
        }
    }
}

impl Chosen {
    /// A model built in, or a file.
    ///
    /// # Errors
    /// When it is neither, or no model.
    pub fn model(name: &str) -> Result<Self> {
        Ok(Self { source: Source::model(name)?, strength: 1.0 })
    }

    /// The only pictures that it takes; what is built in has a model for each kind.
    pub fn channels(&self) -> Option<Channels> {
        match &self.source {
            Source::File { model, .. } => Some(channels_of(&model.network)),
            Source::BuiltIn { .. } | Source::TotalVariation { .. } => None,
        }
    }

    /// Whether it can be set for a noise level: not when lambda was given, nor when a model does not know the level that
    /// it was trained for.
    pub fn follows_sigma(&self) -> bool {
        match &self.source {
            Source::BuiltIn { .. } => true,
            Source::File { model, .. } => model.sigma > 0.0,
            Source::TotalVariation { lambda } => lambda.is_none(),
        }
    }

    /// Whether one picture already keeps all threads busy.
    pub fn is_parallel(&self) -> bool {
        !matches!(self.source, Source::TotalVariation { .. })
    }

    /// What removes the noise of pictures with these `channels`, set for noise of level `sigma`; without it, for the noise
    /// that the model was trained for, or for [`DEFAULT_SIGMA`].
    pub fn denoiser(&self, channels: Channels, sigma: Option<f64>) -> Result<Denoiser> {
        if let Some(sigma) = sigma {
            check_not_negative("--sigma", sigma)?;
        }
        let strength = self.strength;
        match &self.source {
            Source::BuiltIn { grey, colour } => {
                let model = if channels == Channels::Grey { grey } else { colour };
                Denoiser::from_model((**model).clone(), sigma, strength)
            }
            Source::File { path, model } => Denoiser::from_model((**model).clone(), sigma, strength)
                .map_err(|e| Error::file(path, e.to_string())),
            Source::TotalVariation { lambda } => {
                let sigma = sigma.unwrap_or(DEFAULT_SIGMA);
                let weight = |per_sigma: f64| strength * lambda.unwrap_or(per_sigma * sigma);
                Ok(Denoiser::total_variation(weight(GREY_LAMBDA), weight(COLOUR_LAMBDA), sigma))
            }
        }
    }
}
