//! Proximity operators: the activations of the networks and the penalties of the solvers.
//!
//! For a proper, lower semi-continuous, convex `psi` and a scale `tau > 0`
//!
//! ```text
//! prox_{tau psi}(v) = argmin_u  1/2 ||u - v||^2 + tau psi(u).
//! ```
//!
//! Each penalty has a file: its formula, its validation, its value, its prox. They act on fields of `J` planes with
//! the same number of pixels each; a penalty with one threshold takes any field, one with `J` thresholds takes
//! threshold `j` for plane `j`. [`crate::laws`] checks them.

mod absolute_distance;
mod box_clip;
mod conjugated;
mod group;
mod group_l2;
mod identity;
mod joined;
mod kullback_leibler;
mod l2_ball;
mod least_squares;
mod piecewise_gradient;
mod piecewise_linear;
mod place;
mod relu;
pub(crate) mod sigmoid;
mod simplex;
mod soft_threshold;
mod softmax;
mod squared_distance;
mod threshold;

pub use absolute_distance::AbsoluteDistance;
pub use box_clip::BoxClip;
pub use conjugated::Conjugated;
pub use group_l2::GroupL2;
pub use identity::Identity;
pub use joined::Joined;
pub use kullback_leibler::KullbackLeibler;
pub use l2_ball::L2Ball;
pub use least_squares::LeastSquares;
pub use piecewise_gradient::PiecewiseGradient;
pub use piecewise_linear::PiecewiseLinear;
pub use relu::Relu;
pub use sigmoid::Sigmoid;
pub use simplex::Simplex;
pub use soft_threshold::SoftThreshold;
pub use softmax::Softmax;
pub use squared_distance::SquaredDistance;

use crate::real::{dot, norm_squared, sum2, sum3};
use crate::{Real, Result};

/// A penalty `psi` through its proximity operator, and the Bregman penalty that it lifts to (def:bregman-loss).
///
/// With `q(u) = 1/2 ||u||^2 + tau psi(u)` and `p = prox_{tau psi}(v)`:
///
/// ```text
/// q*(v)   = <p, v> - 1/2 ||p||^2 - tau psi(p),      grad q*(v) = p
/// B(u, v) = q(u) + q*(v) - <u, v>  >=  1/2 ||u - p||^2,      B(u, v) = 0  iff  u = p.
/// ```
///
/// Implementations give `value`, `conjugate_value`, `prox_in_place`, `pullback` and `scale`; the rest follows.
/// All methods panic when the lengths of their fields differ, or can't be split into the planes of the penalty.
pub trait Prox<T: Real>: Send + Sync {
    /// Checks that the parameters make a penalty: for those that were read from a file.
    fn validate(&self) -> Result<()> {
        Ok(())
    }

    /// The planes that a field must have; none where any field does.
    fn planes(&self) -> Option<usize> {
        None
    }

    /// Replaces `psi` by `u -> factor^2 psi(u / factor)`, whose prox is `v -> factor prox(v / factor)`: the same penalty at
    /// a contrast so many times higher. For `factor = 0`, its limit.
    fn scale(&mut self, factor: T);

    /// `psi(u)`; `+inf` outside the domain. An entry counts as inside when it is within 16 units of rounding (relative
    /// to the bound, or to 1 if that is larger), so that what a prox returns is always inside.
    fn value(&self, u: &[T]) -> T;

    /// `psi*(w) = sup_u <u, w> - psi(u)`, with the same tolerance.
    fn conjugate_value(&self, w: &[T]) -> T;

    /// `v <- prox_{tau psi}(v)`. A NaN stays a NaN.
    fn prox_in_place(&self, tau: T, v: &mut [T]);

    /// `out = prox_{tau psi}(v)`.
    fn prox(&self, tau: T, v: &[T], out: &mut [T]) {
        out.copy_from_slice(v);
        self.prox_in_place(tau, out);
    }

    /// `out = prox_{tau psi*}(v) = v - tau prox_{psi / tau}(v / tau)`, Moreau's identity.
    fn prox_conjugate(&self, tau: T, v: &[T], out: &mut [T]) {
        assert_eq!(v.len(), out.len(), "the fields of a prox have different lengths");
        out.iter_mut().zip(v).for_each(|(out, &v)| *out = T::one() / tau * v);
        self.prox_in_place(T::one() / tau, out);
        out.iter_mut().zip(v).for_each(|(out, &v)| *out = v - tau * *out);
    }

    /// `out = J^T g`, `J` the Jacobian of `prox_{tau psi}` at `v`: the step of back-propagation through the activation.
    ///
    /// At a kink, `J` is that of the side where the prox moves least (clip at its bounds, relu at zero, soft-threshold at
    /// its threshold: zero).
    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]);

    /// `q*_{tau psi}(v)`, the antiderivative of the prox. `scratch`, as long as `v`, is left holding `p`.
    fn q_star(&self, tau: T, v: &[T], scratch: &mut [T]) -> T {
        self.prox(tau, v, scratch);
        T::of(dot(scratch, v) - 0.5 * norm_squared(scratch)) - tau * self.value(scratch)
    }

    /// `B_{tau psi}(u, v)`, the Bregman penalty (def:bregman-loss). `scratch`, as long as `v`, is left holding `p`.
    ///
    /// Neither `q` nor `q*` is formed, whose difference would lose all digits near `u = p`: inserting `p`,
    ///
    /// ```text
    /// B(u, v) = 1/2 ||u - p||^2 + [ tau psi(u) - tau psi(p) - <u - p, v - p> ],
    /// ```
    ///
    /// two terms that are never negative, the second being [`Prox::penalty_distance`].
    fn bregman(&self, tau: T, u: &[T], v: &[T], scratch: &mut [T]) -> T {
        self.prox(tau, v, scratch);
        let quadratic = 0.5 * sum2(u, scratch, |u, p| (u.to_double() - p.to_double()).powi(2));
        T::of(quadratic) + self.penalty_distance(tau, u, v, scratch)
    }

    /// `tau psi(u) - tau psi(p) - <u - p, v - p> >= 0`, the Bregman distance of `tau psi` from `p = prox_{tau psi}(v)` to
    /// `u` along the subgradient `v - p`.
    ///
    /// The default is free of cancellation when `psi` is an indicator; others regroup it.
    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        let slope = sum3(u, v, p, |u, v, p| (u - p).to_double() * (v - p).to_double());
        tau * (self.value(u) - self.value(p)) - T::of(slope)
    }

    /// `out = grad_v B_{tau psi}(u, v) = prox_{tau psi}(v) - u` (eq:grad-bregman-loss).
    fn bregman_gradient(&self, tau: T, u: &[T], v: &[T], out: &mut [T]) {
        assert_eq!(u.len(), v.len(), "the fields of a Bregman penalty have different lengths");
        self.prox(tau, v, out);
        out.iter_mut().zip(u).for_each(|(out, &u)| *out -= u);
    }
}

impl<T: Real, P: Prox<T> + ?Sized> Prox<T> for Box<P> {
    fn validate(&self) -> Result<()> {
        (**self).validate()
    }

    fn planes(&self) -> Option<usize> {
        (**self).planes()
    }

    fn scale(&mut self, factor: T) {
        (**self).scale(factor);
    }

    fn value(&self, u: &[T]) -> T {
        (**self).value(u)
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        (**self).conjugate_value(w)
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        (**self).prox_in_place(tau, v);
    }

    fn prox_conjugate(&self, tau: T, v: &[T], out: &mut [T]) {
        (**self).prox_conjugate(tau, v, out);
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        (**self).pullback(tau, v, g, out);
    }

    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        (**self).penalty_distance(tau, u, v, p)
    }
}

fn indicator<T: Real>(inside: bool) -> T {
    if inside { T::zero() } else { T::infinity() }
}

/// How far outside a bound counts as rounding.
fn slack<T: Real>(bound: T) -> T {
    T::of(16.0) * T::epsilon() * bound.abs().max(T::one())
}
