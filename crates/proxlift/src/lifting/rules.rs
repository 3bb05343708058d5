//! Gradients by one reverse sweep from the forward pass: how an error goes back through an activation.
//!
//! With `back_k = A_{k+1}* d_{k+1}` from the layer above, `d_K = mu (grad h(v_K) - x)` and `u_k = s_k(v_k)`,
//!
//! ```text
//! back-propagation   d_k = s_k'(v_k) back_k                                   the tangent
//! straight through   d_k = back_k
//! lifted             d_k = s_k(v_k) - s_k(v_k - back_k)                       the secant: a unit step of u_k on E
//! centred            d_k = (s_k(v_k + back_k) - s_k(v_k - back_k)) / 2        both sides, after dual propagation
//! ```
//!
//! and the gradient by `theta_k` is that of `<d_k, F_k(u_{k-1}, z)> / mu`. As `mu -> 0`, the last two become the first: lifted by
//! the first order of `mu`, centred by the second.
//!
//! R. Hoier, D. Staudt, C. Zach, "Dual propagation: accelerating contrastive Hebbian learning with dyadic neurons", 2023.

use super::learned::summed;
use super::{Network, Rows};
use crate::network::Activation;
use crate::prox::Prox;
use crate::{Real, Result};
use rayon::prelude::*;

/// Gradients by the parameters: of each layer, block by block.
pub type Gradients<T> = Vec<Vec<Vec<T>>>;

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
    let losses = network.loss.values(pass.output(), x);
    let depth = network.depth();
    let mut d = network.loss.error(pass.output(), x, mu);
    let (mut gradients, mut learned) = (Vec::with_capacity(depth + 1), Vec::new());
    for k in (0..=depth).rev() {
        let mut blocks = network.layers()[k].gradient(pass.input(k, z), z, &d);
        blocks.append(&mut learned);
        gradients.push(blocks);
        if k > 0 {
            let (s, mut back) = (&network.activations()[k - 1], pass.u[k - 1].zeros_like());
            network.layers()[k].adjoint(&d, &mut back);
            learned = by_rule(s, rule, &pass.v[k - 1], &back);
            d = through(s, rule, (&pass.v[k - 1], &pass.u[k - 1]), back);
        }
    }
    gradients.reverse();
    let scale = mu.recip();
    gradients.iter_mut().flatten().flatten().for_each(|g| *g *= scale);
    Ok((losses, gradients))
}

/// `d_k` from what comes `back` to `u_k`, for a batch.
pub(super) fn through<T: Real>(
    s: &Activation<T>,
    rule: Rule<T>,
    (v, u): (&Rows<T>, &Rows<T>),
    mut back: Rows<T>,
) -> Rows<T> {
    let (mut d, prox) = (back.zeros_like(), s.prox());
    let values = v.par_rows().zip(u.par_rows());
    let rows = d.par_rows_mut().zip(back.par_rows_mut()).zip(values);
    rows.for_each(|((d, back), values)| rule.through(prox, values, back, d));
    d
}

/// The gradient of an activation that learns, from what comes `back` to `u = s(v)`.
pub(super) fn by_rule<T: Real>(s: &Activation<T>, rule: Rule<T>, v: &Rows<T>, back: &Rows<T>) -> Vec<Vec<T>> {
    let mut blocks = summed(s, v, back, |functions, j, v, back, gradient| match rule {
        Rule::Backprop | Rule::StraightThrough => functions.add_derivative(j, v, back, gradient),
        Rule::Lifted { .. } => functions.add_gradient(j, v, v - back, gradient),
        Rule::Centred { .. } => functions.add_gradient(j, v + back, v - back, gradient),
    });
    if let Rule::Centred { .. } = rule {
        blocks.iter_mut().flatten().for_each(|g| *g *= T::of(0.5));
    }
    blocks
}
