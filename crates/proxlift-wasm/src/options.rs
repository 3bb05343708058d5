//! What the visitor chose.

use crate::error::{said, told};
use proxlift::denoiser::{Settled, settings};
use proxlift::model::BuiltIn;
use proxlift::named::from_name;
use proxlift::{Denoiser, denoiser::Noise};
use serde::Deserialize;
use wasm_bindgen::JsError;

/// The settings of the page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// `best`, `small`, `photo` or `tv`.
    pub model: String,
    /// The level, unless it is estimated.
    pub sigma: Option<f64>,
    /// The kind of noise, unless it is found.
    pub kind: Option<String>,
    pub strength: f64,
    /// How many workers share the tiles.
    pub workers: usize,
}

impl Options {
    pub fn parse(json: &str) -> Result<Self, JsError> {
        serde_json::from_str(json).map_err(said)
    }

    pub fn denoiser(&self) -> Result<Denoiser, JsError> {
        let mut denoiser = match BuiltIn::named(&self.model) {
            Some(model) => Denoiser::from(model),
            None => Denoiser::total_variation(),
        };
        if let Some(kind) = &self.kind {
            denoiser = denoiser.noise(from_name(kind).map_err(told)?);
        }
        if let Some(sigma) = self.sigma {
            denoiser = denoiser.sigma(sigma);
        }
        Ok(denoiser.strength(self.strength))
    }

    /// Whether what is settled about a picture is the same.
    pub fn settles_as(&self, other: &Self) -> bool {
        (&self.model, self.sigma, &self.kind) == (&other.model, other.sigma, &other.kind)
    }

    /// The line for the metadata of a result, as the program writes it.
    pub fn settings(&self, built_in: Option<BuiltIn>, noise: Option<&Noise>) -> String {
        let what = match built_in {
            Some(model) => format!("model {}", model.name()),
            None => format!("method {}", self.model),
        };
        settings(&what, noise, None, self.strength)
    }
}

/// What a worker needs to know about a tile.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub options: Options,
    pub settled: Settled,
    /// Bytes that a tile takes.
    #[serde(default)]
    pub tile_bytes: usize,
    /// Of the whole picture.
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    /// Which tile.
    #[serde(default)]
    pub index: usize,
}
