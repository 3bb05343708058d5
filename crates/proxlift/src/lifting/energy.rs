//! The lifted energy (pb:min-loss-Breg-gen), and the partial gradients of its smooth part.
//!
//! ```text
//! E(theta, u | z, x) = mu l(F_K(u_{K-1}), x) + sum_{k=0}^{K-1} lambda_k P_k(u_k, F_k(u_{k-1})),     u_{-1} = z
//! ```
//!
//! with the [`Penalty`] `P`, in the paper that of Bregman with all weights `lambda_k = 1`. Then
//! `f = E - sum_k lambda_k psi_k(u_k)` is smooth. With `d_k = lambda_k dP_k/dv`, which is `lambda_k (s_k(v_k) - u_k)`, for `k < K`,
//! and `d_K = mu (grad h(v_K) - x)`, the error of every affine map, its gradients are those of one layer, repeated:
//!
//! ```text
//! df/du_k = lambda_k (u_k - v_k) + A_{k+1}* d_{k+1},      df/dtheta_k = gradient of <d_k, F_k(u_{k-1}, z)>
//! ```
//!
//! Back-propagation is the same with `d_k = s_k'(v_k) A_{k+1}* d_{k+1}` at the forward pass.

use super::network::After;
use super::penalty::by_penalty;
use super::share::LayerShare;
use super::{Affine, Network, Pass, Penalty, Rows};
use crate::network::Activation;
use crate::{Real, Result};
use rayon::prelude::*;
use std::ops::Range;

/// One term of `E`, as a function of what its affine map gives: `lambda P(u, .)`, or `mu l(., x)`.
pub(super) struct Term<'a, T> {
    pub after: After<'a, T>,
    pub penalty: Penalty,
    /// `u_k`, or `x`.
    pub target: &'a Rows<T>,
    /// `lambda_k`, or `mu`.
    pub weight: f64,
}

impl<T: Real> Term<'_, T> {
    /// The term of each sample.
    pub fn values(&self, v: &Rows<T>) -> Vec<f64> {
        let mut values = match self.after {
            After::Activation(s) => self.penalty.values(s, self.target, v),
            After::Loss(loss) => loss.values(v, self.target),
        };
        values.iter_mut().for_each(|value| *value *= self.weight);
        values
    }

    /// `d`, its gradient: the error of the affine map.
    pub fn error(&self, v: &Rows<T>) -> Rows<T> {
        let weight = T::of(self.weight);
        match self.after {
            After::Activation(s) => {
                let mut d = self.penalty.by_v(s, self.target, v);
                d.data_mut().iter_mut().for_each(|d| *d *= weight);
                d
            }
            After::Loss(loss) => loss.error(v, self.target, weight),
        }
    }

    /// `df/dtheta` of the map and, where it learns, of the activation: summed over the batch.
    pub fn theta_gradient(
        &self,
        layer: &dyn Affine<T>,
        (input, z): (&Rows<T>, &Rows<T>),
        v: &Rows<T>,
    ) -> Vec<Vec<T>> {
        let mut blocks = layer.gradient(input, z, &self.error(v));
        if let After::Activation(s) = self.after {
            let mut learned = by_penalty(s, self.penalty, self.target, v);
            learned.iter_mut().flatten().for_each(|g| *g *= T::of(self.weight));
            blocks.extend(learned);
        }
        blocks
    }
}

/// What `u_k` enters: the penalty of its own layer, and the term of the map after it, `v_{k+1} = F_{k+1}(u_k, z)`.
pub(super) struct Between<'a, T> {
    pub s: &'a Activation<T>,
    pub penalty: Penalty,
    /// `lambda_k`.
    pub weight: f64,
    /// `v_k`.
    pub v: &'a Rows<T>,
    /// `F_{k+1}`.
    pub layer: &'a dyn Affine<T>,
    pub z: &'a Rows<T>,
    pub after: Term<'a, T>,
}

impl<T: Real> Between<'_, T> {
    /// `df/du_k` at `u`, where the map after it gives `next`.
    pub fn gradient(&self, u: &Rows<T>, next: &Rows<T>) -> Rows<T> {
        let (mut back, weight) = (u.zeros_like(), T::of(self.weight));
        self.layer.adjoint(&self.after.error(next), &mut back);
        back.zip(&self.penalty.by_u(self.s, u, self.v), |back, own| back + weight * own);
        back
    }
}

/// A batch with its auxiliary variables; the network, which may move, is given with every question.
pub struct Lifted<'a, T> {
    pub(super) z: &'a Rows<T>,
    x: &'a Rows<T>,
    /// What holds `u` to the activations.
    penalty: Penalty,
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

    /// The same of a network whose layers are spread over a team.
    pub(super) fn among(
        network: &Network<T>,
        z: &'a Rows<T>,
        x: &'a Rows<T>,
        share: &LayerShare,
    ) -> Result<Self> {
        network.check(z, x)?;
        Ok(Self { z, x, penalty: Penalty::Bregman, weights: Vec::new(), pass: share.forward(network, z) })
    }

    /// The same with these `u`. Fails when the samples or `u` do not fit the network.
    pub fn with_u(network: &Network<T>, z: &'a Rows<T>, x: &'a Rows<T>, u: Vec<Rows<T>>) -> Result<Self> {
        network.check(z, x)?;
        network.check_u(&u, z.samples())?;
        Ok(Self { z, x, penalty: Penalty::Bregman, weights: Vec::new(), pass: network.pass_at(z, u) })
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

    /// Computes the `v_k` of these layers again, each by itself.
    pub(super) fn follow_all(&mut self, network: &Network<T>, layers: Range<usize>) {
        let (pass, z) = (&self.pass, self.z);
        let v: Vec<_> =
            layers.clone().into_par_iter().map(|k| network.affine(k, pass.input(k, z), z)).collect();
        self.pass.v.splice(layers, v);
    }

    /// The term of `E` that `theta_k` enters.
    pub(super) fn term<'s>(&'s self, after: After<'s, T>, k: usize, mu: f64) -> Term<'s, T> {
        let (target, weight) = match self.pass.u.get(k) {
            Some(u) => (u, self.weight(k)),
            None => (self.x, mu),
        };
        Term { after, penalty: self.penalty, target, weight }
    }

    /// Both terms that `u_k` enters.
    pub(super) fn between<'s>(&'s self, network: &'s Network<T>, k: usize, mu: f64) -> Between<'s, T> {
        Between {
            s: &network.activations()[k],
            penalty: self.penalty,
            weight: self.weight(k),
            v: &self.pass.v[k],
            layer: &*network.layers()[k + 1],
            z: self.z,
            after: self.term(network.after(k + 1), k + 1, mu),
        }
    }

    /// The part of `E` that `theta_k` enters, of each sample: `lambda_k P(u_k, v_k)`, or `mu l` for `k = K`.
    pub fn block(&self, network: &Network<T>, k: usize, mu: f64) -> Vec<f64> {
        self.term(network.after(k), k, mu).values(&self.pass.v[k])
    }

    /// `E`, summed over the batch: the penalties of all layers, then the loss.
    pub fn energy(&self, network: &Network<T>, mu: f64) -> Vec<f64> {
        self.energy_of(network, mu, 0..self.depth() + 1)
    }

    /// The same of these layers.
    pub(super) fn energy_of(&self, network: &Network<T>, mu: f64, layers: Range<usize>) -> Vec<f64> {
        layers.into_par_iter().map(|k| self.block(network, k, mu).iter().sum()).collect()
    }

    /// `d_k`, the error of the affine map `k = 0..=K`.
    pub fn error(&self, network: &Network<T>, k: usize, mu: T) -> Rows<T> {
        self.term(network.after(k), k, mu.to_double()).error(&self.pass.v[k])
    }

    /// `df/dtheta_k`, summed over the batch.
    pub fn theta_gradient(&self, network: &Network<T>, k: usize, mu: T) -> Vec<Vec<T>> {
        let term = self.term(network.after(k), k, mu.to_double());
        term.theta_gradient(&*network.layers()[k], (self.pass.input(k, self.z), self.z), &self.pass.v[k])
    }

    /// `df/du_k`.
    pub fn u_gradient(&self, network: &Network<T>, k: usize, mu: T) -> Rows<T> {
        let Pass { u, v } = &self.pass;
        self.between(network, k, mu.to_double()).gradient(&u[k], &v[k + 1])
    }
}
