//! The lifted energy (pb:min-loss-Breg-gen), and the partial gradients of its smooth part.
//!
//! ```text
//! E(theta, u | z, x) = mu l(F_K(u_{K-1}), x) + sum_{k=0}^{K-1} P_k(u_k, F_k(u_{k-1})),     u_{-1} = z
//! ```
//!
//! with the [`Penalty`] `P`, that of Bregman in the paper. Then `f = E - sum_k psi_k(u_k)` is smooth. With
//! `d_k = dP_k/dv = s_k(v_k) - u_k` for `k < K`, and `d_K = mu (grad h(v_K) - x)`, the error of
//! every affine map, its gradients are those of one layer, repeated:
//!
//! ```text
//! df/du_k = (u_k - v_k) + A_{k+1}* d_{k+1},      df/dtheta_k = gradient of <d_k, F_k(u_{k-1}, z)>
//! ```
//!
//! Back-propagation is the same with `d_k = s_k'(v_k) A_{k+1}* d_{k+1}` at the forward pass.

use super::learned::{by_penalty, by_rule};
use super::{Network, Pass, Penalty, Rows};
use crate::prox::Prox;
use crate::{Real, Result};
use rayon::prelude::*;

/// Gradients by the parameters: of each layer, block by block.
pub type Gradients<T> = Vec<Vec<Vec<T>>>;

/// A batch with its auxiliary variables; the network, which may move, is given with every question.
pub struct Lifted<'a, T> {
    pub(super) z: &'a Rows<T>,
    pub(super) x: &'a Rows<T>,
    /// What holds `u` to the activations.
    pub(super) penalty: Penalty,
    /// The weights of the penalties, `lambda_k`; all 1 where there are none.
    weights: Vec<f64>,
    /// `u`, which may be moved, and `v`, which follows from it.
    pub pass: Pass<T>,
}

impl<'a, T: Real> Lifted<'a, T> {
    /// Anchored at the forward pass, where all penalties vanish. Fails when the samples do not fit the network.
    pub fn new(network: &Network<T>, z: &'a Rows<T>, x: &'a Rows<T>) -> Result<Self> {
        network.check(z, x)?;
        Ok(Self { z, x, penalty: Penalty::Bregman, weights: Vec::new(), pass: network.forward(z) })
    }

    /// The same with these `u`.
    pub fn with_u(network: &Network<T>, z: &'a Rows<T>, x: &'a Rows<T>, u: Vec<Rows<T>>) -> Result<Self> {
        network.check(z, x)?;
        let v = (0..=u.len()).map(|k| network.affine(k, if k == 0 { z } else { &u[k - 1] }, z)).collect();
        Ok(Self { z, x, penalty: Penalty::Bregman, weights: Vec::new(), pass: Pass { v, u } })
    }

    /// The same with another penalty.
    #[must_use]
    pub fn with_penalty(self, penalty: Penalty) -> Self {
        Self { penalty, ..self }
    }

    /// The same with weights `lambda_k` of the penalties, as Fenchel lifted networks have them.
    #[must_use]
    pub fn with_weights(self, weights: Vec<f64>) -> Self {
        Self { weights, ..self }
    }

    /// `lambda_k`.
    pub fn weight(&self, k: usize) -> f64 {
        self.weights.get(k).copied().unwrap_or(1.0)
    }

    /// `K`, the number of activations.
    pub fn depth(&self) -> usize {
        self.pass.u.len()
    }

    /// Computes `v_k` again, after `theta_k` or `u_{k-1}` moved.
    pub fn follow(&mut self, network: &Network<T>, k: usize) {
        self.pass.v[k] = network.affine(k, self.pass.input(k, self.z), self.z);
    }

    /// Computes all `v_k` again, each by itself.
    pub fn follow_all(&mut self, network: &Network<T>) {
        let (pass, z) = (&self.pass, self.z);
        self.pass.v =
            (0..pass.v.len()).into_par_iter().map(|k| network.affine(k, pass.input(k, z), z)).collect();
    }

    /// The part of `E` that `theta_k` enters, of each sample: `P(u_k, v_k)`, or `mu l` for `k = K`.
    pub fn block(&self, network: &Network<T>, k: usize, mu: f64) -> Vec<f64> {
        if k == self.depth() {
            let pairs = self.pass.output().par_rows().zip(self.x.par_rows());
            return pairs.map(|(output, x)| mu * network.loss.value(output, x)).collect();
        }
        let mut values = self.penalty.values(network, k, &self.pass.u[k], &self.pass.v[k]);
        values.iter_mut().for_each(|value| *value *= self.weight(k));
        values
    }

    /// `E`, summed over the batch: the penalties of all layers, then the loss.
    pub fn energy(&self, network: &Network<T>, mu: f64) -> Vec<f64> {
        (0..=self.depth()).into_par_iter().map(|k| self.block(network, k, mu).iter().sum()).collect()
    }

    /// `d_k`, the error of the affine map `k = 0..=K`.
    pub fn error(&self, network: &Network<T>, k: usize, mu: T) -> Rows<T> {
        if k == self.depth() {
            return output_error(network, self.pass.output(), self.x, mu);
        }
        let mut d = self.penalty.by_v(network, k, &self.pass.u[k], &self.pass.v[k]);
        let weight = T::of(self.weight(k));
        d.data_mut().iter_mut().for_each(|d| *d *= weight);
        d
    }

    /// `df/dtheta_k`, summed over the batch.
    pub fn theta_gradient(&self, network: &Network<T>, k: usize, mu: T) -> Vec<Vec<T>> {
        let d = self.error(network, k, mu);
        let mut blocks = network.layers()[k].gradient(self.pass.input(k, self.z), self.z, &d);
        if k < self.depth() {
            let mut learned = by_penalty(network, self.penalty, k, &self.pass.u[k], &self.pass.v[k]);
            learned.iter_mut().flatten().for_each(|g| *g *= T::of(self.weight(k)));
            blocks.extend(learned);
        }
        blocks
    }

    /// `df/du_k`.
    pub fn u_gradient(&self, network: &Network<T>, k: usize, mu: T) -> Rows<T> {
        let mut back = self.pass.u[k].zeros_like();
        network.layers()[k + 1].adjoint(&self.error(network, k + 1, mu), &mut back);
        let weight = T::of(self.weight(k));
        back.zip(&self.penalty.by_u(network, k, &self.pass.u[k], &self.pass.v[k]), |back, own| {
            back + weight * own
        });
        back
    }
}

pub(super) fn output_error<T: Real>(network: &Network<T>, output: &Rows<T>, x: &Rows<T>, mu: T) -> Rows<T> {
    let mut d = output.zeros_like();
    network.loss.gradient(output, x, &mut d);
    d.data_mut().iter_mut().for_each(|d| *d *= mu);
    d
}

/// How errors go back through an activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule<T> {
    /// Back-propagation: the tangent, `d = s'(v) back`.
    Backprop,
    /// As if there were no activation, `d = back`: the straight-through estimator (Bengio, Leonard and Courville 2013), which
    /// networks with flat activations are trained by elsewhere.
    StraightThrough,
    /// Lifted Bregman with `u` anchored: the secant, `d = s(v) - s(v - back)`, with the loss weighted by `mu`.
    Lifted {
        /// The weight of the loss.
        mu: T,
    },
    /// Both sides of it (contrastive, centred): `d = (s(v + back) - s(v - back)) / 2`.
    Centred {
        /// The weight of the loss.
        mu: T,
    },
}

impl<T: Real> Rule<T> {
    /// The weight of the loss.
    pub(super) fn loss_weight(self) -> T {
        match self {
            Self::Backprop | Self::StraightThrough => T::one(),
            Self::Lifted { mu } | Self::Centred { mu } => mu,
        }
    }

    /// Checks that the weight of the loss is one.
    pub(super) fn check(self) -> Result<()> {
        let mu = self.loss_weight();
        refuse!(!(mu.is_finite() && mu > T::zero()) => "mu is {mu}, but it must be above zero");
        Ok(())
    }

    /// `d` of a sample from what comes `back` to its `u = s(v)`, which is overwritten.
    pub(super) fn through(self, prox: &dyn Prox<T>, (v, u): (&[T], &[T]), back: &mut [T], d: &mut [T]) {
        match self {
            Self::Backprop => prox.pullback(T::one(), v, back, d),
            Self::StraightThrough => d.copy_from_slice(back),
            Self::Lifted { .. } => {
                d.iter_mut().zip(v).zip(&*back).for_each(|((d, &v), &back)| *d = v - back);
                prox.prox_in_place(T::one(), d);
                d.iter_mut().zip(u).for_each(|(d, &u)| *d = u - *d);
            }
            Self::Centred { .. } => {
                d.iter_mut().zip(v).zip(&*back).for_each(|((d, &v), &back)| *d = v + back);
                prox.prox_in_place(T::one(), d);
                back.iter_mut().zip(v).for_each(|(back, &v)| *back = v - *back);
                prox.prox_in_place(T::one(), back);
                d.iter_mut().zip(&*back).for_each(|(above, &below)| *above = T::of(0.5) * (*above - below));
            }
        }
    }
}

/// The loss of each sample, and the gradients of one reverse sweep from the forward pass, divided by the weight of the loss.
pub fn sweep<T: Real>(
    network: &Network<T>,
    rule: Rule<T>,
    z: &Rows<T>,
    x: &Rows<T>,
) -> Result<(Vec<f64>, Gradients<T>)> {
    network.check(z, x)?;
    let pass = network.forward(z);
    let mu = rule.loss_weight();
    let pairs = pass.output().par_rows().zip(x.par_rows());
    let losses = pairs.map(|(output, x)| network.loss.value(output, x)).collect();
    let depth = network.activations().len();
    let mut d = output_error(network, pass.output(), x, mu);
    let (mut gradients, mut learned) = (Vec::with_capacity(depth + 1), Vec::new());
    for k in (0..=depth).rev() {
        let mut blocks = network.layers()[k].gradient(pass.input(k, z), z, &d);
        blocks.append(&mut learned);
        gradients.push(blocks);
        if k > 0 {
            let mut back = pass.u[k - 1].zeros_like();
            network.layers()[k].adjoint(&d, &mut back);
            learned = by_rule(network, rule, k - 1, &pass.v[k - 1], &back);
            d = through(network, k - 1, rule, (&pass.v[k - 1], &pass.u[k - 1]), back);
        }
    }
    gradients.reverse();
    let scale = mu.recip();
    gradients.iter_mut().flatten().flatten().for_each(|g| *g *= scale);
    Ok((losses, gradients))
}

/// `d_k` from what comes `back` to `u_k`, for a batch.
pub(super) fn through<T: Real>(
    network: &Network<T>,
    k: usize,
    rule: Rule<T>,
    (v, u): (&Rows<T>, &Rows<T>),
    mut back: Rows<T>,
) -> Rows<T> {
    let (mut d, prox) = (back.zeros_like(), network.activations()[k].prox());
    let values = v.par_rows().zip(u.par_rows());
    let rows = d.par_rows_mut().zip(back.par_rows_mut()).zip(values);
    rows.for_each(|((d, back), values)| rule.through(prox, values, back, d));
    d
}
