//! Two penalties on the two parts of a field.

use super::Prox;
use crate::{Real, Result};

/// `psi(u, w) = a(u) + b(w)`, `u` being the first `length` entries of the field: for a
/// [`Stacked`](crate::operator::Stacked) operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined<A, B> {
    first: A,
    length: usize,
    second: B,
}

impl<A, B> Joined<A, B> {
    /// Of a penalty on so many entries, and one on the others.
    pub fn new(first: A, length: usize, second: B) -> Self {
        Self { first, length, second }
    }
}

impl<T: Real, A: Prox<T>, B: Prox<T>> Prox<T> for Joined<A, B> {
    fn validate(&self) -> Result<()> {
        self.first.validate()?;
        self.second.validate()
    }

    fn scale(&mut self, factor: T) {
        self.first.scale(factor);
        self.second.scale(factor);
    }

    fn value(&self, u: &[T]) -> T {
        let (a, b) = u.split_at(self.length);
        self.first.value(a) + self.second.value(b)
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let (a, b) = w.split_at(self.length);
        self.first.conjugate_value(a) + self.second.conjugate_value(b)
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let (a, b) = v.split_at_mut(self.length);
        self.first.prox_in_place(tau, a);
        self.second.prox_in_place(tau, b);
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        let ((va, vb), (ga, gb)) = (v.split_at(self.length), g.split_at(self.length));
        let (a, b) = out.split_at_mut(self.length);
        self.first.pullback(tau, va, ga, a);
        self.second.pullback(tau, vb, gb, b);
    }

    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        let [u, v, p] = [u, v, p].map(|field| field.split_at(self.length));
        self.first.penalty_distance(tau, u.0, v.0, p.0) + self.second.penalty_distance(tau, u.1, v.1, p.1)
    }
}
