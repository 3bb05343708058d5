//! Model files: safetensors, with everything that inference needs in them.
//!
//! The tensors are those of [`network::tensors`](crate::network). The metadata hold the `format` ("proxlift"), its `version` (1 for
//! the paper's network, 3 for others of the family), the `architecture` and the `provenance` as JSON, the noise level
//! `sigma` that the network was trained for, and from version 2 on the `unrolling` and whether it is `bounded`,
//! from version 3 on the `border` and, in newer files, the `step_scale`; inference needs only the steps themselves.
//! The `noise` is there if it was not white. From proxlift 0.5 on, a `checksum` is verified on reading.

use super::tensors::{Header, Numbers, metadata_of, singles, write_tensors};
use crate::dataset::PatchNoise;
use crate::storage::{self, write_atomically};
use crate::{Error, Result, image::noise::check_sigma, network::Network, network::Shaped};
use safetensors::{Dtype, SafeTensors};
use std::io::Write;
use std::{collections::BTreeMap, path::Path};

const VERSION: u32 = 3;
const FORMAT: &str = "proxlift";

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
    /// The noise that it was trained for.
    pub noise: PatchNoise,
    /// Where it comes from.
    pub provenance: Provenance,
}

impl Model {
    /// Writes the model to `path`: to a temporary file beside it, synced, then renamed.
    /// Fails when the model is not valid or the file cannot be written; nothing half-written is left.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes()?;
        write_atomically(path, |file| file.write_all(&bytes).map_err(Error::io(path)))
    }

    /// Reads a model and checks every part of it.
    /// Fails when the file cannot be read, is truncated, foreign, of a newer version, or inconsistent.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = storage::read(path, MAX_BYTES, "a proxlift model")?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e.to_string()))
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.network.validate()?;
        check_sigma(self.sigma)?;
        let plain = self.network.is_plain() && self.network.border == 0 && self.network.step_scale == 1.0;
        let papers = self.network.has_one_clip() && plain;
        let mut metadata = metadata_of(&self.network);
        if papers {
            // The first version of the format, which every program reads.
            metadata.retain(|name, _| name == "architecture");
        }
        metadata.extend([
            ("format".to_string(), FORMAT.to_string()),
            ("version".to_string(), if papers { 1 } else { VERSION }.to_string()),
            ("sigma".to_string(), self.sigma.to_string()),
            ("provenance".to_string(), serde_json::json!(self.provenance).to_string()),
        ]);
        if self.noise != PatchNoise::White {
            metadata.insert("noise".to_string(), serde_json::json!(self.noise).to_string());
        }
        let tensors = self.network.tensors().into_iter();
        let tensors: Vec<_> =
            tensors.map(|(name, shape, values)| (name, shape, Numbers::Single(values))).collect();
        let mut bytes = Vec::new();
        write_tensors(&mut bytes, &metadata, &tensors)
            .map_err(|e| invalid!("the model cannot be written: {e}"))?;
        Ok(bytes)
    }

    /// A model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = "this is not a proxlift model; give a .safetensors file that proxlift wrote";
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| invalid!("{foreign} (it is truncated or no safetensors file: {e})"))?;
        let header = Header::read(bytes, "model", FORMAT, VERSION)?;
        let header = header.ok_or_else(|| Error::invalid(foreign))?;
        let sigma: f64 = header.parse("sigma")?;
        check_sigma(sigma)?;
        let provenance: Provenance = header.parse("provenance")?;
        let (network, taken) = header.network(|name| tensor(&tensors, name))?;
        refuse!(tensors.len() != taken =>
            "the model holds {} tensors, but its architecture has {taken}", tensors.len());
        let noise = header.optional("noise")?.unwrap_or_default();
        Ok(Self { network, sigma, noise, provenance })
    }
}

fn tensor(tensors: &SafeTensors<'_>, name: &str) -> Result<Option<Shaped>> {
    let Ok(view) = tensors.tensor(name) else { return Ok(None) };
    let dtype = view.dtype();
    refuse!(dtype != Dtype::F32 => "the tensor {name} is {dtype:?}, but F32 is needed");
    Ok(Some(singles(&view)))
}
