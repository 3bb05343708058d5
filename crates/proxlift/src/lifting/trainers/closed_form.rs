//! Block-coordinate descent with closed forms (Zeng, Lau, Lin and Yao, *Global convergence of block coordinate descent in deep
//! learning*, ICML 2019; Lau, Zeng, Wu and Yao, *A proximal block coordinate descent algorithm for deep neural network
//! training*, 2018).
//!
//! The energy is that of quadratic penalties, [`Split`] without multipliers, and a sweep goes over the exact minimisers of its
//! blocks from the last layer to the first: `v_K, theta_K, u_{K-1}, v_{K-1}, theta_{K-1}, .., v_0, theta_0`. So `A` cannot rise
//! on a batch. The method is for whole sets, with `Auxiliary::Persistent`; for mini-batches, give [`Splitting::memory`].

use super::cholesky::Normal;
use super::kept::Kept;
use super::splitting::{Multipliers, Split, Splitting};
use super::{Batch, Step, Trainer};
use crate::lifting::Network;
use crate::{Real, Result};

/// The trainer.
pub struct ClosedForm<T> {
    options: Splitting,
    /// Those that move after a sweep: ADMM.
    multipliers: Option<Multipliers>,
    sums: Vec<Normal>,
    /// `u`, `v`, `y`, `w` of every sample.
    kept: Kept<T>,
}

impl<T: Real> ClosedForm<T> {
    /// Block-coordinate descent for `network` on a set of `samples`.
    /// Fails when an option is out of range, or a block of the network has no closed form.
    pub fn new(network: &Network<T>, options: Splitting, samples: usize) -> Result<Self> {
        Self::with_multipliers(network, options, None, samples)
    }

    pub(super) fn with_multipliers(
        network: &Network<T>,
        options: Splitting,
        multipliers: Option<Multipliers>,
        samples: usize,
    ) -> Result<Self> {
        options.check(network)?;
        let sums =
            network.layers().iter().map(|layer| Normal::new(layer.inputs(), layer.outputs())).collect();
        let kept = Kept::new(options.auxiliary, samples);
        Ok(Self { options, multipliers, sums, kept })
    }
}

impl<T: Real> Trainer<T> for ClosedForm<T> {
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, _progress: f64) -> Result<Step> {
        let mut split = Split::new(network, batch.z, batch.x, self.options)?;
        let samples = batch.z.samples();
        let losses = network.loss.values(&split.v[split.u.len()], batch.x);
        let loss = losses.iter().sum::<f64>() / samples as f64;
        self.kept.recall(split.variables_mut(), batch.indices, samples)?;
        let mut energy = vec![split.value(network)];
        // What earlier batches left is in all iterations on this one.
        let earlier = self.sums.clone();
        for _ in 0..self.options.inner {
            self.sums.clone_from(&earlier);
            split.sweep(network, &mut self.sums, self.options.memory);
            if let Some(multipliers) = self.multipliers {
                split.move_multipliers(network, multipliers == Multipliers::All);
            }
            energy.push(split.value(network));
        }
        self.kept.remember(&split.variables(), batch.indices);
        Ok(Step { loss, energy, refused: 0 })
    }
}
