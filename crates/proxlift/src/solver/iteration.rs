//! What the splitting algorithms share: when they stop, what they tell, and the smooth functions that they take.

use crate::operator::{LinearOperator, PowerState, spectral_norm};
use crate::prox::LeastSquares;
use crate::real::{norm_squared, sum2};
use crate::{Error, Real, Result};
use std::ops::ControlFlow;

/// When an iteration stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// At a change of the iterate by at most this share of its norm.
    pub tolerance: f64,
    /// At most so many iterations.
    pub most: usize,
}

impl Default for Until {
    fn default() -> Self {
        Self { tolerance: 1e-5, most: 1000 }
    }
}

/// Why an iteration stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It moved no further than the tolerance.
    Settled,
    /// The iteration limit came first.
    IterationLimit,
}

/// How an iteration went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// How many there were.
    pub iterations: usize,
    /// The last change, relative to the norm of the iterate.
    pub residual: f64,
    /// Why it stopped.
    pub ended: Ended,
}

/// An iterate, as those see it who watch.
#[derive(Clone, Copy, Debug)]
pub struct Iterate<'a, T> {
    /// How many iterations are done.
    pub iteration: usize,
    /// The estimate.
    pub x: &'a [T],
    /// What the algorithm carries beside it: a dual variable or the point that is reflected; else empty.
    pub other: &'a [T],
    /// The change, relative to the norm.
    pub residual: f64,
}

/// Told of every iteration; ends the work if it breaks.
pub type Watcher<'a, T> = dyn FnMut(&Iterate<'_, T>) -> ControlFlow<()> + 'a;

/// Repeats `step(x, other)`, which moves both and returns the squared norms of its change and of what changed, until the rule
/// says stop.
pub(super) fn repeat<T: Real>(
    until: &Until,
    (x, other): (&mut Vec<T>, &mut Vec<T>),
    watch: &mut Watcher<'_, T>,
    mut step: impl FnMut(&mut Vec<T>, &mut Vec<T>) -> (f64, f64),
) -> Result<Course> {
    let mut course = Course { iterations: 0, residual: f64::INFINITY, ended: Ended::IterationLimit };
    while course.iterations < until.most {
        let (change, size) = step(x, other);
        course.iterations += 1;
        course.residual = if change == 0.0 { 0.0 } else { (change / size).sqrt() };
        refuse!(course.residual.is_nan() =>
            "the iterates were not finite after {} iterations: is the input finite?", course.iterations);
        let Course { iterations: iteration, residual, .. } = course;
        if watch(&Iterate { iteration, x, other, residual }).is_break() {
            return Err(Error::Cancelled);
        }
        if residual <= until.tolerance {
            course.ended = Ended::Settled;
            break;
        }
    }
    Ok(course)
}

/// `||a - b||^2` and `||a||^2`.
pub(super) fn moved<T: Real>(a: &[T], b: &[T]) -> (f64, f64) {
    (sum2(a, b, |a, b| (a - b).to_double().powi(2)), norm_squared(a))
}

/// A convex function with a Lipschitz gradient.
pub trait Smooth<T: Real> {
    /// `f(x)`.
    fn at(&self, x: &[T]) -> f64;
    /// `out = grad f(x)`.
    fn gradient(&self, x: &[T], out: &mut [T]);
}

impl<T: Real, A: LinearOperator<T>> Smooth<T> for LeastSquares<A, T> {
    fn at(&self, x: &[T]) -> f64 {
        self.energy(x)
    }

    fn gradient(&self, x: &[T], out: &mut [T]) {
        LeastSquares::gradient(self, x, out);
    }
}

/// The function that is zero: for problems without a smooth part.
#[derive(Clone, Copy, Debug)]
pub struct Flat;

impl<T: Real> Smooth<T> for Flat {
    fn at(&self, _: &[T]) -> f64 {
        0.0
    }

    fn gradient(&self, _: &[T], out: &mut [T]) {
        out.fill(T::zero());
    }
}

/// A norm to take steps by: that of the power iteration, enlarged by its tolerance.
pub fn safe_norm<T: Real>(op: &(impl LinearOperator<T> + ?Sized)) -> f64 {
    let params = crate::operator::NormParams::default();
    let found = spectral_norm(op, &mut PowerState::new(op, 0), &params);
    found.norm.to_double() * (1.0 + found.residual.max(params.tolerance))
}
