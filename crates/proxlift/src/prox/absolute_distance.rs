//! The sum of absolute distances to data: noise with outliers.

use super::{Prox, SoftThreshold};
use crate::real::dot;
use crate::{Real, Result};

/// `psi(u) = weight ||u - y||_1`: a [`SoftThreshold`] around `y`.
///
/// ```text
/// prox_{tau psi}(v) = y + sign(v - y) max(|v - y| - tau weight, 0)
/// psi*(w)           = <w, y> if |w| <= weight everywhere, else +inf
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AbsoluteDistance<T> {
    y: Vec<T>,
    around_zero: SoftThreshold<T>,
}

impl<T: Real> AbsoluteDistance<T> {
    /// Fails when the weight is negative or not finite.
    pub fn new(y: Vec<T>, weight: T) -> Result<Self> {
        Ok(Self { y, around_zero: SoftThreshold::new(vec![weight])? })
    }

    fn shifted(&self, v: &[T]) -> Vec<T> {
        assert_eq!(v.len(), self.y.len(), "the field is not as long as the data");
        v.iter().zip(&self.y).map(|(&v, &y)| v - y).collect()
    }
}

impl<T: Real> Prox<T> for AbsoluteDistance<T> {
    fn scale(&mut self, factor: T) {
        self.y.iter_mut().for_each(|y| *y *= factor);
        self.around_zero.scale(factor);
    }

    fn value(&self, u: &[T]) -> T {
        self.around_zero.value(&self.shifted(u))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        self.around_zero.conjugate_value(w) + T::of(dot(w, &self.y))
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let mut shifted = self.shifted(v);
        self.around_zero.prox_in_place(tau, &mut shifted);
        v.iter_mut().zip(shifted.iter().zip(&self.y)).for_each(|(v, (&s, &y))| *v = s + y);
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        self.around_zero.pullback(tau, &self.shifted(v), g, out);
    }

    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        let [u, v, p] = [u, v, p].map(|field| self.shifted(field));
        self.around_zero.penalty_distance(tau, &u, &v, &p)
    }
}
