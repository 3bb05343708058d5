//! ADMM (Taylor, Burmeister, Xu, Singh, Patel and Goldstein, *Training neural networks without gradients: a scalable ADMM
//! approach*, ICML 2016).
//!
//! The sweep is that of [`ClosedForm`], on the augmented Lagrangian [`Split`](super::Split). After it, the multipliers move by
//! what is left of the constraints,
//!
//! ```text
//! y_k <- y_k + v_k - F_k(u_{k-1}),        w_k <- w_k + u_k - s_k(v_k)
//! ```
//!
//! so that these hold in the limit without large weights: that of the output alone, as Taylor et al. have it, or all. Where it
//! ends, `-rho y_k` is back-propagation's error of layer `k`, and `-gamma w_k` what it passes down to it. The first iteration is
//! that of [`ClosedForm`]. The method is for whole sets; for mini-batches, give [`Splitting::memory`].

use super::{Batch, ClosedForm, Multipliers, Splitting, Step, Trainer};
use crate::lifting::Network;
use crate::training::Auxiliary;
use crate::{Real, Result};

/// The trainer.
pub struct Admm<T>(ClosedForm<T>);

impl<T: Real> Admm<T> {
    /// A trainer for `network` on a set of `samples`.
    /// Fails when an option is out of range, multipliers would be forgotten, or a block of the network has no closed form.
    pub fn new(
        network: &Network<T>,
        options: Splitting,
        multipliers: Multipliers,
        samples: usize,
    ) -> Result<Self> {
        refuse!(options.auxiliary == Auxiliary::Anchored && options.inner == 1 =>
            "with variables anchored and one iteration, multipliers are never used: keep them, or give more iterations");
        Ok(Self(ClosedForm::with_multipliers(network, options, Some(multipliers), samples)?))
    }
}

impl<T: Real> Trainer<T> for Admm<T> {
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, progress: f64) -> Result<Step> {
        self.0.step(network, batch, progress)
    }
}
