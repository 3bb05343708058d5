//! Safetensors files: how models and checkpoints are written, and what both say about their network.

use super::checksum;
use super::names::NamedOnce;
use crate::network::{Architecture, Network, Shaped};
use crate::{Error, Result};
use safetensors::{SafeTensors, tensor::TensorView};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// The numbers of a tensor.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// In single precision.
    Single(&'a [f32]),
    /// One in double precision.
    Double(f64),
    /// In double precision.
    Doubles(&'a [f64]),
}

impl Numbers<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Single(values) => size_of_val(*values),
            Self::Double(value) => size_of_val(value),
            Self::Doubles(values) => size_of_val(*values),
        }
    }

    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        match self {
            Self::Double(value) => to.write_all(&value.to_le_bytes()),
            Self::Doubles(values) => values.iter().try_for_each(|v| to.write_all(&v.to_le_bytes())),
            Self::Single(values) if cfg!(target_endian = "little") => {
                to.write_all(bytemuck::cast_slice(values))
            }
            Self::Single(values) => values.iter().try_for_each(|v| to.write_all(&v.to_le_bytes())),
        }
    }
}

/// A shape and the numbers.
pub(crate) fn singles(view: &TensorView<'_>) -> Shaped {
    let numbers = view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    (view.shape().to_vec(), numbers.collect())
}

pub(crate) fn doubles(view: &TensorView<'_>) -> Vec<f64> {
    view.data().as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// Text in the header of a file.
pub type Metadata = BTreeMap<String, String>;

/// Writes a safetensors file with a checksum, the same bytes for the same numbers. Doubles must come first, so that all
/// lie aligned.
pub fn write_tensors(
    to: &mut impl Write,
    metadata: &Metadata,
    tensors: &[(String, Vec<usize>, Numbers<'_>)],
) -> std::io::Result<()> {
    let mut metadata = metadata.clone();
    metadata.insert(checksum::NAME.into(), checksum::BLANK.into());
    let mut header = Map::from_iter([("__metadata__".to_string(), json!(metadata))]);
    let mut start = 0;
    for (name, shape, numbers) in tensors {
        let end = start + numbers.bytes();
        let dtype = if let Numbers::Single(_) = numbers { "F32" } else { "F64" };
        header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}));
        start = end;
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut start = [&(header.len() as u64).to_le_bytes()[..], &header].concat();
    // Hashing cannot fail.
    checksum::seal(&mut start, |hasher| {
        let _ = tensors.iter().try_for_each(|(_, _, numbers)| numbers.write(&mut Hashed(hasher)));
    });
    to.write_all(&start)?;
    tensors.iter().try_for_each(|(_, _, numbers)| numbers.write(to))?;
    to.flush()
}

struct Hashed<'a>(&'a mut crc32fast::Hasher);

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// All that the metadata of a file may say.
const NAMES: [&str; 13] = [
    "activations",
    "architecture",
    "border",
    "bounded",
    "format",
    "noise",
    "overstep",
    "provenance",
    "settings",
    "sigma",
    "step_scale",
    "unrolling",
    "version",
];

pub(crate) fn metadata_of(network: &Network<f32>) -> Metadata {
    let architecture = serde_json::to_string(&network.architecture()).unwrap_or_default();
    let mut metadata = Metadata::from([
        ("architecture".into(), architecture),
        ("unrolling".into(), json!(network.unrolling).to_string()),
        ("bounded".into(), network.bounded.to_string()),
        ("border".into(), network.border.to_string()),
        ("step_scale".into(), network.step_scale.to_string()),
    ]);
    metadata.extend(network.activations_as_json().map(|json| ("activations".to_string(), json)));
    metadata
}

pub(crate) struct Header {
    what: &'static str,
    metadata: HashMap<String, String>,
}

impl Header {
    /// The header of a file of this `format`, up to this `version`; `what` it is for people. All of the file that has
    /// nothing to do with its meaning is checked here: the checksum, names that stand twice or mean nothing.
    pub(crate) fn read(bytes: &[u8], what: &'static str, format: &str, most: u32) -> Result<Option<Self>> {
        let (length, header) =
            SafeTensors::read_metadata(bytes).map_err(|e| Error::invalid(e.to_string()))?;
        let header = Self { what, metadata: header.metadata().clone().unwrap_or_default() };
        if header.text("format") != Some(format) {
            return Ok(None);
        }
        let version = header.text("version").and_then(|version| version.parse::<u32>().ok());
        let version = version.ok_or_else(|| invalid!("the {what} does not say its format version"))?;
        refuse!(!(1..=most).contains(&version) =>
            "the {what} has format version {version}, but this program reads up to {most}: update proxlift");
        serde_json::from_slice::<NamedOnce>(&bytes[8..8 + length])
            .map_err(|e| invalid!("the header of the {what} cannot be read: {e}"))?;
        if header.metadata.contains_key(checksum::NAME) {
            checksum::verify(bytes, length)?;
        } else if let Some(name) = header.metadata.keys().find(|name| !NAMES.contains(&name.as_str())) {
            return Err(invalid!("the {what} is damaged: its header says {name:?}, which means nothing"));
        }
        Ok(Some(header))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.metadata.get(name).map(String::as_str)
    }

    /// A value that must be there, in JSON.
    pub(crate) fn parse<V: serde::de::DeserializeOwned>(&self, name: &str) -> Result<V> {
        let value = self.optional(name)?;
        value.ok_or_else(|| invalid!("the {} does not say its {name}", self.what))
    }

    pub(crate) fn optional<V: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<V>> {
        let value = self.text(name).map(serde_json::from_str).transpose();
        value.map_err(|e| invalid!("the {}'s {name} cannot be read: {e}", self.what))
    }

    /// The network, and how many tensors it took; `tensor` gives one by its name.
    pub(crate) fn network(
        &self,
        tensor: impl FnMut(&str) -> Result<Option<Shaped>>,
    ) -> Result<(Network<f32>, usize)> {
        let architecture: Architecture = self.parse("architecture")?;
        architecture.validate()?;
        let (mut network, taken) = Network::from_tensors(architecture, self.text("activations"), tensor)
            .map_err(|e| invalid!("the {} is inconsistent: {e}", self.what))?;
        network.unrolling = self.optional("unrolling")?.unwrap_or_default();
        network.bounded = self.optional("bounded")?.unwrap_or(false);
        network.border = self.optional("border")?.unwrap_or(0);
        // Files of version 0.1 say `overstep`.
        network.step_scale = self.optional("step_scale")?.or(self.optional("overstep")?).unwrap_or(1.0);
        network.validate()?;
        Ok((network, taken))
    }
}
