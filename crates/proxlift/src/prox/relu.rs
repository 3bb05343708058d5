//! The indicator of the non-negative numbers; its prox is relu.

use super::{Prox, indicator, slack, threshold::pull_where};
use crate::Real;

/// `psi(u) = 0` if `u >= 0` everywhere, else `+inf`.
///
/// ```text
/// prox_{tau psi}(v) = max(v, 0)          for every tau
/// psi*(w)           = 0 if w <= 0 everywhere, else +inf
/// ```
///
/// The derivative at zero is taken as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Relu;

impl Relu {
    /// The same in any precision.
    pub fn cast(self) -> Self {
        self
    }
}

impl<T: Real> Prox<T> for Relu {
    /// It is the same at every contrast.
    fn scale(&mut self, _factor: T) {}

    fn value(&self, u: &[T]) -> T {
        indicator(u.iter().all(|&u| u >= -slack(T::zero())))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        indicator(w.iter().all(|&w| w <= slack(T::zero())))
    }

    fn prox_in_place(&self, _tau: T, v: &mut [T]) {
        for v in v {
            // Not max, which would turn a NaN into zero.
            *v = if *v < T::zero() { T::zero() } else { *v };
        }
    }

    /// `min(v, 0)`, for every `tau`.
    fn prox_conjugate(&self, _tau: T, v: &[T], out: &mut [T]) {
        assert_eq!(v.len(), out.len(), "the fields of a prox have different lengths");
        out.iter_mut().zip(v).for_each(|(out, &v)| *out = if v > T::zero() { T::zero() } else { v });
    }

    fn pullback(&self, _tau: T, v: &[T], g: &[T], out: &mut [T]) {
        pull_where([()].into_iter(), (v, g, out), |(), v| v > T::zero());
    }
}
