//! `(I + tau A* A)^-1`: what the prox of `1/2 ||A x - y||^2` is made of.

use super::LinearOperator;
use crate::real::{dot, norm_squared};
use crate::{Real, memory};

/// An operator with a way to solve `(I + tau A* A) x = b`.
///
/// [`crate::laws::resolvent_mismatch`] measures how well.
pub trait Resolvent<T: Real>: LinearOperator<T> {
    /// `x = (I + tau A* A)^-1 b`, overwriting `x`. What `x` held may serve as a start.
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]);
}

impl<T: Real, A: Resolvent<T> + ?Sized> Resolvent<T> for Box<A> {
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]) {
        (**self).resolve(tau, b, x);
    }
}

impl<T: Real, A: Resolvent<T> + ?Sized> Resolvent<T> for std::sync::Arc<A> {
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]) {
        (**self).resolve(tau, b, x);
    }
}

/// Solves by conjugate gradients, for any operator; `near`, an operator that is much like it and has a closed form, makes them
/// fast (M. R. Hestenes, E. Stiefel, 1952).
#[derive(Clone, Debug)]
pub struct ConjugateGradients<A, P = Nothing> {
    operator: A,
    near: P,
    /// The residual to reach, relative to the right side.
    pub tolerance: f64,
    /// At most so many iterations.
    pub most: usize,
    /// Whether it starts from what `x` held, which is finite, and not from what `near` says.
    pub warm: bool,
}

/// The preconditioner that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing(usize);

impl<T: Real> LinearOperator<T> for Nothing {
    fn domain_len(&self) -> usize {
        self.0
    }
    fn range_len(&self) -> usize {
        self.0
    }
    fn apply(&self, _: &[T], y: &mut [T]) {
        y.fill(T::zero());
    }
    fn adjoint(&self, _: &[T], x: &mut [T]) {
        x.fill(T::zero());
    }
}

impl<T: Real> Resolvent<T> for Nothing {
    fn resolve(&self, _: T, b: &[T], x: &mut [T]) {
        x.copy_from_slice(b);
    }
}

impl<A> ConjugateGradients<A> {
    /// To six digits, in at most 200 iterations.
    pub fn new<T: Real>(operator: A) -> Self
    where
        A: LinearOperator<T>,
    {
        let near = Nothing(operator.domain_len());
        Self { operator, near, tolerance: 1e-6, most: 200, warm: false }
    }

    /// With an operator of the same domain that is much like it.
    /// Panics when it has another domain.
    pub fn near<T: Real, P: Resolvent<T>>(self, near: P) -> ConjugateGradients<A, P>
    where
        A: LinearOperator<T>,
    {
        assert_eq!(self.operator.domain_len(), near.domain_len(), "the preconditioner has another domain");
        let Self { operator, tolerance, most, warm, .. } = self;
        ConjugateGradients { operator, near, tolerance, most, warm }
    }
}

impl<T: Real, A: LinearOperator<T>, P> LinearOperator<T> for ConjugateGradients<A, P> {
    fn domain_len(&self) -> usize {
        self.operator.domain_len()
    }

    fn range_len(&self) -> usize {
        self.operator.range_len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.operator.apply(x, y);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        self.operator.adjoint(y, x);
    }
}

impl<T: Real, A: LinearOperator<T>, P: Resolvent<T>> Resolvent<T> for ConjugateGradients<A, P> {
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]) {
        let zeros = || memory::zeros::<T>(b.len());
        let (mut r, mut z, mut p, mut q) = (zeros(), zeros(), zeros(), zeros());
        let mut between: Vec<T> = memory::zeros(self.range_len());
        let mut normal = |x: &[T], out: &mut [T]| {
            self.operator.apply(x, &mut between);
            self.operator.adjoint(&between, out);
            out.iter_mut().zip(x).for_each(|(out, &x)| *out = x + tau * *out);
        };
        if !self.warm {
            self.near.resolve(tau, b, x);
        }
        normal(x, &mut q);
        r.iter_mut().zip(b.iter().zip(&q)).for_each(|(r, (&b, &q))| *r = b - q);
        let enough = self.tolerance.powi(2) * norm_squared(b);
        let mut before = 0.0;
        for iteration in 0..self.most {
            if norm_squared(&r) <= enough {
                return;
            }
            self.near.resolve(tau, &r, &mut z);
            let now = dot(&r, &z);
            let beta = T::of(if iteration == 0 { 0.0 } else { now / before });
            before = now;
            p.iter_mut().zip(&z).for_each(|(p, &z)| *p = z + beta * *p);
            normal(&p, &mut q);
            let alpha = T::of(now / dot(&p, &q));
            x.iter_mut().zip(&p).for_each(|(x, &p)| *x += alpha * p);
            r.iter_mut().zip(&q).for_each(|(r, &q)| *r -= alpha * q);
        }
    }
}
