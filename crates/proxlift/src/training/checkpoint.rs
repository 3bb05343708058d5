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
//! renamed: whenever the power fails, there is a whole checkpoint, the old one or the new one. A checksum is verified
//! on reading.

use super::{EpochRecord, Notes, Snapshot};
use crate::model::tensors::{Header, Numbers, metadata_of, singles, write_tensors};
use crate::storage::{self, write_atomically, write_keeping};
use crate::{Error, Result, network::Network};
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the format that this library writes, and the newest that it reads.
const VERSION: u32 = 1;
const FORMAT: &str = "proxlift checkpoint";

/// No checkpoint is larger; a file that is, is not read into memory.
const MAX_BYTES: u64 = 16 << 30;

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
    pub notes: Notes,
    /// A name for the settings; a training with others must not go on from here.
    pub settings: String,
}

impl Checkpoint {
    /// Writes the checkpoint to `path`, replacing what was there only once it is whole on the disk.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, |file| self.write(&mut BufWriter::new(file)).map_err(Error::io(path)))
    }

    /// The same, with what was there kept as [`Checkpoint::previous`].
    pub fn save_keeping_previous(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_keeping(path, &Self::previous(path), |file| {
            self.write(&mut BufWriter::new(file)).map_err(Error::io(path))
        })
    }

    /// Where the checkpoint is kept that was at `path` before the last one: should that be damaged, the training can go on
    /// from here.
    pub fn previous(path: &Path) -> PathBuf {
        path.with_file_name("previous.safetensors")
    }

    /// Reads a checkpoint and checks every part of it.
    /// Fails when the file cannot be read, is truncated, foreign, of a newer version, or inconsistent.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = storage::read(path, MAX_BYTES, "a checkpoint")?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e.to_string()))
    }

    /// The bytes of the checkpoint's file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).map_err(|e| invalid!("the checkpoint cannot be written: {e}"))?;
        Ok(bytes)
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
        let doubles = doubles.into_iter().flat_map(|(kind, numbers)| {
            numbers.iter().map(move |(name, v)| (format!("{kind}/{name}"), vec![1], Numbers::Double(*v)))
        });
        let network = self.network.tensors().into_iter();
        let network = network.map(|(name, shape, v)| (format!("network/{name}"), shape, Numbers::Single(v)));
        let state = self.state.arrays.iter();
        let state = state.map(|(name, v)| (format!("state/{name}"), vec![v.len()], Numbers::Single(v)));
        let tensors: Vec<_> = doubles.chain(network).chain(state).collect();
        write_tensors(to, &metadata, &tensors)
    }

    /// A checkpoint from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = "this is not a checkpoint of proxlift";
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| invalid!("{foreign}, or it is truncated or damaged ({e})"))?;
        let header = Header::read(bytes, "checkpoint", FORMAT, VERSION)?;
        let header = header.ok_or_else(|| Error::invalid(foreign))?;
        let (mut state, mut notes, mut fields) = (Snapshot::default(), Notes::new(), BTreeMap::new());
        let mut of_network = BTreeMap::new();
        for (full, view) in tensors.iter() {
            let (kind, name) = full.split_once('/').unwrap_or(("", full));
            let (name, double) =
                (name.to_string(), || view.data().first_chunk().map(|b| f64::from_le_bytes(*b)));
            match (kind, view.dtype(), view.shape()) {
                ("scalar", Dtype::F64, [1]) => state.scalars.extend(double().map(|value| (name, value))),
                ("note", Dtype::F64, [1]) => notes.extend(double().map(|value| (name, value))),
                ("record", Dtype::F64, [1]) => fields.extend(double().map(|value| (name, value))),
                ("state", Dtype::F32, _) => drop(state.arrays.insert(name, Arc::new(singles(&view).1))),
                ("network", Dtype::F32, _) => drop(of_network.insert(name, singles(&view))),
                _ => return Err(unknown(full)),
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
    // What counts epochs or steps is a whole number.
    let counts = ["epoch", "backtracks", "energy_steps", "energy_rises"];
    let counts = counts.iter().filter_map(|name| fields.get(*name));
    refuse!(counts.into_iter().any(|&count| !(0.0..9e15).contains(&count) || count.fract() != 0.0) =>
        "the checkpoint counts something in fractions or beyond all bounds");
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
