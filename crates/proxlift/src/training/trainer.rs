//! What every trainer is: something that improves a network by one mini-batch.

use crate::{Error, Result, engine::Engine, field::Field, network::Network};
use std::{collections::BTreeMap, sync::Arc};

/// A mini-batch: samples with their indices in the training set. In a [team](crate::team), every member has the images of
/// its own samples only.
#[derive(Debug)]
pub struct Batch {
    /// The noisy images.
    pub z: Field<f32>,
    /// The clean images.
    pub x: Field<f32>,
    /// Which samples of the training set are in the batch, all of them.
    pub indices: Vec<usize>,
}

/// What one step did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The feed-forward loss `1/2 ||x^ - x||^2`, summed over the batch, before the step.
    pub loss: f64,
    /// `E` before the step, summed over the batch, where the trainer has one.
    pub energy_before: Option<f64>,
    /// `E` after the step, summed over the batch, where the trainer has one.
    pub energy: Option<f64>,
    /// The blocks of `E` after the step, summed over the batch: the penalties of layers `1..K-1`, then the loss part.
    /// Empty where the trainer has none.
    pub blocks: Vec<f64>,
    /// The least and the largest step of the layers.
    pub steps: (f64, f64),
    /// How often a step was tried and found too long.
    pub backtracks: usize,
}

/// A way to train. The driver calls it batch after batch and knows nothing else of it.
pub trait Trainer {
    /// Its name and settings, in a line for people.
    fn describe(&self) -> String;

    /// Improves `network` by one batch; `progress` in `[0, 1[` is the share of the training that is done.
    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report>;

    /// Before the first step: of what it keeps for single samples, it has to hold only that of those that are `at_home` here;
    /// others have the rest. That of the samples of a batch is fetched by [`Ranks::to_places`](crate::team::Ranks::to_places).
    fn join(&mut self, _at_home: &dyn Fn(usize) -> bool) {}

    /// Everything that the next step depends on beside the network, for a checkpoint; in a team, what this member holds of
    /// it.
    fn save(&self, state: &mut Snapshot);

    /// Continues from [`Trainer::save`]. Fails when the snapshot is of another trainer or another network.
    fn restore(&mut self, state: &Snapshot) -> Result<()>;
}

/// Named numbers, kept to the bit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Arrays in single precision.
    pub arrays: BTreeMap<String, Arc<Vec<f32>>>,
    /// Single numbers in double precision.
    pub scalars: BTreeMap<String, f64>,
}

impl Snapshot {
    /// Keeps an array.
    pub fn put(&mut self, name: impl Into<String>, values: &[f32]) {
        self.arrays.insert(name.into(), Arc::new(values.to_vec()));
    }

    /// Keeps an array without a copy, for those that take much memory.
    pub fn share(&mut self, name: impl Into<String>, values: &Arc<Vec<f32>>) {
        self.arrays.insert(name.into(), Arc::clone(values));
    }

    /// Keeps a number.
    pub fn put_scalar(&mut self, name: impl Into<String>, value: f64) {
        self.scalars.insert(name.into(), value);
    }

    /// The array `name`; a clone of it shares its numbers.
    pub fn array(&self, name: &str) -> Result<&Arc<Vec<f32>>> {
        self.arrays.get(name).ok_or_else(|| missing(name))
    }

    /// Copies the array `name` into `values`. Fails when it is missing or of another length.
    pub fn get(&self, name: &str, values: &mut [f32]) -> Result<()> {
        let kept = self.array(name)?;
        refuse!(kept.len() != values.len() => "the checkpoint's {name} is of another network");
        values.copy_from_slice(kept);
        Ok(())
    }

    /// The number `name`.
    pub fn scalar(&self, name: &str) -> Result<f64> {
        self.scalars.get(name).copied().ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> Error {
    invalid!("the checkpoint has no {name}: it is of another trainer")
}
