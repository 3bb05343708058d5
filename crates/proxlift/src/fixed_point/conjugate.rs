//! `g*`, from the activation: `s` is the prox of `tau g*`.

use super::potential::{Potential, Quadratics};
use crate::prox::{PiecewiseLinear, Prox};
use crate::{Real, Result};
use rayon::prelude::*;

/// `g*` over features, any number of times all of their planes after one another.
pub struct Conjugate<T> {
    /// The prox of `tau g*`.
    s: PiecewiseLinear<T>,
    tau: T,
    potentials: Vec<Potential>,
    /// Numbers of a plane.
    plane: usize,
}

impl<T: Real> Conjugate<T> {
    /// For planes of so many numbers.
    pub fn new(s: PiecewiseLinear<T>, tau: T, plane: usize) -> Self {
        let potentials = (0..s.features()).map(|j| Potential::new(&s, tau, j)).collect();
        Self { s, tau, potentials, plane }
    }

    /// The potentials, feature by feature.
    pub fn potentials(&self) -> &[Potential] {
        &self.potentials
    }

    /// `g*(u)`.
    pub fn sum(&self, u: &[T]) -> f64 {
        self.sums(u, |potential| &potential.conjugate)
    }

    /// `g(w)`.
    pub fn sum_conjugate(&self, w: &[T]) -> f64 {
        self.sums(w, |potential| &potential.g)
    }

    fn sums(&self, of: &[T], which: impl Fn(&Potential) -> &Quadratics + Sync) -> f64 {
        let features = self.potentials.len();
        let one = |(i, plane): (usize, &[T])| which(&self.potentials[i % features]).sum(plane);
        let sums: Vec<f64> = of.par_chunks(self.plane).enumerate().map(one).collect();
        sums.iter().sum()
    }
}

impl<T: Real> Prox<T> for Conjugate<T> {
    fn validate(&self) -> Result<()> {
        self.s.validate()
    }

    fn scale(&mut self, factor: T) {
        self.s.scale(factor);
        *self = Self::new(self.s.clone(), self.tau, self.plane);
    }

    fn value(&self, u: &[T]) -> T {
        T::of(self.sum(u))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        T::of(self.sum_conjugate(w))
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
