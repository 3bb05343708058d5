//! Model files: safetensors, with everything that inference needs in them.
//!
//! The tensors are those of [`network::tensors`](crate::network). The metadata hold the `format` ("proxlift"), its `version` (1 for
//! the paper's network, 3 for others of the family), the `architecture` and the `provenance` as JSON, the noise level
//! `sigma` that the network was trained for, and from version 2 on the `unrolling` and whether it is `bounded`,
//! from version 3 on the `border` and, in newer files, the `step_scale`; inference needs only the steps themselves.

use crate::image::io::write_atomically;
use crate::image::noise::check_sigma;
use crate::network::{Architecture, Network};
use crate::{Error, Result};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::path::Path;

/// The newest version of the format.
const VERSION: u32 = 3;

/// No model is larger; a file that is, is not read into memory.
const MAX_BYTES: u64 = 256 << 20;

/// How a model came to be: free names and values, such as `trainer`, `data`, `epochs`, `seed`, `command`.
pub type Provenance = BTreeMap<String, String>;

/// A network with what a user must know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The parameters.
    pub network: Network<f32>,
    /// The noise level that the network was trained for.
    pub sigma: f64,
    /// Where it comes from.
    pub provenance: Provenance,
}

impl Model {
    /// Writes the model to `path`: to a temporary file beside it, synced, then renamed.
    ///
    /// # Errors
    /// When the model is not valid or the file cannot be written; nothing half-written is left.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes()?;
        write_atomically(path, |file| file.write_all(&bytes).map_err(Error::io(path)))
    }

    /// Reads a model and checks every part of it.
    ///
    /// # Errors
    /// When the file cannot be read, is truncated, foreign, of a newer version, or inconsistent.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = std::fs::File::open(path).map_err(Error::io(path))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::file(path, "this file is too large to be a proxlift model"));
        }
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e.to_string()))
    }

    /// The bytes of the model file.
    ///
    /// # Errors
    /// When the network or `sigma` is not valid.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.network.validate()?;
        check_sigma(self.sigma)?;
        let architecture = self.network.architecture();
        let plain = self.network.is_plain() && self.network.border == 0 && self.network.step_scale == 1.0;
        let papers = self.network.has_one_clip() && plain;
        let version = if papers { 1 } else { VERSION };
        let json = |value: std::result::Result<String, serde_json::Error>| {
            value.map_err(|e| Error::invalid(format!("the metadata cannot be written: {e}")))
        };
        let mut metadata = HashMap::from([
            ("format".to_string(), "proxlift".to_string()),
            ("version".to_string(), version.to_string()),
            ("architecture".to_string(), json(serde_json::to_string(&architecture))?),
            ("sigma".to_string(), self.sigma.to_string()),
            ("provenance".to_string(), json(serde_json::to_string(&self.provenance))?),
        ]);
        if let Some(activations) = self.network.activations_as_json() {
            metadata.insert("activations".into(), activations);
        }
        if version > 1 {
            metadata.insert("unrolling".into(), json(serde_json::to_string(&self.network.unrolling))?);
            metadata.insert("bounded".into(), self.network.bounded.to_string());
            metadata.insert("border".into(), self.network.border.to_string());
            metadata.insert("step_scale".into(), self.network.step_scale.to_string());
        }
        let tensors = self.network.tensors().into_iter();
        let tensors: Vec<(String, Vec<usize>, Vec<u8>)> =
            tensors.map(|(name, shape, values)| (name, shape, to_le_bytes(values))).collect();
        let views = tensors
            .iter()
            .map(|(name, shape, data)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), data)?)))
            .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>();
        views
            .and_then(|views| safetensors::serialize(views, Some(metadata)))
            .map(in_order)
            .map_err(|e| Error::invalid(format!("the model cannot be written: {e}")))
    }

    /// A model from the bytes of its file.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = "this is not a proxlift model; give a .safetensors file that proxlift wrote";
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| {
            Error::invalid(format!("{foreign} (it is truncated or no safetensors file: {e})"))
        })?;
        let none = HashMap::new();
        let metadata = header.metadata().as_ref().unwrap_or(&none);
        if metadata.get("format").map(String::as_str) != Some("proxlift") {
            return Err(Error::invalid(foreign));
        }
        match metadata.get("version").and_then(|v| v.parse::<u32>().ok()) {
            Some(1..=VERSION) => {}
            Some(newer) => {
                return Err(Error::invalid(format!(
                    "the model has format version {newer}, but this program reads up to {VERSION}: update proxlift"
                )));
            }
            None => return Err(Error::invalid("the model does not say its format version")),
        }
        let architecture: Architecture = parse(metadata, "architecture")?;
        architecture.validate()?;
        let sigma: f64 = parse(metadata, "sigma")?;
        check_sigma(sigma)?;
        let provenance: Provenance = parse(metadata, "provenance")?;

        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| Error::invalid(format!("the model is truncated or damaged: {e}")))?;
        let activations = metadata.get("activations").map(String::as_str);
        let (mut network, taken) =
            Network::from_tensors(architecture, activations, |name| tensor(&tensors, name))?;
        if tensors.len() != taken {
            return Err(Error::invalid(format!(
                "the model holds {} tensors, but its architecture has {taken}",
                tensors.len()
            )));
        }
        if metadata.contains_key("unrolling") {
            (network.unrolling, network.bounded) =
                (parse(metadata, "unrolling")?, parse(metadata, "bounded")?);
        }
        if metadata.contains_key("border") {
            network.border = parse(metadata, "border")?;
        }
        // Files of version 0.1 say `overstep`.
        if let Some(name) = ["step_scale", "overstep"].into_iter().find(|name| metadata.contains_key(*name)) {
            network.step_scale = parse(metadata, name)?;
        }
        network.validate()?;
        Ok(Self { network, sigma, provenance })
    }
}

/// Sorts the names in the header, which come in random order, so that a model has the same bytes whenever it is
/// written. The header keeps its length.
fn in_order(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some((length, rest)) = bytes.split_first_chunk_mut::<8>() else { return bytes };
    let header = rest.get_mut(..u64::from_le_bytes(*length) as usize);
    if let Some(header) = header
        && let Ok(value) = serde_json::from_slice::<serde_json::Value>(header)
        && let Ok(sorted) = serde_json::to_vec(&value)
        && let Some((front, padding)) = header.split_at_mut_checked(sorted.len())
    {
        front.copy_from_slice(&sorted);
        padding.fill(b' ');
    }
    bytes
}

/// A JSON value of the metadata.
fn parse<V: serde::de::DeserializeOwned>(metadata: &HashMap<String, String>, name: &str) -> Result<V> {
    let text =
        metadata.get(name).ok_or_else(|| Error::invalid(format!("the model does not say its {name}")))?;
    serde_json::from_str(text).map_err(|e| Error::invalid(format!("the model's {name} cannot be read: {e}")))
}

/// The tensor `name`, which must be `f32`.
fn tensor(tensors: &SafeTensors<'_>, name: &str) -> Result<Option<Vec<f32>>> {
    let Ok(view) = tensors.tensor(name) else { return Ok(None) };
    if view.dtype() != Dtype::F32 {
        return Err(Error::invalid(format!("the tensor {name} is {:?}, but F32 is needed", view.dtype())));
    }
    Ok(Some(view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
}

fn to_le_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        let architecture = Architecture { depth: 3, features: 4, kernel: 3, channels: 1 };
        let network = Network::glorot(architecture, 0.1, 7).unwrap();
        let provenance = Provenance::from([("seed".into(), "7".into())]);
        Model { network, sigma: 0.1, provenance }
    }

    #[test]
    fn a_model_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let network = Network { border: 3, step_scale: 6.5, bounded: true, ..model().network };
        for model in [model(), Model { network, ..model() }] {
            model.save(&path).unwrap();
            assert_eq!(Model::load(&path).unwrap(), model);
        }
    }

    #[test]
    fn a_file_cut_at_any_byte_gets_an_error() {
        let bytes = model().to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert!(Model::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn a_flipped_byte_never_panics() {
        let bytes = model().to_bytes().unwrap();
        for i in 0..bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[i] ^= flip;
                let _ = Model::from_bytes(&damaged);
            }
        }
    }

    /// Replaces `from` by `to`, of the same length, in the header.
    fn edited(from: &str, to: &str) -> String {
        assert_eq!(from.len(), to.len());
        let mut bytes = model().to_bytes().unwrap();
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("text to replace");
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        Model::from_bytes(&bytes).unwrap_err().to_string()
    }

    #[test]
    fn every_inconsistency_has_its_sentence() {
        for (from, to, sentence) in [
            ("\"proxlift\"", "\"something", "it is truncated or no safetensors file"),
            (":\"proxlift\"", ":\"proxlofd\"", "this is not a proxlift model"),
            (
                "\"version\":\"1\"",
                "\"version\":\"9\"",
                "format version 9, but this program reads up to 3: update",
            ),
            ("\"version\":\"1\"", "\"version\":\"x\"", "does not say its format version"),
            ("\\\"depth\\\":3", "\\\"depth\\\":4", "lacks the tensor theta_4"),
            ("\\\"depth\\\":3", "\\\"depth\\\":2", "the tensor tau has another shape"),
            ("\\\"depth\\\":3", "\\\"depth\\\":1", "the depth K is 1, but it must be between 2 and"),
            ("\\\"kernel\\\":3", "\\\"kernel\\\":4", "size is 4, but it must be odd"),
            ("\\\"features\\\":4", "\\\"features\\\":5", "theta_0 has another shape"),
            ("\"sigma\":\"0.1\"", "\"sigma\":\"-.1\"", "the model's sigma cannot be read"),
            (
                "\"sigma\":\"0.1\"",
                "\"sigma\":\"-10\"",
                "sigma is -10, but it must be a finite number, 0 or more",
            ),
        ] {
            let told = edited(from, to);
            assert!(told.contains(sentence), "{from} -> {to}: {told}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        let mut bad = model();
        bad.network.theta[1].weights_mut()[0] = f32::NAN;
        assert!(bad.to_bytes().unwrap_err().to_string().contains("finite"));
    }
}
