//! Trainers of general networks: what they share, and a file for each method.

mod admm;
mod cholesky;
mod closed_form;
mod contrastive;
mod descent;
mod fenchel;
mod kept;
mod layer_parallel;
mod lbfb;
mod pieces;
mod splitting;

pub use admm::Admm;
pub use closed_form::ClosedForm;
pub use contrastive::{Contrastive, ContrastiveOptions, contrast};
pub use descent::GradientDescent;
pub use fenchel::{Fenchel, FenchelOptions};
pub use lbfb::{LbFb, LbFbOptions};
pub use splitting::{Multipliers, Split, Splitting};

use super::{Network, Rows};
use crate::Result;

/// Samples to learn from together.
#[derive(Clone, Copy)]
pub struct Batch<'a, T> {
    /// What the network gets.
    pub z: &'a Rows<T>,
    /// What it should give.
    pub x: &'a Rows<T>,
    /// Which samples of the set they are: for trainers that keep something of each.
    pub indices: &'a [usize],
}

/// What a step on a batch did; energies are summed over it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// The mean loss of the network itself, before the step.
    pub loss: f64,
    /// The energy before every iteration, and after the last; empty for methods that have none.
    pub energy: Vec<f64>,
    /// Steps that were tried and refused.
    pub refused: usize,
}

/// A method that improves a network by mini-batches.
pub trait Trainer<T>: Send {
    /// One step on a batch when `progress` of the training, from 0 to 1, is done.
    /// Fails when the samples do not fit the network.
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, progress: f64) -> Result<Step>;
}
