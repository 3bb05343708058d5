//! Forward-backward steps of the blocks of a lifted energy, as long as their majorants allow (eq:maj-theta), (eq:maj-u).
//!
//! A block `w` of an energy `f + psi`, with `g` the gradient of its smooth part, takes the longest step
//!
//! ```text
//! w+ = prox_{gamma psi}(w - gamma g)    with    f(w+) <= f(w) + <w+ - w, g> + 1/(2 gamma) ||w+ - w||^2
//! ```
//!
//! The parameters of a layer are one block, whose step may be in another [metric](super::metric), and in `u` each sample is a block
//! with a step of its own.

use super::energy::Between;
use super::metric::Diagonal;
use super::network::Part;
use super::{Lifted, Network, Rows};
use crate::Real;
use crate::real::{dot, norm_squared};
use crate::training::backtracking::{Backtracking, Found, Trial};
use rayon::prelude::*;
use std::borrow::Cow;

/// `<w+ - w, g> + 1/(2 gamma) ||w+ - w||^2`, in the norm of the diagonal `a` if there is one.
fn model<T: Real>(after: &[T], before: &[T], g: &[T], gamma: f64, a: Option<&[T]>) -> f64 {
    let moved: Vec<T> = after.iter().zip(before).map(|(&a, &b)| a - b).collect();
    let slope = dot(&moved, g);
    if gamma == 0.0 {
        return slope;
    }
    let length = a.map_or_else(
        || norm_squared(&moved),
        |a| moved.iter().zip(a).map(|(&moved, &a)| (a * moved * moved).to_double()).sum(),
    );
    slope + length / (2.0 * gamma)
}

/// How far the parameters of a layer go.
pub(super) struct ThetaSearch<T> {
    pub steps: Backtracking,
    /// The metric, unless it is Euclidean.
    pub metric: Option<Diagonal<T>>,
}

/// Moves every sample of `w`, whose values are `f`, by the longest step that its majorant allows.
///
/// `backward` is the backward half of a step, `values` what a batch leads to. `bound` may change the model of a sample, from
/// where it went: for values that `psi` is a part of.
pub(super) fn forward_backward<T: Real>(
    w: &mut Rows<T>,
    gradient: &Rows<T>,
    f: &[f64],
    search: &mut Backtracking,
    backward: impl Fn(usize, T, &mut [T]) + Sync,
    bound: impl Fn(usize, &[T], f64) -> f64 + Sync,
    mut values: impl FnMut(&Rows<T>) -> Vec<f64>,
) -> Found {
    let before = w.clone();
    search.search(f, |steps| {
        let rows = w.par_rows_mut().zip(before.par_rows()).zip(gradient.par_rows()).zip(steps).enumerate();
        let models = rows.map(|(i, (((w, before), g), &step))| {
            w.copy_from_slice(before);
            if step == 0.0 {
                return 0.0;
            }
            let gamma = T::of(step);
            w.iter_mut().zip(g).for_each(|(w, &g)| *w -= gamma * g);
            backward(i, gamma, w);
            bound(i, w, model(w, before, g, step, None))
        });
        let models: Vec<f64> = models.collect();
        values(w).into_iter().zip(models).map(|(value, model)| Trial { value, model }).collect()
    })
}

/// Where the search for a step of `u` starts. The curvature of `q` is 1: no longer step of a single block keeps the majorant.
pub(super) fn u_search() -> Backtracking {
    Backtracking { step: 0.5, longest: 1.0, ..Backtracking::default() }
}

impl<T: Real> Between<'_, T> {
    /// `u_k <- prox_{gamma lambda_k psi_k}(u_k - gamma df/du_k)`, and `next = v_{k+1}` follows.
    pub fn step(&self, u: &mut Rows<T>, next: &mut Rows<T>, gamma: &mut Backtracking) -> Found {
        let (gradient, f, weight) = (self.gradient(u, next), self.smooth(u, next), T::of(self.weight));
        forward_backward(
            u,
            &gradient,
            &f,
            gamma,
            |_, gamma, u| self.penalty.backward(self.s, weight * gamma, u),
            |_, _, model| model,
            |u| {
                self.layer.apply(u, self.z, next);
                self.smooth(u, next)
            },
        )
    }

    /// `f` of each sample, but for what does not depend on `u_k`: half the squared distance to `v_k`, or to `s(v_k)` for the
    /// quadratic penalty, with its weight, and the term after it.
    fn smooth(&self, u: &Rows<T>, next: &Rows<T>) -> Vec<f64> {
        let (away, half) = (self.penalty.by_u(self.s, u, self.v), 0.5 * self.weight);
        let after = self.after.values(next).into_iter();
        after.zip(away.rows()).map(|(after, away)| after + half * norm_squared(away)).collect()
    }
}

impl<T: Real> Part<'_, T> {
    /// `theta_k <- theta_k - beta A^{-1} df/dtheta_k`, projected where an activation learns, and `v = v_k` follows.
    pub fn step(
        &mut self,
        lifted: &Lifted<'_, T>,
        v: &mut Rows<T>,
        mu: f64,
        beta: &mut ThetaSearch<T>,
    ) -> Found {
        let (k, z, input) = (self.k, lifted.z, lifted.pass.input(self.k, lifted.z));
        let value = |part: &Self, v: &Rows<T>| lifted.term(part.after(), k, mu).values(v).iter().sum();
        let gradient = lifted.term(self.after(), k, mu).theta_gradient(&**self.layer, (input, z), v);
        let a = beta.metric.as_mut().map(|metric| metric.observe(&gradient));
        let direction = a.as_ref().map_or(Cow::Borrowed(&gradient), |a| Cow::Owned(divided(&gradient, a)));
        let before: Vec<Vec<T>> = self.blocks().into_iter().map(<[T]>::to_vec).collect();
        let f = value(self, v);
        beta.steps.search(&[f], |steps| {
            let step = T::of(steps[0]);
            for ((block, before), d) in self.blocks_mut().into_iter().zip(&before).zip(&*direction) {
                block.iter_mut().zip(before).zip(d).for_each(|((w, &b), &d)| *w = b - step * d);
            }
            self.project();
            self.layer.apply(input, z, v);
            let blocks = self.blocks().into_iter().zip(&before).zip(&gradient).enumerate();
            let model: f64 = blocks
                .map(|(i, ((after, before), g))| {
                    model(after, before, g, steps[0], a.as_ref().map(|a| a[i].as_slice()))
                })
                .sum();
            // Never a rise: putting knots in order need not be the nearest way.
            vec![Trial { value: value(self, v), model: model.min(0.0) }]
        })
    }
}

/// `g / a`, number by number.
fn divided<T: Real>(g: &[Vec<T>], a: &[Vec<T>]) -> Vec<Vec<T>> {
    g.iter().zip(a).map(|(g, a)| g.iter().zip(a).map(|(&g, &a)| g / a).collect()).collect()
}

/// One step of `theta_k`; how many were refused.
pub(super) fn theta_step<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    k: usize,
    mu: f64,
    beta: &mut ThetaSearch<T>,
) -> usize {
    let mut v = lifted.pass.v[k].taken();
    let found = network.part_mut(k).step(lifted, &mut v, mu, beta);
    lifted.pass.v[k] = v;
    found.refused
}

/// One step of `u_k`; how many were refused.
pub(super) fn u_step<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &Network<T>,
    k: usize,
    mu: f64,
    gamma: &mut Backtracking,
) -> usize {
    let (mut u, mut next) = (lifted.pass.u[k].taken(), lifted.pass.v[k + 1].taken());
    let found = lifted.between(network, k, mu).step(&mut u, &mut next, gamma);
    (lifted.pass.u[k], lifted.pass.v[k + 1]) = (u, next);
    found.refused
}
