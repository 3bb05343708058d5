//! The primal-dual method of Condat and Vu.
//!
//! L. Condat, "A primal-dual splitting method for convex optimization involving Lipschitzian, proximable and linear composite
//! terms", 2013; B. C. Vu, "A splitting algorithm for dual monotone inclusions involving cocoercive operators", 2013. Without a
//! smooth part it is the method of Chambolle and Pock.

use super::iteration::{Course, Smooth, Until, Watcher, moved, repeat};
use crate::{Real, Result, memory, operator::LinearOperator, prox::Prox};

/// The steps of [`condat_vu`], `1 / tau - sigma ||L||^2 >= lipschitz / 2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrimalDualSteps {
    /// Of `x`.
    pub tau: f64,
    /// Of `u`.
    pub sigma: f64,
}

impl PrimalDualSteps {
    /// For the Lipschitz constant of `grad f` and the norm of `L`, the longest with `sigma = balance tau`.
    pub fn for_norms(lipschitz: f64, norm: f64, balance: f64) -> Self {
        // 1 / tau = lipschitz / 2 + balance tau norm^2.
        let (b, c) = (0.5 * lipschitz, balance * norm * norm);
        let tau = if c > 0.0 { 2.0 / (b + (b * b + 4.0 * c).sqrt()) } else { 1.0 / b.max(f64::MIN_POSITIVE) };
        Self { tau, sigma: balance * tau }
    }
}

/// Minimises `f(x) + g(x) + h(L x)` for a smooth `f`, from the `x` and `u` that it is given, zero where `u` is empty:
///
/// ```text
/// x_{k+1} = prox_{tau g}(x_k - tau (grad f(x_k) + L* u_k))
/// u_{k+1} = prox_{sigma h*}(u_k + sigma L (2 x_{k+1} - x_k))
/// ```
///
/// Every iteration brings `(x, u)` nearer to every solution in the norm of
/// `||x||^2 / tau - 2 <L x, u> + ||u||^2 / sigma`; what the watcher sees beside `x` is `u`.
/// Fails when a step is not positive and finite, a length does not fit, or the iterates are not finite.
pub fn condat_vu<T: Real>(
    (f, g, h): (&(impl Smooth<T> + ?Sized), &(impl Prox<T> + ?Sized), &(impl Prox<T> + ?Sized)),
    op: &(impl LinearOperator<T> + ?Sized),
    (x, u): (&mut Vec<T>, &mut Vec<T>),
    steps: PrimalDualSteps,
    until: &Until,
    watch: &mut Watcher<'_, T>,
) -> Result<Course> {
    let PrimalDualSteps { tau, sigma } = steps;
    refuse!(!(tau > 0.0 && sigma > 0.0 && tau.is_finite() && sigma.is_finite()) =>
        "the steps are {tau} and {sigma}, but they must be above zero");
    refuse!(x.len() != op.domain_len() => "a field has {} entries, but the operator needs {}", x.len(), op.domain_len());
    let (tau, sigma) = (T::of(tau), T::of(sigma));
    if u.is_empty() {
        *u = memory::zeros(op.range_len());
    }
    refuse!(u.len() != op.range_len() => "a field has {} entries, but the operator needs {}", u.len(), op.range_len());
    let (mut gradient, mut back, mut dual) = (x.clone(), x.clone(), u.clone());
    repeat(until, (x, u), watch, |x, u| {
        f.gradient(x, &mut gradient);
        op.adjoint(u, &mut back);
        // x_{k+1}, then 2 x_{k+1} - x_k
        for ((b, &g), &x) in back.iter_mut().zip(&gradient).zip(&*x) {
            *b = x - tau * (g + *b);
        }
        g.prox_in_place(tau, &mut back);
        let primal = moved(&back, x);
        for (b, x) in back.iter_mut().zip(x) {
            (*x, *b) = (*b, *b + *b - *x);
        }
        op.apply(&back, &mut dual);
        dual.iter_mut().zip(&*u).for_each(|(d, &u)| *d = u + sigma * *d);
        let before = u.clone();
        h.prox_conjugate(sigma, &dual, u);
        // In the metric of the steps, in which the two weigh alike.
        let (dual, balance) = (moved(u, &before), (tau / sigma).to_double());
        (primal.0 + balance * dual.0, (primal.1 + balance * dual.1).max(f64::MIN_POSITIVE))
    })
}
