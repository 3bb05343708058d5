//! What the dual solver is told, and what it tells: Params, Info, Error.

use crate::{Error, Real};

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

impl DualInfo {
    /// The gap relative to the primal value; 0 if both are zero.
    pub fn relative_gap(&self) -> f64 {
        if self.gap == 0.0 { 0.0 } else { self.gap / self.primal }
    }
}

/// Why [`super::DualForwardBackward`] refused or failed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DualError {
    /// A field does not fit the operator.
    #[error("a field has {found} entries, but the operator needs {expected}")]
    Length {
        /// What was given.
        found: usize,
        /// What the operator needs.
        expected: usize,
    },
    /// The step is no step.
    #[error("the step {0} is not a finite positive number")]
    Step(f64),
    /// A parameter of the stopping rule or of the inertia is out of range.
    #[error("the tolerance must be >= 0, the gap be checked every 1 or more iterations, and a be above 2")]
    Parameter,
    /// The iterates blew up: the step is too long for the operator, or the input is not finite.
    #[error(
        "the iterates were not finite after {0} iterations: is tau below 2 / ||L||^2 and the input finite?"
    )]
    NotFinite(usize),
}

impl From<DualError> for Error {
    fn from(error: DualError) -> Self {
        Self::invalid(error.to_string())
    }
}
