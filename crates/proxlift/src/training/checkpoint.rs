//! Checkpoints: a training that was stopped, whole in one file, from which it goes on to the same bits.
//!
//! A safetensors file with these tensors; all numbers come back to the bit.
//!
//! | tensor | type | |
//! |---|---|---|
//! | `network/theta_k`, `network/tau`, .. | `f32` | the network, as in a model file |
//! | `state/NAME` | `f32` | the arrays of the trainer's [`Snapshot`] |
//! | `scalar/NAME` | `f64` | its single numbers |
//! | `record/NAME` | `f64` | the last [`EpochRecord`] |
//! | `note/NAME` | `f64` | what the program around the training wants to find again |
//!
//! The metadata hold the `format` ("proxlift checkpoint"), its `version`, the `architecture` as JSON and the
//! `settings`, a name for everything the training depends on. The file is written beside its place, synced, and
//! renamed: whenever the power fails, there is a whole checkpoint, the old one or the new one.

use super::{EpochRecord, Snapshot};
use crate::image::io::write_atomically;
use crate::network::{Architecture, Network};
use crate::{Error, Result};
use safetensors::{Dtype, SafeTensors};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// The version of the format that this library writes, and the newest that it reads.
const VERSION: u32 = 1;
const FORMAT: &str = "proxlift checkpoint";

/// A training between two epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The network.
    pub network: Network<f32>,
    /// What [`Trainer::save`](super::Trainer::save) gave.
    pub state: Snapshot,
    /// The last epoch.
    pub record: EpochRecord,
    /// Numbers of the program around the training, such as the best score so far.
    pub notes: BTreeMap<String, f64>,
    /// A name for the settings; a training with others must not go on from here.
    pub settings: String,
}

/// A tensor on its way into a file.
enum Tensor<'a> {
    Single(Vec<usize>, &'a [f32]),
    Double(f64),
}

impl Tensor<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Single(_, values) => size_of_val(*values),
            Self::Double(_) => size_of::<f64>(),
        }
    }

    fn describe(&self, start: usize) -> Value {
        let (dtype, shape) = match self {
            Self::Single(shape, _) => ("F32", shape.clone()),
            Self::Double(_) => ("F64", vec![1]),
        };
        json!({"dtype": dtype, "shape": shape, "data_offsets": [start, start + self.bytes()]})
    }

    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        match self {
            Self::Double(value) => to.write_all(&value.to_le_bytes()),
            Self::Single(_, values) if cfg!(target_endian = "little") => {
                to.write_all(bytemuck::cast_slice(values))
            }
            Self::Single(_, values) => values.iter().try_for_each(|v| to.write_all(&v.to_le_bytes())),
        }
    }
}

impl Checkpoint {
    /// Writes the checkpoint to `path`, replacing what was there only once it is whole on the disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, |file| self.write(&mut BufWriter::new(file)).map_err(Error::io(path)))
    }

    /// Reads a checkpoint and checks every part of it.
    ///
    /// # Errors
    /// When the file cannot be read, is truncated, foreign, of a newer version, or inconsistent.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e.to_string()))
    }

    /// Numbers in double precision come first, so that everything lies aligned.
    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        let tensors = self.tensors();
        let metadata = json!({
            "format": FORMAT,
            "version": VERSION.to_string(),
            "architecture": serde_json::to_string(&self.network.architecture())?,
            "settings": self.settings,
            "unrolling": serde_json::to_string(&self.network.unrolling)?,
            "bounded": self.network.bounded.to_string(),
            "border": self.network.border.to_string(),
            "step_scale": self.network.step_scale.to_string(),
        });
        let mut metadata = metadata;
        if let Some(activations) = self.network.activations_as_json() {
            metadata["activations"] = activations.into();
        }
        let mut header = Map::from_iter([("__metadata__".to_string(), metadata)]);
        let mut start = 0;
        for (name, tensor) in &tensors {
            header.insert(name.clone(), tensor.describe(start));
            start += tensor.bytes();
        }
        let mut header = serde_json::to_vec(&header)?;
        header.resize(header.len().next_multiple_of(8), b' ');
        to.write_all(&(header.len() as u64).to_le_bytes())?;
        to.write_all(&header)?;
        tensors.iter().try_for_each(|(_, tensor)| tensor.write(to))?;
        to.flush()
    }

    fn tensors(&self) -> Vec<(String, Tensor<'_>)> {
        let mut tensors = Vec::new();
        let mut double =
            |kind, name: &str, value| tensors.push((format!("{kind}/{name}"), Tensor::Double(value)));
        self.state.scalars.iter().for_each(|(name, value)| double("scalar", name, *value));
        self.notes.iter().for_each(|(name, value)| double("note", name, *value));
        record_fields(&self.record).into_iter().for_each(|(name, value)| double("record", &name, value));
        let mut single = |kind, name: &str, shape, values| {
            tensors.push((format!("{kind}/{name}"), Tensor::Single(shape, values)))
        };
        for (name, shape, values) in self.network.tensors() {
            single("network", &name, shape, values);
        }
        for (name, values) in &self.state.arrays {
            single("state", name, vec![values.len()], values);
        }
        tensors
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = "this is not a checkpoint of proxlift";
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| Error::invalid(format!("{foreign}, or it is truncated or damaged ({e})")))?;
        let (_, header) =
            SafeTensors::read_metadata(bytes).map_err(|e| Error::invalid(format!("{foreign} ({e})")))?;
        let none = HashMap::new();
        let metadata = header.metadata().as_ref().unwrap_or(&none);
        let text = |name: &str| metadata.get(name).map(String::as_str);
        if text("format") != Some(FORMAT) {
            return Err(Error::invalid(foreign));
        }
        match text("version").and_then(|v| v.parse::<u32>().ok()) {
            Some(1..=VERSION) => {}
            Some(newer) => {
                return Err(Error::invalid(format!(
                    "the checkpoint has format version {newer}, but this program reads up to {VERSION}: update proxlift"
                )));
            }
            None => return Err(Error::invalid("the checkpoint does not say its format version")),
        }
        let architecture = text("architecture").and_then(|text| serde_json::from_str(text).ok());
        let architecture: Architecture =
            architecture.ok_or_else(|| Error::invalid("the checkpoint does not say its architecture"))?;
        architecture.validate()?;
        let (singles, doubles) = sort(&tensors)?;
        let mut state = Snapshot::default();
        let mut notes = BTreeMap::new();
        let mut fields = BTreeMap::new();
        for (name, value) in doubles {
            let map = match name.split_once('/') {
                Some(("scalar", _)) => &mut state.scalars,
                Some(("note", _)) => &mut notes,
                Some(("record", _)) => &mut fields,
                _ => return Err(unknown(&name)),
            };
            map.insert(name[name.find('/').unwrap_or(0) + 1..].to_string(), value);
        }
        let mut of_network = BTreeMap::new();
        for (name, values) in singles {
            match name.split_once('/') {
                Some(("state", rest)) => {
                    state.arrays.insert(rest.to_string(), Arc::new(values));
                }
                Some(("network", rest)) => {
                    of_network.insert(rest.to_string(), values);
                }
                _ => return Err(unknown(&name)),
            }
        }
        let (mut network, _) =
            Network::from_tensors(architecture, text("activations"), |name| Ok(of_network.remove(name)))
                .map_err(|e| Error::invalid(format!("the checkpoint is inconsistent: {e}")))?;
        if let Some(unrolling) = text("unrolling").and_then(|text| serde_json::from_str(text).ok()) {
            (network.unrolling, network.bounded) = (unrolling, text("bounded") == Some("true"));
        }
        network.border = text("border").and_then(|text| text.parse().ok()).unwrap_or(0);
        network.step_scale =
            text("step_scale").or(text("overstep")).and_then(|text| text.parse().ok()).unwrap_or(1.0);
        if let Some(name) = of_network.keys().next() {
            return Err(unknown(name));
        }
        let settings = text("settings").unwrap_or_default().to_string();
        Ok(Self { network, state, record: record(&fields)?, notes, settings })
    }
}

fn unknown(name: &str) -> Error {
    Error::invalid(format!("the checkpoint holds {name}, which is no part of one"))
}

type Named<T> = Vec<(String, T)>;

/// The arrays and the single numbers.
fn sort(tensors: &SafeTensors<'_>) -> Result<(Named<Vec<f32>>, Named<f64>)> {
    let (mut singles, mut doubles) = (Vec::new(), Vec::new());
    for (name, view) in tensors.iter() {
        match (view.dtype(), view.shape()) {
            (Dtype::F64, [1]) => {
                let value = view.data().as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).next();
                doubles.extend(value.map(|value| (name.to_string(), value)));
            }
            (Dtype::F32, _) => {
                let values = view.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
                singles.push((name.to_string(), values));
            }
            _ => return Err(unknown(name)),
        }
    }
    Ok((singles, doubles))
}

fn record_fields(record: &EpochRecord) -> Vec<(String, f64)> {
    let mut fields = vec![
        ("epoch", record.epoch as f64),
        ("loss", record.loss),
        ("least_step", record.least_step),
        ("largest_step", record.largest_step),
        ("backtracks", record.backtracks as f64),
        ("energy_steps", record.energy_steps as f64),
        ("energy_rises", record.energy_rises as f64),
        ("seconds", record.seconds),
    ];
    fields.extend(record.energy.map(|value| ("energy", value)));
    let blocks = record.blocks.iter().enumerate().map(|(i, &value)| (format!("block_{i}"), value));
    fields.into_iter().map(|(name, value)| (name.to_string(), value)).chain(blocks).collect()
}

fn record(fields: &BTreeMap<String, f64>) -> Result<EpochRecord> {
    let field = |name: &str| {
        let value = fields.get(name).copied();
        value.ok_or_else(|| Error::invalid(format!("the checkpoint does not say the {name} of its epoch")))
    };
    Ok(EpochRecord {
        epoch: field("epoch")? as usize,
        loss: field("loss")?,
        energy: field("energy").ok(),
        energy_steps: field("energy_steps").unwrap_or(0.0) as usize,
        energy_rises: field("energy_rises").unwrap_or(0.0) as usize,
        blocks: (0..).map_while(|i| field(&format!("block_{i}")).ok()).collect(),
        least_step: field("least_step")?,
        largest_step: field("largest_step")?,
        backtracks: field("backtracks")? as usize,
        seconds: field("seconds")?,
    })
}
