//! The squared distance to data: Gaussian noise.

use super::Prox;
use crate::real::{dot, norm_squared, sum2};
use crate::{Real, Result, error::check_not_negative};

/// `psi(u) = weight/2 ||u - y||^2`, the negative logarithm of the likelihood of `y = u + noise` with `weight = 1 / sigma^2`.
///
/// ```text
/// prox_{tau psi}(v) = (v + tau weight y) / (1 + tau weight)
/// psi*(w)           = <w, y> + ||w||^2 / (2 weight)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SquaredDistance<T> {
    y: Vec<T>,
    weight: T,
}

impl<T: Real> SquaredDistance<T> {
    /// Fails when the weight is zero, negative or not finite.
    pub fn new(y: Vec<T>, weight: T) -> Result<Self> {
        check_not_negative("the weight of the data", weight.to_double())?;
        refuse!(weight == T::zero() => "the weight of the data is zero");
        Ok(Self { y, weight })
    }
}

impl<T: Real> Prox<T> for SquaredDistance<T> {
    fn scale(&mut self, factor: T) {
        self.y.iter_mut().for_each(|y| *y *= factor);
    }

    fn value(&self, u: &[T]) -> T {
        T::of(0.5 * self.weight.to_double() * sum2(u, &self.y, |u, y| (u - y).to_double().powi(2)))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        T::of(dot(w, &self.y) + norm_squared(w) / (2.0 * self.weight.to_double()))
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        assert_eq!(v.len(), self.y.len(), "the field is not as long as the data");
        let t = tau * self.weight;
        v.iter_mut().zip(&self.y).for_each(|(v, &y)| *v = (*v + t * y) / (T::one() + t));
    }

    fn pullback(&self, tau: T, _: &[T], g: &[T], out: &mut [T]) {
        let slope = T::one() / (T::one() + tau * self.weight);
        out.iter_mut().zip(g).for_each(|(out, &g)| *out = slope * g);
    }

    /// `tau weight/2 ||u - p||^2`.
    fn penalty_distance(&self, tau: T, u: &[T], _: &[T], p: &[T]) -> T {
        let apart = sum2(u, p, |u, p| (u - p).to_double().powi(2));
        T::of(0.5 * (tau * self.weight).to_double() * apart)
    }
}
