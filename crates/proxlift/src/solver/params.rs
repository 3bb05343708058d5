//! What the dual solver is told, and what it tells.

use crate::Real;

/// The extrapolation `y_k = u_k + beta_k (u_k - u_{k-1})`, `beta_k = (t_k - 1) / t_{k+1}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inertia {
    /// `beta = 0`: the plain method, for steps below `2 / ||L||^2`. The dual value converges like `1/k`.
    None,
    /// `t_{k+1} = (1 + sqrt(1 + 4 t_k^2)) / 2` (FISTA), for steps up to `1 / ||L||^2`; converges like `1/k^2`.
    Nesterov,
    /// `t_k = (k + a - 1) / a` with `a > 2`: the same rate, and the iterates converge too.
    ChambolleDossal {
        /// Larger means less inertia early.
        a: f64,
    },
}

impl Inertia {
    /// `t_{k+1}` from `t_k`.
    pub(super) fn next(self, t: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Nesterov => 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt()),
            Self::ChambolleDossal { a } => t + 1.0 / a,
        }
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopRule {
    /// At a relative duality gap, or at the iteration limit.
    Gap {
        /// The gap to reach, relative to the primal value.
        tolerance: f64,
        /// At most so many iterations.
        max_iterations: usize,
        /// Measure the gap every so many iterations (one measurement costs about as much as one iteration).
        check_every: usize,
    },
    /// After exactly so many iterations, as an unrolled network does.
    Iterations(usize),
}

impl Default for StopRule {
    fn default() -> Self {
        Self::Gap { tolerance: 1e-4, max_iterations: 2000, check_every: 10 }
    }
}

/// The parameters of [`super::DualForwardBackward`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualParams<T> {
    /// The step `tau`: below `2 / ||L||^2` without inertia, at most `1 / ||L||^2` with it.
    pub tau: T,
    /// The extrapolation.
    pub inertia: Inertia,
    /// The stopping rule.
    pub stop: StopRule,
}

impl<T: Real> DualParams<T> {
    /// The usual step for an operator whose norm is at most `norm`: `1.8 / norm^2`, with inertia `1 / norm^2`; and 1
    /// for the operator zero, where any step will do.
    pub fn for_norm(norm: T, inertia: Inertia, stop: StopRule) -> Self {
        let numerator = if inertia == Inertia::None { T::of(1.8) } else { T::one() };
        let tau = if norm > T::zero() { numerator / (norm * norm) } else { T::one() };
        Self { tau, inertia, stop }
    }
}

/// Why [`super::DualForwardBackward`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DualStop {
    /// The relative gap is at most the tolerance.
    GapReached,
    /// The iteration limit came before the tolerance.
    IterationLimit,
    /// The iterations asked for are done.
    IterationsDone,
}

/// How [`super::DualForwardBackward`] ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualInfo {
    /// How many times `u` was updated.
    pub iterations: usize,
    /// `1/2 ||x - z||^2 + g(L x)`.
    pub primal: f64,
    /// The duality gap; `1/2 ||x - x^||^2 <= gap`.
    pub gap: f64,
    /// Why it stopped.
    pub stop: DualStop,
}
