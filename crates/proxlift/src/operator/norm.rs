//! The norm of an operator by warm-started power iteration.

use super::LinearOperator;
use crate::Real;
use crate::real::{norm_squared, sum2};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// When [`spectral_norm`] stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormParams {
    /// The relative residual `||L* L x - rho x|| / rho` to reach, `rho = ||L x||^2`, `||x|| = 1`. `L* L` then has an
    /// eigenvalue within `tolerance * rho` of `rho`: the norm is right to half of `tolerance`, unless the start is
    /// (against all odds) orthogonal to the leading singular vectors.
    pub tolerance: f64,
    /// At most so many applications of `L* L`.
    pub max_iterations: usize,
    /// At least so many, whatever the residual: a warm start may lie near a singular vector that no longer leads.
    pub min_iterations: usize,
}

impl Default for NormParams {
    fn default() -> Self {
        Self { tolerance: 1e-3, max_iterations: 500, min_iterations: 1 }
    }
}

/// Why [`spectral_norm`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormStop {
    /// The residual is below the tolerance.
    Converged,
    /// The iteration limit came first; the norm is still a lower bound.
    IterationLimit,
    /// The operator sent two random vectors to zero: it is zero.
    ZeroOperator,
}

/// What [`spectral_norm`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormInfo<T> {
    /// `sqrt(||L* L x||)`, which never exceeds `||L||` (up to rounding).
    pub norm: T,
    /// The relative residual reached.
    pub residual: f64,
    /// How many times `L* L` was applied.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: NormStop,
}

impl<T> NormInfo<T> {
    /// Whether the norm is known to the tolerance asked for.
    pub fn converged(&self) -> bool {
        self.stop != NormStop::IterationLimit
    }
}

/// The memory of a power iteration: the vector reached last, from which the next call starts, and scratch.
///
/// While a layer's filters change slowly, one or two iterations a call follow its norm.
#[derive(Clone, Debug)]
pub struct PowerState<T> {
    /// The estimate of the leading right singular vector, `||x|| = 1`.
    x: Vec<T>,
    /// `L x`.
    y: Vec<T>,
    /// `L* L x`.
    next: Vec<T>,
    generator: ChaCha8Rng,
}

impl<T: Real> PowerState<T> {
    /// Memory for operators of the shape of `op`; the start is drawn from `seed` and nothing else.
    pub fn new(op: &(impl LinearOperator<T> + ?Sized), seed: u64) -> Self {
        let (domain, range) = (op.domain_len(), op.range_len());
        let mut state = Self {
            x: vec![T::zero(); domain],
            y: vec![T::zero(); range],
            next: vec![T::zero(); domain],
            generator: crate::random::seeded(seed),
        };
        state.draw();
        state
    }

    /// The estimate of the leading right singular vector.
    pub fn vector(&self) -> &[T] {
        &self.x
    }

    /// The same, to set the start of the next call.
    pub fn vector_mut(&mut self) -> &mut [T] {
        &mut self.x
    }

    fn draw(&mut self) {
        for x in &mut self.x {
            let normal: f64 = StandardNormal.sample(&mut self.generator);
            *x = T::of(normal);
        }
        normalise(&mut self.x);
    }
}

fn normalise<T: Real>(x: &mut [T]) {
    let scale = T::of(1.0 / norm_squared(x).sqrt());
    x.iter_mut().for_each(|x| *x *= scale);
}

/// `||L||`, the largest singular value, by power iteration on `L* L` from the vector in `state`.
///
/// The result is a lower bound of the norm; a step that must not exceed `1 / ||L||^2` is safe with
/// [`super::convolution_norm_bound`], or with this value enlarged by the tolerance.
pub fn spectral_norm<T: Real>(
    op: &(impl LinearOperator<T> + ?Sized),
    state: &mut PowerState<T>,
    params: &NormParams,
) -> NormInfo<T> {
    let mut info =
        NormInfo { norm: T::zero(), residual: f64::INFINITY, iterations: 0, stop: NormStop::IterationLimit };
    let mut redrawn = false;
    while info.iterations < params.max_iterations {
        op.apply(&state.x, &mut state.y);
        op.adjoint(&state.y, &mut state.next);
        info.iterations += 1;
        let (rho, length) = (norm_squared(&state.y), norm_squared(&state.next).sqrt());
        if length == 0.0 {
            if redrawn {
                return NormInfo { norm: T::zero(), residual: 0.0, stop: NormStop::ZeroOperator, ..info };
            }
            redrawn = true;
            state.draw();
            continue;
        }
        let defect = sum2(&state.next, &state.x, |ax, x| (ax.to_double() - rho * x.to_double()).powi(2));
        info.residual = defect.sqrt() / rho;
        info.norm = T::of(length.sqrt());
        std::mem::swap(&mut state.x, &mut state.next);
        normalise(&mut state.x);
        if info.residual <= params.tolerance && info.iterations >= params.min_iterations {
            info.stop = NormStop::Converged;
            break;
        }
    }
    info
}
