//! Dual forward-backward, plain and inertial.
//!
//! P. L. Combettes, D. Dung, B. C. Vu, "Dualization of signal recovery problems", 2010 (algo:dfb-dual); with inertia,
//! A. Beck, M. Teboulle, "Fast gradient-based algorithms for constrained total variation image denoising", 2009, and
//! A. Chambolle, C. Dossal, "On the convergence of the iterates of FISTA", 2015.

use super::params::{DualInfo, DualParams, DualStop, Inertia, StopRule};
use crate::real::{dot, sum2};
use crate::{Error, Real, Result, operator::LinearOperator, prox::Prox};
use std::ops::ControlFlow;

/// Told how many iterations are done; ends the work if it breaks.
pub type Watch<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Minimises `1/2 ||x - z||^2 + g(L x)` for any operator and any `g`, given by its conjugate `g*` as a [`Prox`]:
///
/// ```text
/// y_k     = u_k + beta_k (u_k - u_{k-1})
/// u_{k+1} = prox_{tau g*}(y_k - tau L (L* y_k - z))              (algo:dfb-dual for beta = 0)
/// x       = z - L* u
/// ```
///
/// **The gap.** By Fenchel-Rockafellar the dual problem is `max_u  1/2 ||z||^2 - 1/2 ||z - L* u||^2 - g*(u)`. At
/// `x = z - L* u`, using `||z||^2 = ||x||^2 + 2 <x, L* u> + ||L* u||^2`,
///
/// ```text
/// gap = primal - dual = 1/2 ||L* u||^2 + g(L x) - 1/2 ||z||^2 + 1/2 ||x||^2 + g*(u)
///                     = g(L x) + g*(u) - <L x, u>,
/// ```
///
/// the Fenchel-Young gap of `L x` and `u`: no large numbers cancel, and as the primal problem is 1-strongly convex,
/// `1/2 ||x - x^||^2 <= gap`. It is infinite while `L x` is outside the domain of `g`.
///
/// The struct is the solver's memory; it keeps `u`, from which the next call starts.
#[derive(Clone, Debug)]
pub struct DualForwardBackward<T> {
    /// `u_k`.
    u: Vec<T>,
    /// `y_k`.
    y: Vec<T>,
    /// `L x`, then `v = y + tau L x`, then `u_{k+1}`.
    next: Vec<T>,
    /// `z - L* y`, or `z - L* u` when the gap is measured.
    x: Vec<T>,
}

impl<T: Real> DualForwardBackward<T> {
    /// Memory for operators of the shape of `op`, at `u = 0`.
    pub fn new(op: &(impl LinearOperator<T> + ?Sized)) -> Self {
        let range = || crate::memory::zeros(op.range_len());
        Self { u: range(), y: range(), next: range(), x: crate::memory::zeros(op.domain_len()) }
    }

    /// The dual variable.
    pub fn u(&self) -> &[T] {
        &self.u
    }

    /// The dual variable, to set the start.
    pub fn u_mut(&mut self) -> &mut [T] {
        &mut self.u
    }

    /// The primal variable `x = z - L* u` of the last call.
    pub fn x(&self) -> &[T] {
        &self.x
    }

    /// The primal variable of the last call, taking the solver apart.
    pub fn into_x(self) -> Vec<T> {
        self.x
    }

    /// Iterates from the present `u` until the rule in `params` says stop; the solution is then [`Self::x`].
    /// Fails when a length does not fit, a parameter is out of range, or the iterates blow up.
    pub fn solve(
        &mut self,
        op: &(impl LinearOperator<T> + ?Sized),
        conjugate: &(impl Prox<T> + ?Sized),
        z: &[T],
        params: &DualParams<T>,
    ) -> Result<DualInfo> {
        self.solve_watched(op, conjugate, z, params, &mut |_| ControlFlow::Continue(()))
    }

    /// [`Self::solve`], with `watch` told of every iteration; it may end the work with [`Error::Cancelled`].
    pub fn solve_watched(
        &mut self,
        op: &(impl LinearOperator<T> + ?Sized),
        conjugate: &(impl Prox<T> + ?Sized),
        z: &[T],
        params: &DualParams<T>,
        watch: &mut Watch<'_>,
    ) -> Result<DualInfo> {
        self.validate(op, z, params)?;
        self.y.copy_from_slice(&self.u);
        let mut t = 1.0;
        let mut iterations = 0;
        loop {
            if let Some(info) = self.measure_when_due(op, conjugate, z, &params.stop, iterations)? {
                return Ok(info);
            }
            if watch(iterations).is_break() {
                return Err(Error::Cancelled);
            }
            primal_at(op, &self.y, z, &mut self.x);
            op.apply(&self.x, &mut self.next);
            self.next.iter_mut().zip(&self.y).for_each(|(v, &y)| *v = y + params.tau * *v);
            conjugate.prox_in_place(params.tau, &mut self.next);
            let next_t = params.inertia.next(t);
            self.extrapolate(T::of((t - 1.0) / next_t));
            std::mem::swap(&mut self.u, &mut self.next);
            t = next_t;
            iterations += 1;
        }
    }

    /// `y = u_{k+1} + beta (u_{k+1} - u_k)`, with `u_{k+1}` in `next`.
    fn extrapolate(&mut self, beta: T) {
        if beta == T::zero() {
            self.y.copy_from_slice(&self.next);
            return;
        }
        for ((y, &next), &u) in self.y.iter_mut().zip(&self.next).zip(&self.u) {
            *y = next + beta * (next - u);
        }
    }

    /// The gap at `u` when the rule asks for it, and the end if there is one. Leaves `x = z - L* u` at the end.
    fn measure_when_due(
        &mut self,
        op: &(impl LinearOperator<T> + ?Sized),
        conjugate: &(impl Prox<T> + ?Sized),
        z: &[T],
        rule: &StopRule,
        iterations: usize,
    ) -> Result<Option<DualInfo>> {
        let (due, tolerance, limit, at_limit) = match *rule {
            StopRule::Gap { tolerance, max_iterations, check_every } => {
                (iterations.is_multiple_of(check_every), tolerance, max_iterations, DualStop::IterationLimit)
            }
            StopRule::Iterations(limit) => (false, -1.0, limit, DualStop::IterationsDone),
        };
        if !due && iterations < limit {
            return Ok(None);
        }
        primal_at(op, &self.u, z, &mut self.x);
        op.apply(&self.x, &mut self.next);
        let penalty = conjugate.conjugate_value(&self.next).to_double();
        let distance = sum2(&self.x, z, |x, z| (x - z).to_double().powi(2));
        let gap = penalty + conjugate.value(&self.u).to_double() - dot(&self.next, &self.u);
        let info =
            DualInfo { iterations, primal: 0.5 * distance + penalty, gap: gap.max(0.0), stop: at_limit };
        refuse!(gap.is_nan() || !distance.is_finite() =>
            "the iterates were not finite after {iterations} iterations: is tau below 2 / ||L||^2 and the input finite?");
        if info.gap <= tolerance * info.primal && info.gap.is_finite() {
            return Ok(Some(DualInfo { stop: DualStop::GapReached, ..info }));
        }
        Ok((iterations >= limit).then_some(info))
    }

    fn validate(
        &self,
        op: &(impl LinearOperator<T> + ?Sized),
        z: &[T],
        params: &DualParams<T>,
    ) -> Result<()> {
        let (domain, range) = (op.domain_len(), op.range_len());
        for (found, expected) in [(z.len(), domain), (self.x.len(), domain), (self.u.len(), range)] {
            refuse!(found != expected => "a field has {found} entries, but the operator needs {expected}");
        }
        let tau = params.tau;
        refuse!(!(tau.is_finite() && tau > T::zero()) => "the step {tau} is not a finite positive number");
        let stop_is_fine = match params.stop {
            StopRule::Gap { tolerance, check_every, .. } => tolerance >= 0.0 && check_every > 0,
            StopRule::Iterations(_) => true,
        };
        let inertia_is_fine =
            !matches!(params.inertia, Inertia::ChambolleDossal { a } if a.is_nan() || a <= 2.0);
        refuse!(!(stop_is_fine && inertia_is_fine) =>
            "the tolerance must be >= 0, the gap be checked every 1 or more iterations, and a be above 2");
        Ok(())
    }
}

/// `x = z - L* u`.
fn primal_at<T: Real>(op: &(impl LinearOperator<T> + ?Sized), u: &[T], z: &[T], x: &mut [T]) {
    op.adjoint(u, x);
    x.iter_mut().zip(z).for_each(|(x, &z)| *x = z - *x);
}
