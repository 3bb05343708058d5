//! LB-FB for any network: block-coordinate forward-backward on the lifted energy, with two-way backtracking (algo:BC-FB). With
//! the quadratic penalty, it is block-coordinate descent on that of MAC.
//!
//! Every block takes the longest step that keeps its majorant: the parameters of a layer together, the auxiliary variables of
//! every sample by themselves. So `E` cannot rise on a batch.

use super::{Batch, Lifted, Network, Penalty, Step, Trainer, layer_parallel};
use crate::real::{dot, norm_squared};
use crate::training::backtracking::{Backtracking, Trial};
use crate::training::{Auxiliary, BlockOrder};
use crate::{Real, Result};

/// The settings of [`LbFb`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LbFbOptions {
    /// The weight of the loss in `E`.
    pub mu: f64,
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
            penalty: Penalty::Bregman,
            auxiliary: Auxiliary::Anchored,
            order: BlockOrder::Sweep,
            inner: 1,
        }
    }
}

/// The trainer.
pub struct LbFb<T> {
    options: LbFbOptions,
    /// The parameter step of each layer.
    beta: Vec<Backtracking>,
    /// The step of each `u_k`.
    gamma: Vec<Backtracking>,
    /// `u_0..u_{K-1}` of every sample, if they are kept and it was visited.
    kept: Vec<Option<Vec<Vec<T>>>>,
}

/// By how much a parameter step is tried longer than the last: it must suit the batches to come as well.
const GROWTH: f64 = 1.05;

impl<T: Real> LbFb<T> {
    /// A trainer for `network` on a set of `samples`. Fails when an option is out of range.
    pub fn new(network: &Network<T>, options: LbFbOptions, samples: usize) -> Result<Self> {
        refuse!(!(options.mu.is_finite() && options.mu > 0.0) => "mu is {}, but it must be above zero", options.mu);
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
    fn sweep(&mut self, lifted: &mut Lifted<'_, T>, network: &mut Network<T>) -> usize {
        let mut refused = 0;
        for k in (0..self.beta.len()).rev() {
            refused += self.theta(lifted, network, k);
            if k > 0 {
                refused += self.u(lifted, network, k - 1);
            }
        }
        refused
    }

    /// `theta_k <- theta_k - beta df/dtheta_k`.
    fn theta(&mut self, lifted: &mut Lifted<'_, T>, network: &mut Network<T>, k: usize) -> usize {
        let mu = self.options.mu;
        let gradient = lifted.theta_gradient(network, k, T::of(mu));
        let before: Vec<Vec<T>> =
            network.layers()[k].parameters().iter().map(|block| block.to_vec()).collect();
        let square: f64 = gradient.iter().map(|block| norm_squared(block)).sum();
        let f = lifted.block(network, k, mu).iter().sum();
        let attempt = |steps: &[f64]| {
            let step = T::of(steps[0]);
            let blocks = network.layers_mut()[k].parameters_mut().into_iter().zip(&before).zip(&gradient);
            for ((block, before), gradient) in blocks {
                block.iter_mut().zip(before).zip(gradient).for_each(|((w, &b), &g)| *w = b - step * g);
            }
            lifted.follow(network, k);
            // <w+ - w, g> + 1/(2 beta) ||w+ - w||^2
            vec![Trial { value: lifted.block(network, k, mu).iter().sum(), model: -0.5 * steps[0] * square }]
        };
        self.beta[k].search(&[f], attempt).refused
    }

    /// `u_k <- prox_{gamma psi_k}(u_k - gamma df/du_k)`, each sample with a step of its own.
    fn u(&mut self, lifted: &mut Lifted<'_, T>, network: &Network<T>, k: usize) -> usize {
        let mu = self.options.mu;
        let gradient = lifted.u_gradient(network, k, T::of(mu));
        let before = lifted.pass.u[k].clone();
        let (penalty, width) = (lifted.penalty, before.width());
        let f = smooth(lifted, network, k, mu);
        let attempt = |steps: &[f64]| {
            let u = &mut lifted.pass.u[k];
            for (i, row) in u.data_mut().chunks_exact_mut(width).enumerate() {
                let (step, parts) = (T::of(steps[i]), before.row(i).iter().zip(gradient.row(i)));
                row.iter_mut().zip(parts).for_each(|(u, (&b, &g))| *u = b - step * g);
                penalty.backward(network, k, step, row);
            }
            lifted.follow(network, k + 1);
            let values = smooth(lifted, network, k, mu);
            let trials = values.into_iter().zip(steps).enumerate().map(|(i, (value, &step))| {
                let moved: Vec<T> =
                    lifted.pass.u[k].row(i).iter().zip(before.row(i)).map(|(&a, &b)| a - b).collect();
                let square = if step > 0.0 { norm_squared(&moved) / (2.0 * step) } else { 0.0 };
                Trial { value, model: dot(&moved, gradient.row(i)) + square }
            });
            trials.collect()
        };
        self.gamma[k].search(&f, attempt).refused
    }

    fn recall(&self, lifted: &mut Lifted<'_, T>, network: &Network<T>, indices: &[usize]) {
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

    fn remember(&mut self, lifted: &Lifted<'_, T>, indices: &[usize]) {
        for (i, &sample) in indices.iter().enumerate() {
            if let Some(kept) = self.kept.get_mut(sample) {
                *kept = Some(lifted.pass.u.iter().map(|u| u.row(i).to_vec()).collect());
            }
        }
    }
}

impl<T: Real> Trainer<T> for LbFb<T> {
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, _progress: f64) -> Result<Step> {
        let Batch { z, x, indices } = batch;
        let (mu, depth) = (self.options.mu, network.activations().len());
        let mut lifted = Lifted::new(network, z, x)?.with_penalty(self.options.penalty);
        let loss = lifted.block(network, depth, 1.0).iter().sum::<f64>() / z.samples() as f64;
        self.recall(&mut lifted, network, indices);
        let total =
            |lifted: &Lifted<'_, T>, network: &Network<T>| lifted.energy(network, mu).iter().sum::<f64>();
        let (mut energy, mut refused) = (vec![total(&lifted, network)], 0);
        for _ in 0..self.options.inner {
            refused += match self.options.order {
                BlockOrder::Sweep => self.sweep(&mut lifted, network),
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

/// The part of `f` that `u_k` enters, of each sample, but for what does not depend on it: `1/2 ||u_k - v_k||^2`, or
/// `1/2 ||u_k - s(v_k)||^2` for the quadratic penalty, and the block after it.
fn smooth<T: Real>(lifted: &Lifted<'_, T>, network: &Network<T>, k: usize, mu: f64) -> Vec<f64> {
    let after = lifted.block(network, k + 1, mu);
    let away = lifted.penalty.by_u(network, k, &lifted.pass.u[k], &lifted.pass.v[k]);
    after.into_iter().zip(away.rows()).map(|(after, away)| after + 0.5 * norm_squared(away)).collect()
}
