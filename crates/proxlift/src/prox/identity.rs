//! No penalty; the prox is the identity.

use super::{Prox, indicator, slack};
use crate::Real;

/// `psi = 0`.
///
/// ```text
/// prox_{tau psi}(v) = v
/// psi*(w)           = 0 if w = 0, else +inf
/// ```
///
/// Its Bregman penalty is the quadratic one, `B(u, v) = 1/2 ||u - v||^2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity;

impl Identity {
    /// The same in any precision.
    pub fn cast(self) -> Self {
        self
    }
}

impl<T: Real> Prox<T> for Identity {
    /// It is the same at every contrast.
    fn scale(&mut self, _factor: T) {}

    fn value(&self, _u: &[T]) -> T {
        T::zero()
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        indicator(w.iter().all(|w| w.abs() <= slack(T::zero())))
    }

    fn prox_in_place(&self, _tau: T, _v: &mut [T]) {}

    /// Zero, for every `tau`.
    fn prox_conjugate(&self, _tau: T, v: &[T], out: &mut [T]) {
        assert_eq!(v.len(), out.len(), "the fields of a prox have different lengths");
        out.fill(T::zero());
    }

    fn pullback(&self, _tau: T, v: &[T], g: &[T], out: &mut [T]) {
        assert_eq!(v.len(), g.len(), "the fields of a pullback have different lengths");
        out.copy_from_slice(g);
    }
}
