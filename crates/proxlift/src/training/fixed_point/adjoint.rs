//! The linear system of the implicit gradient.
//!
//! At the fixed point, with `D = s'(v)`, which is symmetric between 0 and the identity, and `M = I - tau L L*`, the error
//! `w` of the layer's output and that of its affine map, `d = D w`, solve
//!
//! ```text
//! w = g + M D w
//! ```
//!
//! for `g` the gradient of the loss by `u*`. Back-propagation through ever more tied layers sums the series
//! `w = sum_n (M D)^n g`, slowly. Here conjugate gradients solve `A w = D g` with the symmetric
//!
//! ```text
//! A = D - D M D = (D - D^2) + tau D L L* D
//! ```
//!
//! a sum of two parts that are not negative; what they find gives `d`, and then `w = g + M d`.
//!
//! **Where all slopes are below 1**, the potential is smooth: with its curvature `C = tau D / (1 - D)` at the solution, the same is a system
//! of the size of the picture, for the error `e` of the output,
//!
//! ```text
//! (I + L* C L) q = e,      w = -(1 + C / tau) L q,      d = -C / tau L q
//! ```
//!
//! which is positive definite also where `s` falls, `D < 0`, and the function is weakly convex.
//!
//! **Where 1 is an eigenvalue of `M D`**, `A` vanishes on some `p` in the range of `D`: both parts do, so that `D p = p` and
//! `L* p = 0`. These are the directions in which `u*` is not unique. But `g = -L e` is orthogonal to them, so the system can be
//! solved, conjugate gradients from zero stay orthogonal to them, and what they find is the solution of least norm. Any other
//! gives the same gradient along all changes of `theta` that leave the set where `s` is flat as it is: `x^` stays unique.

use crate::network::Layer;
use crate::real::{norm_squared, sum2};
use crate::{Real, engine::Engine, field::Field};

/// The solution.
pub(super) struct Adjoint<T: Real> {
    /// `d = D w`.
    pub d: Field<T>,
    /// `w = g + M d`.
    pub w: Field<T>,
    /// Iterations that it took.
    pub iterations: usize,
}

/// Solves it for one sample by a system of the size of the picture: to `tolerance` of the norm of `e`, or in `most` iterations.
pub(super) fn solve_smooth<T: Real>(
    engine: &dyn Engine<T>,
    layer: Layer<'_, T>,
    v: &Field<T>,
    e: &Field<T>,
    (tolerance, most): (f64, usize),
) -> Adjoint<T> {
    let (mut features, mut curvature) = (v.zeros_like(), v.zeros_like());
    features.map(|_| T::one());
    engine.slope(layer, v, &features, &mut curvature);
    curvature.map(|d| d / (T::one() - d));
    let (mut q, mut residual, mut p, mut ap) = (e.zeros_like(), e.clone(), e.clone(), e.zeros_like());
    let mut rho = norm_squared(residual.data());
    let enough = tolerance * tolerance * rho;
    let mut iterations = 0;
    while iterations < most && rho > enough {
        engine.analyse(layer.theta, &p, &mut features);
        features.zip(&curvature, |f, c| layer.tau * c * f);
        engine.adjoint(layer.theta, &features, &mut ap);
        ap.zip(&p, |ap, p| ap + p);
        let length = T::of(rho / sum2(p.data(), ap.data(), |p, ap| (p * ap).to_double()));
        q.zip(&p, |q, p| q + length * p);
        residual.zip(&ap, |r, ap| r - length * ap);
        let now = norm_squared(residual.data());
        let keep = T::of(now / rho);
        p.zip(&residual, |p, r| r + keep * p);
        rho = now;
        iterations += 1;
    }
    engine.analyse(layer.theta, &q, &mut features);
    let mut w = features.clone();
    w.zip(&curvature, |lq, c| -(T::one() + c) * lq);
    let mut d = features;
    d.zip(&curvature, |lq, c| -c * lq);
    Adjoint { d, w, iterations }
}

/// Solves `w = g + M D w` for one sample, to `tolerance` of the norm of `D g`, or in `most` iterations.
pub(super) fn solve<T: Real>(
    engine: &dyn Engine<T>,
    layer: Layer<'_, T>,
    v: &Field<T>,
    (g, image): (&Field<T>, &Field<T>),
    (tolerance, most): (f64, usize),
) -> Adjoint<T> {
    let (mut d, mut la, mut a) = (g.zeros_like(), g.zeros_like(), image.zeros_like());
    let (mut residual, mut y, mut ap) = (g.zeros_like(), g.zeros_like(), g.zeros_like());
    engine.slope(layer, v, g, &mut residual);
    let mut p = residual.clone();
    let mut rho = norm_squared(residual.data());
    let enough = tolerance * tolerance * rho;
    // A direction with less curvature than rounding would leave is one of those where it vanishes.
    let (tau, flat) = (layer.tau.to_double(), T::epsilon().to_double());
    let mut iterations = 0;
    while iterations < most && rho > enough {
        // y = D p and A p = D [(p - y) + tau L L* y]: for a projection D, nothing cancels.
        engine.slope(layer, v, &p, &mut y);
        engine.adjoint(layer.theta, &y, &mut a);
        engine.analyse(layer.theta, &a, &mut la);
        la.zip(&p, |la, p| layer.tau * la + p);
        la.zip(&y, |sum, y| sum - y);
        engine.slope(layer, v, &la, &mut ap);
        let gap = sum2(p.data(), y.data(), |p, y| y.to_double() * (p - y).to_double());
        let curvature = gap.max(0.0) + tau * norm_squared(a.data());
        if curvature <= flat * norm_squared(p.data()) {
            break;
        }
        let length = T::of(rho / curvature);
        d.zip(&y, |d, y| d + length * y);
        residual.zip(&ap, |r, ap| r - length * ap);
        let now = norm_squared(residual.data());
        let keep = T::of(now / rho);
        p.zip(&residual, |p, r| r + keep * p);
        rho = now;
        iterations += 1;
    }
    let mut w = la;
    engine.pullback(layer, &d, &mut a, &mut w);
    w.zip(g, |md, g| md + g);
    Adjoint { d, w, iterations }
}
