//! What holds `u_k` to `s_k(v_k)`.
//!
//! | | `P(u, v)` | `dP/dv` | what `u` may be |
//! |---|---|---|---|
//! | Bregman (the paper; Fenchel lifted networks, Gu, Askari and El Ghaoui 2018) | `q(u) + q*(v) - <u, v>` | `s(v) - u` | the domain of `psi` |
//! | quadratic (MAC, Carreira-Perpinan and Wang 2014) | `1/2 ||u - s(v)||^2` | `s'(v) (s(v) - u)` | anything |
//!
//! With `q = 1/2 ||.||^2 + psi` strongly convex, `B(u, v) >= 1/2 ||u - s(v)||^2`, with equality for all `u` where `s` is the
//! identity. The Bregman penalty is convex in each argument and needs no derivative of `s`; the quadratic one has the slope of
//! `s` in its gradient, as back-propagation does.

use super::Rows;
use super::learned::summed;
use super::network::{activate, slope};
use crate::network::Activation;
use crate::{Real, named::named};
use rayon::prelude::*;

named! {
    /// What holds auxiliary variables to the activations.
    pub enum Penalty ("penalty") {
        /// The Bregman distance of the activation's potential.
        Bregman = "bregman",
        /// Half the squared distance.
        Quadratic = "quadratic",
    }
}

impl Penalty {
    /// `P(u, v)` of each sample, for the activation `s`.
    pub fn values<T: Real>(self, s: &Activation<T>, u: &Rows<T>, v: &Rows<T>) -> Vec<f64> {
        let prox = s.prox();
        let value = |(u, v): (&[T], &[T])| {
            let mut s = vec![T::zero(); v.len()];
            match self {
                Self::Bregman => prox.bregman(T::one(), u, v, &mut s).to_double(),
                Self::Quadratic => {
                    prox.prox(T::one(), v, &mut s);
                    0.5 * s.iter().zip(u).map(|(s, u)| (s.to_double() - u.to_double()).powi(2)).sum::<f64>()
                }
            }
        };
        u.par_rows().zip(v.par_rows()).map(value).collect()
    }

    /// `dP/dv`, the error of the affine map.
    pub fn by_v<T: Real>(self, s: &Activation<T>, u: &Rows<T>, v: &Rows<T>) -> Rows<T> {
        let mut d = activate(s, v);
        d.zip(u, |s, u| s - u);
        match self {
            Self::Bregman => d,
            Self::Quadratic => slope(s, v, &d),
        }
    }

    /// `d/du` of the smooth part: `u - v` for Bregman, whose rest is `psi`; `u - s(v)` for the quadratic penalty.
    pub fn by_u<T: Real>(self, s: &Activation<T>, u: &Rows<T>, v: &Rows<T>) -> Rows<T> {
        let mut gradient = u.clone();
        match self {
            Self::Bregman => gradient.zip(v, |u, v| u - v),
            Self::Quadratic => gradient.zip(&activate(s, v), |u, s| u - s),
        }
        gradient
    }

    /// The backward half of a step of length `gamma` on `u_k`: the prox of `gamma psi`, or nothing where all is smooth.
    pub fn backward<T: Real>(self, s: &Activation<T>, gamma: T, u: &mut [T]) {
        if self == Self::Bregman && gamma > T::zero() {
            s.prox().prox_in_place(gamma, u);
        }
    }
}

/// The gradient of a penalty by the activation, summed over the batch; no blocks if it does not learn.
pub(super) fn by_penalty<T: Real>(
    s: &Activation<T>,
    penalty: Penalty,
    u: &Rows<T>,
    v: &Rows<T>,
) -> Vec<Vec<T>> {
    summed(s, v, u, |functions, j, v, u, gradient| match penalty {
        Penalty::Bregman => {
            functions.add_gradient(j, v, T::of(functions.inverse(j, u.to_double())), gradient);
        }
        Penalty::Quadratic => functions.add_derivative(j, v, functions.at(j, v) - u, gradient),
    })
}
