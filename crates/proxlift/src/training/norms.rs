//! The norms of a network in training, in its checkpoints.

use super::Snapshot;
use crate::{Result, network::Norms};

impl Norms<f32> {
    /// Keeps what the next step depends on.
    pub fn save(&self, state: &mut Snapshot) {
        for (k, power) in self.states.iter().enumerate().filter(|(k, _)| self.own.contains(k)) {
            state.put(format!("norm_{}", k + 1), power.vector());
        }
    }

    /// Continues from [`Self::save`].
    pub fn restore(&mut self, state: &Snapshot) -> Result<()> {
        // The network of a checkpoint has the steps that its last batch left, to the bit.
        self.converged = true;
        let mut powers = self.states.iter_mut().enumerate();
        powers.try_for_each(|(k, power)| state.get(&format!("norm_{}", k + 1), power.vector_mut()))
    }
}
