//! LB-FB for any network: block-coordinate forward-backward on the lifted energy, with two-way backtracking (algo:BC-FB).
//!
//! Every block takes the longest step that keeps its majorant: the parameters of a layer together, the auxiliary variables of
//! every sample by themselves. So `E` cannot rise on a batch.
//!
//! With the quadratic penalty it is the method of auxiliary coordinates (Carreira-Perpinan and Wang, *Distributed optimization of
//! deeply nested systems*, AISTATS 2014), [`LbFbOptions::mac`]: the weight of its penalty over that of the loss, `1 / mu`, grows
//! in the course of the training, and with it the constraints come to hold.

use super::{Batch, Step, Trainer, layer_parallel};
use crate::lifting::blocks::{theta_step, u_step};
use crate::lifting::{Lifted, Network, Penalty};
use crate::training::backtracking::Backtracking;
use crate::training::{Auxiliary, BlockOrder};
use crate::{Real, Result};

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
    pub(super) beta: Vec<Backtracking>,
    /// The step of each `u_k`.
    pub(super) gamma: Vec<Backtracking>,
    /// `u_0..u_{K-1}` of every sample, if they are kept and it was visited.
    kept: Vec<Option<Vec<Vec<T>>>>,
}

/// By how much a parameter step is tried longer than the last: it must suit the batches to come as well.
const GROWTH: f64 = 1.05;

impl<T: Real> LbFb<T> {
    /// A trainer for `network` on a set of `samples`. Fails when an option is out of range.
    pub fn new(network: &Network<T>, options: LbFbOptions, samples: usize) -> Result<Self> {
        refuse!(!(options.mu.is_finite() && options.mu > 0.0) => "mu is {}, but it must be above zero", options.mu);
        refuse!(!(options.decay > 0.0 && options.decay <= 1.0) =>
            "mu would fall to {} of itself, but that share must be above 0 and at most 1", options.decay);
        refuse!(options.inner == 0 => "a batch needs at least one iteration");
        let depth = network.activations().len();
        let anchored = options.auxiliary == Auxiliary::Anchored && options.order == BlockOrder::Simultaneous;
        refuse!(anchored && options.inner < depth + 1 =>
            "with u anchored and all blocks at once, {} iterations reach {} of {} layers only: give more, or a sweep",
            options.inner, options.inner, depth + 1);
        let beta = Backtracking { step: 1.0, grow: GROWTH, ..Backtracking::default() };
        // The curvature of q is 1: no longer step of a single block keeps the majorant.
        let gamma = Backtracking { step: 0.5, longest: 1.0, ..Backtracking::default() };
        let kept = if options.auxiliary == Auxiliary::Persistent { samples } else { 0 };
        Ok(Self { options, beta: vec![beta; depth + 1], gamma: vec![gamma; depth], kept: vec![None; kept] })
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

    /// The simultaneous order without threads, for activations that learn: they belong to no layer alone.
    fn one_by_one(&mut self, lifted: &mut Lifted<'_, T>, network: &mut Network<T>, mu: f64) -> usize {
        let mut refused = 0;
        for (k, beta) in self.beta.iter_mut().enumerate() {
            refused += theta_step(lifted, network, k, mu, beta);
        }
        for parity in [0, 1] {
            for (k, gamma) in self.gamma.iter_mut().enumerate().skip(parity).step_by(2) {
                refused += u_step(lifted, network, k, mu, gamma);
            }
        }
        refused
    }

    pub(super) fn recall(&self, lifted: &mut Lifted<'_, T>, network: &Network<T>, indices: &[usize]) {
        for (i, &sample) in indices.iter().enumerate() {
            let Some(Some(kept)) = self.kept.get(sample) else { continue };
            for (u, kept) in lifted.pass.u.iter_mut().zip(kept) {
                let width = u.width();
                u.data_mut()[i * width..][..width].copy_from_slice(kept);
            }
        }
        if !self.kept.is_empty() {
            lifted.follow_all(network);
        }
    }

    pub(super) fn remember(&mut self, lifted: &Lifted<'_, T>, indices: &[usize]) {
        for (i, &sample) in indices.iter().enumerate() {
            if let Some(kept) = self.kept.get_mut(sample) {
                *kept = Some(lifted.pass.u.iter().map(|u| u.row(i).to_vec()).collect());
            }
        }
    }
}

impl<T: Real> Trainer<T> for LbFb<T> {
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, progress: f64) -> Result<Step> {
        let Batch { z, x, indices } = batch;
        let (mu, depth) = (self.options.mu_at(progress), network.activations().len());
        let mut lifted = Lifted::new(network, z, x)?.with_penalty(self.options.penalty);
        let loss = lifted.block(network, depth, 1.0).iter().sum::<f64>() / z.samples() as f64;
        self.recall(&mut lifted, network, indices);
        let total =
            |lifted: &Lifted<'_, T>, network: &Network<T>| lifted.energy(network, mu).iter().sum::<f64>();
        let (mut energy, mut refused) = (vec![total(&lifted, network)], 0);
        for _ in 0..self.options.inner {
            refused += match self.options.order {
                BlockOrder::Sweep => self.sweep(&mut lifted, network, mu),
                BlockOrder::Simultaneous if network.activations().iter().any(|s| s.learns()) => {
                    self.one_by_one(&mut lifted, network, mu)
                }
                BlockOrder::Simultaneous => {
                    let steps = (&mut self.beta[..], &mut self.gamma[..]);
                    layer_parallel::iterate(&mut lifted, network, mu, steps)
                }
            };
            energy.push(total(&lifted, network));
        }
        self.remember(&lifted, indices);
        Ok(Step { loss, energy, refused })
    }
}
