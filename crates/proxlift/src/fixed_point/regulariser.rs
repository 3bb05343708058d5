//! What a network at its fixed point minimises, on a whole picture.
//!
//! The activation is `s = prox_{tau g*}`, so the fixed point solves
//!
//! ```text
//! x^ = argmin_x  1/2 ||x - z||^2 + R(x),      R(x) = g(L x)
//! ```
//!
//! with a convex `R` whatever the weights are, as slopes of activations lie between 0 and 1. So `z -> x^` is the proximity
//! operator of `R`, and firmly non-expansive: `||x^ - y^||^2 <= <x^ - y^, z - w>` for the results of `z` and `w`. How near
//! an iterate is to `x^` is proven by the [duality gap](crate::solver::DualForwardBackward).

use super::{Conjugate, FixedPoint, Mirrored};
use crate::engine::Engine;
use crate::operator::LinearOperator;
use crate::prox::Prox;
use crate::solver::{DualForwardBackward, DualInfo, DualParams, Inertia, StopRule, Watch};
use crate::{Real, Result, memory};

/// `R`, for pictures of one size.
pub struct Regulariser<'e, T: Real> {
    /// `L`.
    pub operator: Mirrored<'e, T>,
    /// `g*`.
    pub conjugate: Conjugate<T>,
    /// A step that inertia allows: `tau ||L||^2 <= 1`.
    pub tau: T,
}

impl<T: Real> FixedPoint<T> {
    /// `R` for pictures of this height and width.
    /// Fails when the network has a stride, or an activation that is not learned, or one that may be expansive.
    pub fn regulariser<'e>(
        &self,
        engine: &'e dyn Engine<T>,
        size: (usize, usize),
    ) -> Result<Regulariser<'e, T>> {
        let Some(s) = self.activation.piecewise() else {
            return Err(invalid!("the regulariser is written for clips and for learned activations"));
        };
        refuse!(s.steepest() > T::one() => "a slope of an activation is above 1: the network is no proximity operator");
        let operator = Mirrored::new(engine, self.theta.clone(), size)?;
        let norm = operator.norm()?;
        let tau = if norm > 0.0 { T::of(1.0 / (norm * norm)) } else { self.tau };
        let conjugate = Conjugate::new(s.with_step(tau / self.tau), tau, operator.plane());
        Ok(Regulariser { operator, conjugate, tau })
    }
}

impl<T: Real> Regulariser<'_, T> {
    /// `R(x)`.
    pub fn value(&self, x: &[T]) -> f64 {
        let mut features: Vec<T> = memory::zeros(self.operator.range_len());
        self.operator.apply(x, &mut features);
        self.conjugate.conjugate_value(&features).to_double()
    }

    /// `prox_R(z)`, as near as the rule asks; `watch` may end it.
    /// Fails when the length does not fit, or the iterates are not finite.
    pub fn prox(&self, z: &[T], stop: StopRule, watch: &mut Watch<'_>) -> Result<(Vec<T>, DualInfo)> {
        let mut solver = DualForwardBackward::new(&self.operator);
        let params = DualParams { tau: self.tau, inertia: Inertia::Nesterov, stop };
        let info = solver.solve_watched(&self.operator, &self.conjugate, z, &params, watch)?;
        Ok((solver.into_x(), info))
    }
}
