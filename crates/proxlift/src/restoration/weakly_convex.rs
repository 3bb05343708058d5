//! Weakly convex priors: the objective falls in every iteration, to a point where it is stationary.
//!
//! ```text
//! F(x) = f(x) + R(x) / sigma^2,      f(x) = -log p(y | x)
//! ```
//!
//! `R` has a gradient with the Lipschitz constant `l`, and `f` a proximity operator. With the step `t`,
//!
//! ```text
//! x+ = prox_{t sigma^2 f}(y - t grad R(y)),      y = x + beta (x - x-)
//! ```
//!
//! is taken where it lowers `F` by at least `c ||x+ - x||^2 / (2 t sigma^2)`. Else `y` becomes `x`, and if that was it already the step is
//! halved: for `y = x` and `t <= 1 / l` the inequality holds with `c = 1`, so this ends. Potentials have their minimum at zero, so `F` is bounded below, steps are summable in
//! their squares: what is left is `||x+ - x||`, the residual, which is zero exactly where `F` is stationary.

use super::data::DataTerm;
use super::variational::Reached;
use crate::fixed_point::Regulariser;
use crate::real::{norm_squared, sum2};
use crate::solver::Until;
use crate::{Error, Result};
use std::ops::ControlFlow;

/// `c`.
const DECREASE: f64 = 0.1;

/// The first step, and the longest, in those that are always short enough; and how much longer the next may be.
const LONGEST: f64 = 64.0;
const LONGER: f64 = 1.1;

/// Iterations between two looks.
const EVERY: usize = 10;

/// Lowers `F` from the `x` that it is given, until an iteration that starts from `x` itself moves it by at most `until.tolerance` of its
/// norm. `watch` is told how far it is after every few iterations; it may end the work. The gap of what is reached is not known.
pub(super) fn minimise(
    regulariser: &Regulariser<'_, f32>,
    (data, sigma): (&DataTerm, f64),
    x: &mut Vec<f32>,
    until: &Until,
    watch: &mut dyn FnMut(&Reached) -> ControlFlow<()>,
) -> Result<Reached> {
    refuse!(!regulariser.is_bounded_below() =>
        "a potential of the prior falls without end, so there may be nothing to minimise: train it anew");
    let square = sigma * sigma;
    let shortest = 1.0 / regulariser.smoothness().max(f64::MIN_POSITIVE);
    let (mut gradient, mut room) = (vec![0.0; x.len()], regulariser.room());
    let mut penalty = |x: &[f32], gradient: &mut [f32], value: bool| -> Result<f64> {
        Ok(regulariser.gradient(x, gradient, &mut room, value)?.unwrap_or(0.0))
    };
    let value = penalty(x, &mut gradient, true)?;
    let mut objective = data.value(x) + value / square;
    let (mut step, mut momentum, mut before) = (LONGEST * shortest, 1.0f64, x.clone());
    let (mut at_y, mut y) = (gradient.clone(), x.clone());
    let mut reached = Reached { iterations: 0, residual: f64::INFINITY, objective, gap: f64::INFINITY };
    while reached.iterations < until.most {
        reached.iterations += 1;
        let after = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
        let mut beta = (momentum - 1.0) / after;
        momentum = after;
        let (next, there) = loop {
            let t = step as f32;
            if beta > 0.0 {
                let b = beta as f32;
                y.iter_mut()
                    .zip(x.iter().zip(&before))
                    .for_each(|(y, (&x, &before))| *y = x + b * (x - before));
                penalty(&y, &mut at_y, false)?;
            } else {
                y.copy_from_slice(x);
                at_y.copy_from_slice(&gradient);
            }
            let mut next: Vec<f32> = y.iter().zip(&at_y).map(|(y, g)| y - t * g).collect();
            data.prox(step * square, &mut next);
            let there = data.value(&next) + penalty(&next, &mut at_y, true)? / square;
            let moved = sum2(&next, x, |a, b| f64::from(a - b).powi(2));
            if there <= objective - DECREASE * moved / (2.0 * step * square) {
                break (next, there);
            }
            if beta > 0.0 {
                (beta, momentum) = (0.0, 1.0);
            } else if step > shortest {
                step = (0.5 * step).max(shortest);
            } else {
                // Rounding hides what is left to gain.
                break (x.clone(), objective);
            }
        };
        let moved = sum2(&next, x, |a, b| f64::from(a - b).powi(2));
        reached.residual = (moved / norm_squared(x).max(f64::MIN_POSITIVE)).sqrt();
        (before, *x) = (std::mem::take(x), next);
        std::mem::swap(&mut gradient, &mut at_y);
        if moved == 0.0 {
            penalty(x, &mut gradient, false)?;
        }
        objective = there;
        reached.objective = objective;
        let small = reached.residual <= until.tolerance;
        let done = small && beta == 0.0;
        if small {
            // Momentum may pause where the gradient does not: the next step starts from x.
            momentum = 1.0;
        }
        step = (LONGER * step).min(LONGEST * shortest);
        if (done || reached.iterations.is_multiple_of(EVERY)) && watch(&reached).is_break() {
            return Err(Error::Cancelled);
        }
        if done {
            break;
        }
    }
    Ok(reached)
}

#[cfg(test)]
#[path = "../../tests/unit/weakly_convex.rs"]
mod tests;
