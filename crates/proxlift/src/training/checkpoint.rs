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
use crate::model::tensors::{Header, Numbers, metadata_of, write_tensors};
use crate::network::Network;
use crate::{Error, Result};
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
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

impl Checkpoint {
    /// Writes the checkpoint to `path`, replacing what was there only once it is whole on the disk.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, |file| self.write(&mut BufWriter::new(file)).map_err(Error::io(path)))
    }

    /// Reads a checkpoint and checks every part of it.
    /// Fails when the file cannot be read, is truncated, foreign, of a newer version, or inconsistent.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e.to_string()))
    }

    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        let mut metadata = metadata_of(&self.network);
        let own = [
            ("format", FORMAT.to_string()),
            ("version", VERSION.to_string()),
            ("settings", self.settings.clone()),
        ];
        metadata.extend(own.map(|(name, value)| (name.to_string(), value)));
        let record = record_fields(&self.record);
        let doubles = [("scalar", &self.state.scalars), ("note", &self.notes), ("record", &record)];
        let mut tensors = Vec::new();
        for (kind, numbers) in doubles {
            let named =
                |(name, value): (&String, &f64)| (format!("{kind}/{name}"), vec![1], Numbers::Double(*value));
            tensors.extend(numbers.iter().map(named));
        }
        for (name, shape, values) in self.network.tensors() {
            tensors.push((format!("network/{name}"), shape, Numbers::Single(values)));
        }
        for (name, values) in &self.state.arrays {
            tensors.push((format!("state/{name}"), vec![values.len()], Numbers::Single(values)));
        }
        write_tensors(to, &metadata, &tensors)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = "this is not a checkpoint of proxlift";
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| invalid!("{foreign}, or it is truncated or damaged ({e})"))?;
        let header = Header::read(bytes, "checkpoint", FORMAT, VERSION)?;
        let header = header.ok_or_else(|| Error::invalid(foreign))?;
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
        let (network, _) = header.network(|name| Ok(of_network.remove(name)))?;
        if let Some(name) = of_network.keys().next() {
            return Err(unknown(name));
        }
        let settings = header.text("settings").unwrap_or_default().to_string();
        Ok(Self { network, state, record: record(&fields)?, notes, settings })
    }
}

fn unknown(name: &str) -> Error {
    invalid!("the checkpoint holds {name}, which is no part of one")
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

fn record_fields(record: &EpochRecord) -> BTreeMap<String, f64> {
    let fields = [
        ("epoch", record.epoch as f64),
        ("loss", record.loss),
        ("least_step", record.least_step),
        ("largest_step", record.largest_step),
        ("backtracks", record.backtracks as f64),
        ("energy_steps", record.energy_steps as f64),
        ("energy_rises", record.energy_rises as f64),
        ("seconds", record.seconds),
    ];
    let fields = fields.into_iter().chain(record.energy.map(|value| ("energy", value)));
    let blocks = record.blocks.iter().enumerate().map(|(i, &value)| (format!("block_{i}"), value));
    fields.map(|(name, value)| (name.to_string(), value)).chain(blocks).collect()
}

fn record(fields: &BTreeMap<String, f64>) -> Result<EpochRecord> {
    let field = |name: &str| {
        let value = fields.get(name).copied();
        value.ok_or_else(|| invalid!("the checkpoint does not say the {name} of its epoch"))
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
