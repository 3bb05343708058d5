//! `g*`, from the activation: `s` is the prox of `tau g*`.

use crate::prox::{PiecewiseLinear, Prox};
use crate::{Real, Result};
use rayon::prelude::*;

/// `g*` over features, any number of times all of their planes after one another.
pub struct Conjugate<T> {
    /// The prox of `tau g*`.
    s: PiecewiseLinear<T>,
    tau: T,
    /// Numbers of a plane.
    plane: usize,
}

impl<T: Real> Conjugate<T> {
    /// For planes of so many numbers.
    pub fn new(s: PiecewiseLinear<T>, tau: T, plane: usize) -> Self {
        Self { s, tau, plane }
    }

    fn sum(&self, of: &[T], term: impl Fn(usize, T) -> f64 + Sync) -> T {
        let one = |(i, plane): (usize, &[T])| -> f64 {
            plane.iter().map(|&u| term(i % self.s.features(), u)).sum()
        };
        let sums: Vec<f64> = of.par_chunks(self.plane).enumerate().map(one).collect();
        T::of(sums.iter().sum::<f64>() / self.tau.to_double())
    }
}

impl<T: Real> Prox<T> for Conjugate<T> {
    fn validate(&self) -> Result<()> {
        self.s.validate()
    }

    fn scale(&mut self, factor: T) {
        self.s.scale(factor);
    }

    fn value(&self, u: &[T]) -> T {
        self.sum(u, |j, u| self.s.value_at(j, u.to_double()))
    }

    /// `g(w) = psi*(tau w) / tau` for `psi = tau g*`.
    fn conjugate_value(&self, w: &[T]) -> T {
        self.sum(w, |j, w| self.s.conjugate_at(j, (self.tau * w).to_double()))
    }

    fn prox_in_place(&self, step: T, v: &mut [T]) {
        let rho = step / self.tau;
        let other = (rho != T::one()).then(|| self.s.with_step(rho));
        let s = other.as_ref().unwrap_or(&self.s);
        v.par_chunks_mut(self.plane).enumerate().for_each(|(i, plane)| s.activate(i % s.features(), plane));
    }

    fn pullback(&self, step: T, v: &[T], g: &[T], out: &mut [T]) {
        let rho = step / self.tau;
        let planes = v.chunks(self.plane).zip(g.chunks(self.plane)).zip(out.chunks_mut(self.plane));
        let s = self.s.with_step(rho);
        for (i, ((v, g), out)) in planes.enumerate() {
            let j = i % s.features();
            v.iter().zip(g).zip(out).for_each(|((&v, &g), out)| *out = g * s.slope(j, v));
        }
    }
}
