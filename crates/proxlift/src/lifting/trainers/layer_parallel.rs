//! All layers at once, on all threads: the simultaneous order of LB-FB.
//!
//! Each block `P_k(u_k, F_k(u_{k-1}))` of the energy sees the parameters of one layer and the auxiliary variables on its two
//! sides (`P_K` is the loss), so that an iteration falls into three rounds of independent steps:
//!
//! | round | its blocks | the terms of `E` that a block enters |
//! |---|---|---|
//! | parameters | `theta_0, .., theta_K` | `P_k` |
//! | even `u` | `u_0, u_2, ..` | `P_k` and `P_{k+1}` |
//! | odd `u` | `u_1, u_3, ..` | `P_k` and `P_{k+1}` |
//!
//! No term is entered by two blocks of a round. With everything else held, `E` is then a sum of functions of one block each, and
//! as every block lowers its own by backtracking, in whatever order or at the same time, `E` cannot rise. A block reads only
//! what no other block of its round writes: `u_k` owns `u_k` and `v_{k+1}`, and reads `v_k` and `u_{k+1}`. So its bits do not
//! depend on the threads, which own contiguous ranges of layers.
//!
//! All `u` in one round would be possible with steps half as long, for a Hessian that is block tri-diagonal; two colours need
//! no such bound.

use crate::Real;
use crate::lifting::energy::output_error;
use crate::lifting::{Affine, Lifted, Network, Penalty, Rows};
use crate::real::{dot, norm_squared};
use crate::training::backtracking::{Backtracking, Trial};
use rayon::prelude::*;

/// One iteration; returns how many steps were refused.
pub(super) fn iterate<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    (beta, gamma): (&mut [Backtracking], &mut [Backtracking]),
) -> usize {
    let refused = parameters(lifted, network, mu, beta);
    refused + [0, 1].map(|parity| auxiliary(lifted, network, mu, gamma, parity)).iter().sum::<usize>()
}

/// `theta_k <- theta_k - beta_k df/dtheta_k`, all `k`.
fn parameters<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    beta: &mut [Backtracking],
) -> usize {
    // The layers and what they give are taken out, so that each thread may change its own.
    let (mut layers, mut v) = (network.take_layers(), std::mem::take(&mut lifted.pass.v));
    let (fixed, terms) = (&*lifted, Terms { network, lifted, mu });
    let blocks = layers.par_iter_mut().zip(&mut v).zip(beta).enumerate();
    let refused = blocks.map(|(k, ((layer, v), beta))| {
        let (z, input) = (fixed.z, fixed.pass.input(k, fixed.z));
        let gradient = layer.gradient(input, z, &terms.error(k, v));
        let before: Vec<Vec<T>> = layer.parameters().iter().map(|block| block.to_vec()).collect();
        let square: f64 = gradient.iter().map(|block| norm_squared(block)).sum();
        let f: f64 = terms.values(k, v).iter().sum();
        let attempt = |steps: &[f64]| {
            let step = T::of(steps[0]);
            for ((block, before), gradient) in layer.parameters_mut().into_iter().zip(&before).zip(&gradient)
            {
                block.iter_mut().zip(before).zip(gradient).for_each(|((w, &b), &g)| *w = b - step * g);
            }
            layer.apply(input, z, v);
            vec![Trial { value: terms.values(k, v).iter().sum(), model: -0.5 * steps[0] * square }]
        };
        beta.search(&[f], attempt).refused
    });
    let refused = refused.sum();
    lifted.pass.v = v;
    network.put_layers(layers);
    refused
}

/// `u_k <- prox_{gamma psi_k}(u_k - gamma df/du_k)`, every other `k`, each sample with a step of its own.
fn auxiliary<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &Network<T>,
    mu: f64,
    gamma: &mut [Backtracking],
    parity: usize,
) -> usize {
    let ours = (parity..gamma.len()).step_by(2);
    let mut blocks: Vec<(usize, Rows<T>, Rows<T>, Backtracking)> = ours
        .map(|k| {
            let pass = &mut lifted.pass;
            let (u, v) = (pass.u[k].taken(), pass.v[k + 1].taken());
            (k, u, v, gamma[k])
        })
        .collect();
    let terms = Terms { network, lifted, mu };
    let refused = blocks.par_iter_mut().map(|(k, u, v, gamma)| terms.step_u(*k, (u, v), gamma)).sum();
    for (k, u, v, searched) in blocks {
        (lifted.pass.u[k], lifted.pass.v[k + 1], gamma[k]) = (u, v, searched);
    }
    refused
}

/// The terms of `E`, while what they see is with the threads.
struct Terms<'a, 'b, T> {
    /// Its activations and its loss, and its layers in the rounds of `u`.
    network: &'a Network<T>,
    /// The batch, and the blocks that nobody moves.
    lifted: &'a Lifted<'b, T>,
    mu: f64,
}

impl<T: Real> Terms<'_, '_, T> {
    /// `P_k(u_k, v)` of each sample, or `mu l`.
    fn values(&self, k: usize, v: &Rows<T>) -> Vec<f64> {
        match self.lifted.pass.u.get(k) {
            Some(u) => self.lifted.penalty.values(self.network, k, u, v),
            None => {
                let pairs = v.par_rows().zip(self.lifted.x.par_rows());
                pairs.map(|(output, x)| self.mu * self.network.loss.value(output, x)).collect()
            }
        }
    }

    /// `d_k` at `v`.
    fn error(&self, k: usize, v: &Rows<T>) -> Rows<T> {
        match self.lifted.pass.u.get(k) {
            Some(u) => self.lifted.penalty.by_v(self.network, k, u, v),
            None => output_error(self.network, v, self.lifted.x, T::of(self.mu)),
        }
    }

    /// One step of `u_k`, which `next = v_{k+1}` follows.
    fn step_u(&self, k: usize, (u, next): (&mut Rows<T>, &mut Rows<T>), gamma: &mut Backtracking) -> usize {
        let (network, z, own) = (self.network, self.lifted.z, &self.lifted.pass.v[k]);
        let (layer, penalty): (&dyn Affine<T>, Penalty) = (&*network.layers()[k + 1], self.lifted.penalty);
        let mut gradient = u.zeros_like();
        layer.adjoint(&self.error(k + 1, next), &mut gradient);
        gradient.zip(&penalty.by_u(network, k, u, own), |back, own| back + own);
        // But for what does not depend on u_k.
        let smooth = |u: &Rows<T>, next: &Rows<T>| -> Vec<f64> {
            let away = penalty.by_u(network, k, u, own);
            let after = self.values(k + 1, next).into_iter();
            after.zip(away.rows()).map(|(after, away)| after + 0.5 * norm_squared(away)).collect()
        };
        let (before, width, f) = (u.clone(), u.width(), smooth(u, next));
        let attempt = |steps: &[f64]| {
            for (i, row) in u.data_mut().chunks_exact_mut(width).enumerate() {
                let (step, parts) = (T::of(steps[i]), before.row(i).iter().zip(gradient.row(i)));
                row.iter_mut().zip(parts).for_each(|(u, (&b, &g))| *u = b - step * g);
                penalty.backward(network, k, step, row);
            }
            layer.apply(u, z, next);
            let trials = smooth(u, next).into_iter().zip(steps).enumerate().map(|(i, (value, &step))| {
                let moved: Vec<T> = u.row(i).iter().zip(before.row(i)).map(|(&a, &b)| a - b).collect();
                let square = if step > 0.0 { norm_squared(&moved) / (2.0 * step) } else { 0.0 };
                Trial { value, model: dot(&moved, gradient.row(i)) + square }
            });
            trials.collect()
        };
        gamma.search(&f, attempt).refused
    }
}
