//! LB-FB for any network: block-coordinate forward-backward on the lifted energy, with two-way backtracking (algo:BC-FB).
//!
//! Every block takes the longest step that keeps its majorant: the parameters of a layer together, the auxiliary variables of
//! every sample by themselves. So `E` cannot rise on a batch.
//!
//! With the quadratic penalty it is the method of auxiliary coordinates (Carreira-Perpinan and Wang, *Distributed optimization of
//! deeply nested systems*, AISTATS 2014), [`LbFbOptions::mac`]: the weight of its penalty over that of the loss, `1 / mu`, grows
//! in the course of the training, and with it the constraints come to hold.

use super::kept::Kept;
use super::{Batch, Step, Trainer, layer_parallel};
use crate::lifting::blocks::{ThetaSearch, theta_step, u_search, u_step};
use crate::lifting::metric::Diagonal;
use crate::lifting::share::LayerShare;
use crate::lifting::{Lifted, Network, Penalty};
use crate::team::{Alone, Ranks};
use crate::training::backtracking::Backtracking;
use crate::training::{Auxiliary, BlockOrder, Metric};
use crate::{Real, Result};
use std::sync::Arc;

/// The settings of [`LbFb`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LbFbOptions {
    /// The weight of the loss in `E`.
    pub mu: f64,
    /// What becomes of `mu` by the end of the training, as a share of it: 1, or less for a penalty that grows.
    pub decay: f64,
    /// What holds `u` to the activations.
    pub penalty: Penalty,
    /// Where `u` starts: at the forward pass, or where the last visit to the sample left it.
    pub auxiliary: Auxiliary,
    /// In a reverse sweep; or all parameters, then `u` of every other layer, then the rest, with the layers in parallel.
    pub order: BlockOrder,
    /// The metric of the parameters: Euclidean, or the diagonal of their root mean squared gradients.
    pub metric: Metric,
    /// Iterations on a batch before the next.
    pub inner: usize,
}

impl Default for LbFbOptions {
    fn default() -> Self {
        Self {
            mu: 1.0,
            decay: 1.0,
            penalty: Penalty::Bregman,
            auxiliary: Auxiliary::Anchored,
            order: BlockOrder::Sweep,
            metric: Metric::Euclidean,
            inner: 1,
        }
    }
}

impl LbFbOptions {
    /// The method of auxiliary coordinates: quadratic penalties whose weight grows a hundredfold, `u` kept from visit to visit.
    pub fn mac() -> Self {
        let (penalty, auxiliary) = (Penalty::Quadratic, Auxiliary::Persistent);
        Self { decay: 0.01, penalty, auxiliary, ..Self::default() }
    }

    /// `mu` when `progress` of the training is done.
    fn mu_at(&self, progress: f64) -> f64 {
        self.mu * self.decay.powf(progress.clamp(0.0, 1.0))
    }
}

/// The trainer.
pub struct LbFb<T> {
    options: LbFbOptions,
    /// The parameter step of each layer.
    pub(super) beta: Vec<ThetaSearch<T>>,
    /// The step of each `u_k`.
    pub(super) gamma: Vec<Backtracking>,
    /// `u_0..u_{K-1}` of every sample, or those that this process has.
    kept: Kept<T>,
    /// The layers that this process moves: all, unless it is one of a team.
    share: LayerShare,
}

/// By how much a parameter step is tried longer than the last: it must suit the batches to come as well.
const GROWTH: f64 = 1.05;

impl<T: Real> LbFb<T> {
    /// A trainer for `network` on a set of `samples`. Fails when an option is out of range.
    pub fn new(network: &Network<T>, options: LbFbOptions, samples: usize) -> Result<Self> {
        refuse!(!(options.mu.is_finite() && options.mu > 0.0) => "mu is {}, but it must be above zero", options.mu);
        refuse!(!(options.decay > 0.0 && options.decay <= 1.0) =>
            "mu would fall to {} of itself, but that share must be above 0 and at most 1", options.decay);
        refuse!(!matches!(options.metric, Metric::Euclidean | Metric::Diagonal) =>
            "LB-FB on such networks has no {} metric: choose the Euclidean or the diagonal one", options.metric);
        refuse!(options.inner == 0 => "a batch needs at least one iteration");
        let depth = network.depth();
        let anchored = options.auxiliary == Auxiliary::Anchored && options.order == BlockOrder::Simultaneous;
        refuse!(anchored && options.inner < depth + 1 =>
            "with u anchored and all blocks at once, {} iterations reach {} of {} layers only: give more, or a sweep",
            options.inner, options.inner, depth + 1);
        let beta = || ThetaSearch {
            steps: Backtracking { step: 1.0, grow: GROWTH, ..Backtracking::default() },
            metric: (options.metric == Metric::Diagonal).then(Diagonal::default),
        };
        let kept = Kept::new(options.auxiliary, samples);
        let share = LayerShare::new(Arc::new(Ranks::new(Arc::new(Alone))), depth + 1);
        Ok(Self {
            options,
            beta: (0..=depth).map(|_| beta()).collect(),
            gamma: vec![u_search(); depth],
            kept,
            share,
        })
    }

    /// The same as one of a team whose members have a range of the layers each, and exchange `u` and `v` at its borders: to the
    /// same bits as alone. Each moves its own layers of the network; [`LbFb::collect`] brings them together.
    /// Fails when the blocks do not move all at once.
    pub fn among(self, ranks: Arc<Ranks>) -> Result<Self> {
        refuse!(ranks.size() > 1 && self.options.order == BlockOrder::Sweep =>
            "a sweep goes from layer to layer: to spread them over processes, let all move at once");
        Ok(Self { share: LayerShare::new(ranks, self.beta.len()), ..self })
    }

    /// Gives every member of the team the layers of the others.
    pub fn collect(&self, network: &mut Network<T>) {
        self.share.collect(network);
    }

    /// `theta_K, u_{K-1}, theta_{K-1}, .., u_0, theta_0`.
    fn sweep(&mut self, lifted: &mut Lifted<'_, T>, network: &mut Network<T>, mu: f64) -> usize {
        let mut refused = 0;
        for k in (0..self.beta.len()).rev() {
            refused += theta_step(lifted, network, k, mu, &mut self.beta[k]);
            if k > 0 {
                refused += u_step(lifted, network, k - 1, mu, &mut self.gamma[k - 1]);
            }
        }
        refused
    }

    /// The iterations on a batch, whatever an iteration is; how many steps it refused is what it returns.
    pub(super) fn train(
        &mut self,
        network: &mut Network<T>,
        mut lifted: Lifted<'_, T>,
        indices: &[usize],
        mu: f64,
        mut iterate: impl FnMut(&mut Self, &mut Lifted<'_, T>, &mut Network<T>) -> usize,
    ) -> Result<Step> {
        let (depth, samples, share) = (lifted.depth(), lifted.z.samples(), self.share.clone());
        let energy = |lifted: &Lifted<'_, T>, network: &Network<T>| {
            share.of_layers(lifted.energy_of(network, mu, share.own())).iter().sum()
        };
        let output =
            share.own().map(|k| if k == depth { lifted.block(network, k, 1.0).iter().sum() } else { 0.0 });
        let loss = share.of_layers(output.collect())[depth] / samples as f64;
        let known = share.known();
        if self.kept.recall(lifted.pass.u[known.clone()].iter_mut(), indices, samples)? {
            lifted.follow_all(network, share.own());
        }
        let mut step = Step { loss, energy: vec![energy(&lifted, network)], refused: 0 };
        for _ in 0..self.options.inner {
            step.refused += iterate(self, &mut lifted, network);
            step.energy.push(energy(&lifted, network));
        }
        step.refused = share.total(step.refused);
        self.kept.remember(&lifted.pass.u[known].iter().collect::<Vec<_>>(), indices);
        Ok(step)
    }
}

impl<T: Real> Trainer<T> for LbFb<T> {
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, progress: f64) -> Result<Step> {
        let LbFbOptions { penalty, order, .. } = self.options;
        let (share, mu) = (self.share.clone(), self.options.mu_at(progress));
        let lifted = Lifted::among(network, batch.z, batch.x, &share)?;
        self.train(network, lifted.with_penalty(penalty), batch.indices, mu, |trainer, lifted, network| {
            match order {
                BlockOrder::Sweep => trainer.sweep(lifted, network, mu),
                BlockOrder::Simultaneous => {
                    let steps = (&mut trainer.beta[..], &mut trainer.gamma[..]);
                    layer_parallel::iterate(lifted, network, mu, steps, &share)
                }
            }
        })
    }
}
