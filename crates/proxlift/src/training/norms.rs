//! The norms of a network in training: converged before the first step, then followed batch by batch.

use super::Snapshot;
use crate::Result;
use crate::network::{Network, Norms};

/// The norms of the inner operators, from which the steps `tau_k` follow after every change of the filters.
pub struct TrackedNorms {
    norms: Norms<f32>,
    started: bool,
}

impl TrackedNorms {
    /// Norms for `network`; `seed` draws the start of the power iterations.
    pub fn new(network: &Network<f32>, seed: u64) -> Self {
        Self { norms: Norms::new(network, seed), started: false }
    }

    /// Before the first batch, converges the norms and sets the steps of `network` by them.
    pub fn start(&mut self, network: &mut Network<f32>) {
        if !self.started {
            self.norms.converge(network);
            self.started = true;
        }
    }

    /// After a step, sets them anew: the filters have moved little, so a few iterations do.
    pub fn follow(&mut self, network: &mut Network<f32>) {
        self.norms.follow(network);
    }

    /// Keeps what the next step depends on.
    pub fn save(&self, state: &mut Snapshot) {
        for (k, vector) in self.norms.vectors().enumerate() {
            state.put(format!("norm_{}", k + 1), vector);
        }
    }

    /// Continues from [`Self::save`].
    pub fn restore(&mut self, state: &Snapshot) -> Result<()> {
        let count = self.norms.vectors().count();
        let kept = (1..=count).map(|k| state.array(&format!("norm_{k}"))).collect::<Result<Vec<_>>>()?;
        // The network of a checkpoint has the steps that its last batch left, to the bit.
        self.started = true;
        self.norms.restore(kept.into_iter().map(|vector| vector.as_slice()))
    }
}
