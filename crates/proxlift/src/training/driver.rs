//! The loop around every trainer: epochs, batches, observers. It knows no trainer by name.

use super::{Batch, Report, Trainer};
use crate::dataset::{Batches, Order, Patches, Visit};
use crate::{
    Error, Result,
    engine::Engine,
    field::{Field, phases::apart},
    memory,
    network::Network,
};
use std::{collections::BTreeMap, time::Instant};

/// How long and in which order to train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Passes over the training set.
    pub epochs: usize,
    /// Samples in a mini-batch of the first epoch.
    pub batch: usize,
    /// Samples in a mini-batch of the last epoch; between them the size grows, or falls, by the same factor each epoch.
    pub last_batch: usize,
    /// The order of the samples: the same in every epoch, or shuffled from a seed.
    pub order: Order,
    /// Whether every visit to a sample gets fresh noise.
    pub fresh_noise: bool,
    /// Whether every visit cuts the patch at a fresh place.
    pub fresh_places: bool,
}

impl Plan {
    /// Samples in a mini-batch of `epoch`, from 0.
    pub fn batch_of(&self, epoch: usize) -> usize {
        let (first, last) = (self.batch.max(1) as f64, self.last_batch.max(1) as f64);
        let share = epoch as f64 / (self.epochs.max(2) - 1) as f64;
        (first * (last / first).powf(share)).round() as usize
    }
}

/// What an epoch was, averaged over its samples.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpochRecord {
    /// Epochs done, from 1.
    pub epoch: usize,
    /// The feed-forward loss `1/2 ||x^ - x||^2` of a sample when it was visited.
    pub loss: f64,
    /// `E` of a sample after its step, where the trainer has one.
    pub energy: Option<f64>,
    /// Batches whose `E` is known before and after their step.
    #[serde(default)]
    pub energy_steps: usize,
    /// Those whose `E` the step raised, by more than rounding.
    #[serde(default)]
    pub energy_rises: usize,
    /// The blocks of `E`: the penalties of layers `1..K-1`, then the loss part. Empty where the trainer has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<f64>,
    /// The least step of a layer in the epoch; zero if none was taken.
    pub least_step: f64,
    /// The largest.
    pub largest_step: f64,
    /// Steps that were tried and refused.
    pub backtracks: usize,
    /// Seconds spent training since the start, without evaluation.
    pub seconds: f64,
}

/// A batch whose loss is so many times that of the first, or 1 if that is more (a black patch without noise has none),
/// shows that the training diverged.
const DIVERGED: f64 = 1e6;

/// A rise of `E` below this share of it cannot be told from rounding in single precision.
pub const ENERGY_ROUNDING: f64 = 1e-5;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// Go on.
    On,
    /// Stop after this epoch.
    Stop,
}

/// How far a training is after a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The epoch that the batch belongs to, from 1.
    pub epoch: usize,
    /// Samples visited since the start, as often as they were.
    pub done: usize,
    /// Samples to be visited in all epochs.
    pub all: usize,
    /// The mean loss of the batch.
    pub loss: f64,
}

/// Numbers that an observer wants to find again in a checkpoint, such as the best score so far.
pub type Notes = BTreeMap<String, f64>;

/// Who watches a training: progress bars, scores. Its time does not count as training.
///
/// A closure that takes an [`EpochRecord`] is one, and so is `()`.
pub trait Observer {
    /// An epoch begins, counted from 1.
    fn begin(&mut self, _epoch: usize) {}

    /// A batch is done. To stop here ends the training at once, with [`Error::Cancelled`] and without the epoch.
    fn batch(&mut self, _progress: &Progress) -> Go {
        Go::On
    }

    /// An epoch is done. Fails with whatever keeps the observer from its work; the training ends with it.
    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<Go>;

    /// A [`Session`](super::Session) is about to write a checkpoint, and asks what is to be kept in it; none if it should
    /// not be written.
    fn checkpoint(&mut self, _record: &EpochRecord, _network: &Network<f32>) -> Result<Option<Notes>> {
        Ok(Some(Notes::new()))
    }
}

impl Observer for () {
    fn epoch(&mut self, _: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        Ok(Go::On)
    }
}

impl<F: FnMut(&EpochRecord)> Observer for F {
    fn epoch(&mut self, record: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        self(record);
        Ok(Go::On)
    }
}

/// Trains `network` from epoch `first.epoch` on (a record of zeros at the start) to the end of the plan.
/// Fails when the patches do not fit the network, the training diverges ([`Error::Diverged`], at the first batch that
/// shows it), or the observer fails.
pub fn train(
    engine: &dyn Engine<f32>,
    network: &mut Network<f32>,
    trainer: &mut dyn Trainer,
    patches: &Patches,
    plan: &Plan,
    first: &EpochRecord,
    observer: &mut dyn Observer,
) -> Result<()> {
    let architecture = network.architecture();
    let size = patches.spec().size;
    let stride = architecture.stride();
    refuse!(!size.is_multiple_of(stride) => "patches of {size} pixels cannot be taken apart with stride {stride}");
    let grid = architecture.grid(size / stride, size / stride)?;
    let ranks = engine.ranks();
    trainer.join(&|sample| patches.home(sample) % ranks.size() == ranks.rank());
    let mut batches = Batches::new(patches.len(), plan.order)?;
    let all = patches.len() * plan.epochs;
    let mut done = patches.len() * first.epoch;
    let mut seconds = first.seconds;
    let mut first_loss = None;
    let (mut x, mut z) = (Vec::new(), Vec::new());
    for epoch in first.epoch..plan.epochs {
        observer.begin(epoch + 1);
        let start = Instant::now();
        let mut record =
            EpochRecord { epoch: epoch + 1, least_step: f64::INFINITY, ..EpochRecord::default() };
        let visit = Visit {
            place: if plan.fresh_places { epoch as u64 } else { 0 },
            noise: if plan.fresh_noise { epoch as u64 } else { 0 },
        };
        let mut batch: Option<Batch> = None;
        for (i, indices) in batches.epoch(epoch as u64, plan.batch_of(epoch)).enumerate() {
            let own = ranks.spread(indices.iter().map(|&i| patches.home(i)));
            let own: Vec<usize> = own.into_iter().map(|place| indices[place]).collect();
            x.resize(own.len() * patches.values(), 0.0);
            z.resize(x.len(), 0.0);
            patches.fill_among(ranks, (indices, &own), visit, &mut x, &mut z);
            let fits = batch.take().filter(|b| b.z.samples() == own.len());
            let zeros = || Field::zeros(own.len(), architecture.channels, grid);
            let mut now = match fits {
                Some(batch) => batch,
                None => memory::or_error(|| Ok(Batch { z: zeros(), x: zeros(), indices: Vec::new() }))?,
            };
            for (batch, patches) in [(&mut now.z, &z), (&mut now.x, &x)] {
                batch.load(&apart(patches, (size, size), stride))?;
            }
            now.indices.clear();
            now.indices.extend_from_slice(indices);
            let epochs = epoch as f64 + (i * plan.batch_of(epoch)) as f64 / patches.len() as f64;
            let step = || trainer.step(engine, network, &now, epochs / plan.epochs as f64);
            let report = memory::or_error(step)?;
            done += indices.len();
            let loss = report.loss / indices.len() as f64;
            let usual = first_loss.get_or_insert(loss).max(1.0);
            if !loss.is_finite() || loss > DIVERGED * usual {
                return ranks.agree(Err(Error::Diverged { epoch: epoch + 1 }));
            }
            add(&mut record, &report);
            if observer.batch(&Progress { epoch: epoch + 1, done, all, loss }) == Go::Stop {
                return Err(Error::Cancelled);
            }
            batch = Some(now);
        }
        let mut weights = network.filters().flat_map(|theta| theta.weights());
        if weights.any(|w| !w.is_finite()) {
            return ranks.agree(Err(Error::Diverged { epoch: epoch + 1 }));
        }
        if !record.least_step.is_finite() {
            record.least_step = 0.0;
        }
        let count = patches.len() as f64;
        record.loss /= count;
        record.energy = record.energy.map(|e| e / count);
        record.blocks.iter_mut().for_each(|block| *block /= count);
        seconds += start.elapsed().as_secs_f64();
        record.seconds = seconds;
        if observer.epoch(&record, network, trainer)? == Go::Stop {
            break;
        }
    }
    Ok(())
}

fn add(record: &mut EpochRecord, report: &Report) {
    let sum = |a: Option<f64>, b: Option<f64>| b.map(|b| a.unwrap_or(0.0) + b).or(a);
    record.loss += report.loss;
    record.energy = sum(record.energy, report.energy);
    if let (Some(before), Some(after)) = (report.energy_before, report.energy) {
        record.energy_steps += 1;
        record.energy_rises += usize::from(after > before + ENERGY_ROUNDING * before.abs());
    }
    record.blocks.resize(record.blocks.len().max(report.blocks.len()), 0.0);
    record.blocks.iter_mut().zip(&report.blocks).for_each(|(sum, block)| *sum += block);
    record.least_step = record.least_step.min(report.steps.0);
    record.largest_step = record.largest_step.max(report.steps.1);
    record.backtracks += report.backtracks;
}
