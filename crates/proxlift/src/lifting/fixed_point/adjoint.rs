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
//! **Where 1 is an eigenvalue of `M D`**, `A` vanishes on some `p` in the range of `D`: both parts do, so that `D p = p` and
//! `L* p = 0`. These are the directions in which `u*` is not unique. But `g = -L e` is orthogonal to them, so the system can be
//! solved, conjugate gradients from zero stay orthogonal to them, and what they find is the solution of least norm. Any other
//! gives the same gradient along all changes of `theta` that leave the set where `s` is flat as it is: `x^` stays unique.

use crate::network::Layer;
use crate::real::{dot, sum2};
use crate::{Real, engine::Engine, field::Field};

/// The solution.
pub(super) struct Adjoint<T: Real> {
    /// `d = D w`.
    pub d: Field<T>,
    /// `w = g + M d`.
    pub w: Field<T>,
    /// Iterations that the slowest sample took.
    pub iterations: usize,
}

/// Solves `w = g + M D w` for each sample, to `tolerance` of the norm of `D g`, or in `most` iterations.
pub(super) fn solve<T: Real>(
    engine: &dyn Engine<T>,
    layer: Layer<'_, T>,
    v: &Field<T>,
    (g, image): (&Field<T>, &Field<T>),
    (tolerance, most): (f64, usize),
) -> Adjoint<T> {
    let samples = g.samples();
    let (mut d, mut la, mut a) = (g.zeros_like(), g.zeros_like(), image.zeros_like());
    let (mut residual, mut y, mut ap) = (g.zeros_like(), g.zeros_like(), g.zeros_like());
    engine.slope(layer, v, g, &mut residual);
    let mut p = residual.clone();
    let mut rho = squares(&residual);
    let enough: Vec<f64> = rho.iter().map(|rho| tolerance * tolerance * rho).collect();
    let mut open: Vec<bool> = rho.iter().map(|rho| *rho > 0.0).collect();
    // A direction with less curvature than rounding would leave is one of those where it vanishes.
    let (tau, flat) = (layer.tau.to_double(), T::epsilon().to_double());
    let mut iterations = 0;
    while iterations < most && open.contains(&true) {
        // y = D p and A p = D [(p - y) + tau L L* y]: for a projection D, nothing cancels.
        engine.slope(layer, v, &p, &mut y);
        engine.adjoint(layer.theta, &y, &mut a);
        engine.analyse(layer.theta, &a, &mut la);
        la.zip(&p, |la, p| layer.tau * la + p);
        la.zip(&y, |sum, y| sum - y);
        engine.slope(layer, v, &la, &mut ap);
        let (of_a, of_p) = (squares(&a), squares(&p));
        let mut length = vec![T::zero(); samples];
        for s in 0..samples {
            let gap = sum2(p.sample(s), y.sample(s), |p, y| y.to_double() * (p - y).to_double());
            let curvature = gap.max(0.0) + tau * of_a[s];
            open[s] &= curvature > flat * of_p[s];
            if open[s] {
                length[s] = T::of(rho[s] / curvature);
            }
        }
        add(&mut d, &length, &y, T::one());
        add(&mut residual, &length, &ap, -T::one());
        let now = squares(&residual);
        let keep: Vec<T> =
            (0..samples).map(|s| if open[s] { T::of(now[s] / rho[s]) } else { T::zero() }).collect();
        let each = p.sample_len();
        for (s, p) in p.data_mut().chunks_exact_mut(each).enumerate() {
            p.iter_mut().zip(residual.sample(s)).for_each(|(p, &r)| *p = r + keep[s] * *p);
        }
        rho = now;
        open.iter_mut().zip(rho.iter().zip(&enough)).for_each(|(open, (rho, enough))| *open &= rho > enough);
        iterations += 1;
    }
    let mut w = la;
    engine.pullback(layer, &d, &mut a, &mut w);
    w.zip(g, |md, g| md + g);
    Adjoint { d, w, iterations }
}

/// `||a||^2` of each sample.
fn squares<T: Real>(a: &Field<T>) -> Vec<f64> {
    (0..a.samples()).map(|s| dot(a.sample(s), a.sample(s))).collect()
}

/// `a += sign lengths[s] b`, sample by sample.
fn add<T: Real>(a: &mut Field<T>, lengths: &[T], b: &Field<T>, sign: T) {
    let each = a.sample_len();
    for (s, a) in a.data_mut().chunks_exact_mut(each).enumerate() {
        a.iter_mut().zip(b.sample(s)).for_each(|(a, &b)| *a += sign * lengths[s] * b);
    }
}
