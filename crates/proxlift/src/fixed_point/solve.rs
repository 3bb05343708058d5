//! The forward pass: layers until nothing moves.
//!
//! With inertia, `y_k = u_k + beta_k (u_k - u_{k-1})` goes through the layer in place of `u_k`; see [`Momentum`].

use super::{FixedPoint, FixedPointParams, Momentum, alone, together};
use crate::real::{norm_squared, sum2, sum3};
use crate::{Real, Result, engine::Engine, field::Field};
use rayon::prelude::*;

/// Layers between two looks at how far they move, where momenta are bounded.
const BLOCK: usize = 4;

/// The fixed points of a batch.
#[derive(Clone, Debug)]
pub struct Solution<T: Real> {
    /// `u*`, as near as the tolerance asks.
    pub u: Field<T>,
    /// `v = u - tau L (L* u - z)`.
    pub v: Field<T>,
    /// `r = L* u - z`, which is `-x^`.
    pub r: Field<T>,
    /// Layers that the slowest sample took.
    pub iterations: usize,
    /// `||s(v) - u|| / ||s(v)||` of each sample at the last iterate; where `s` falls somewhere, `||x^ - z + L* u|| / ||x^ - z||`.
    pub residuals: Vec<f64>,
    /// Samples that did not reach the tolerance.
    pub unsolved: usize,
}

impl<T: Real> Solution<T> {
    /// Whether all samples reached the tolerance.
    pub fn converged(&self) -> bool {
        self.unsolved == 0
    }

    /// `x^ = z - L* u*`.
    pub fn output(&self) -> Field<T> {
        let mut x = self.r.clone();
        x.map(|r| -r);
        x
    }
}

impl<T: Real> FixedPoint<T> {
    /// The fixed points for the images `z`, from `start` or from zero.
    /// Fails when the images or the start do not fit, a parameter is out of range, or the iterates are not finite.
    pub fn solve(
        &self,
        engine: &dyn Engine<T>,
        z: &Field<T>,
        start: Option<&Field<T>>,
        params: FixedPointParams,
    ) -> Result<Solution<T>> {
        params.validate()?;
        let (channels, gap) = (self.theta.channels(), self.theta.radius());
        refuse!(z.channels() != channels || z.grid().gap() != gap =>
            "the images have {} channels or were laid out for another kernel size: the network takes {channels}",
            z.channels());
        let like = Field::zeros(1, self.theta.features(), z.grid());
        if let Some(start) = start {
            let fits = (start.samples(), start.channels(), start.grid())
                == (z.samples(), like.channels(), like.grid());
            refuse!(!fits => "the start of the fixed point has another shape than its features");
        }
        let one = |s: usize| {
            let from = start.map_or_else(|| like.clone(), |start| alone(start, s));
            if self.activation.flattest() < T::zero() {
                self.minimise(engine, &alone(z, s), from, params)
            } else {
                self.solve_one(engine, &alone(z, s), from, params)
            }
        };
        let found: Vec<Result<One<T>>> = (0..z.samples()).into_par_iter().map(one).collect();
        let found = found.into_iter().collect::<Result<Vec<_>>>()?;
        let residuals: Vec<f64> = found.iter().map(|one| one.residual).collect();
        Ok(Solution {
            u: together(found.iter().map(|one| &one.u), &like),
            v: together(found.iter().map(|one| &one.v), &like),
            r: together(found.iter().map(|one| &one.r), z),
            iterations: found.iter().map(|one| one.iterations).max().unwrap_or(0),
            unsolved: residuals.iter().filter(|residual| **residual > params.tolerance).count(),
            residuals,
        })
    }

    fn solve_one(
        &self,
        engine: &dyn Engine<T>,
        z: &Field<T>,
        mut u: Field<T>,
        params: FixedPointParams,
    ) -> Result<One<T>> {
        let layer = self.layer();
        let (mut y, mut v, mut r, mut next) = (u.clone(), u.zeros_like(), z.zeros_like(), u.zeros_like());
        let mut momentum = Momentum::new(params.acceleration, self.activation.steepest());
        let block = if momentum.is_bounded() { BLOCK } else { 1 };
        let mut iterations = 0;
        loop {
            if !momentum.is_bounded() {
                v.copy_from(&y);
                next.copy_from(&u);
            }
            let betas: Vec<T> = momentum.by_ref().take(block.min(params.most - iterations)).collect();
            engine.iterate(layer, z, &betas, &mut u, &mut y);
            iterations += betas.len();
            let last = betas.last().map_or(0.0, |beta| beta.to_double());
            let moved = change(u.data(), y.data()) / last;
            refuse!(moved.is_nan() && last > 0.0 =>
                "the iterates were not finite after {iterations} iterations: is tau below 2 / ||L||^2 and the input finite?");
            // What a layer moves is known from how the last one moved, unless there is no momentum.
            if moved > params.tolerance && iterations < params.most {
                let against = |y: T, u: T, before: T| (y - u).to_double() * (u - before).to_double();
                if !momentum.is_bounded() && sum3(v.data(), u.data(), next.data(), against) > 0.0 {
                    momentum.restart();
                    y.copy_from(&u);
                }
                continue;
            }
            engine.layer(layer, &u, z, &mut r, &mut v);
            engine.activate(layer, &v, &mut next);
            let residual = change(next.data(), u.data());
            refuse!(residual.is_nan() =>
                "the iterates were not finite after {iterations} iterations: is tau below 2 / ||L||^2 and the input finite?");
            if residual <= params.tolerance || iterations >= params.most {
                return Ok(One { u, v, r, iterations, residual });
            }
        }
    }
}

/// The fixed point of one sample.
pub(super) struct One<T: Real> {
    pub u: Field<T>,
    pub v: Field<T>,
    pub r: Field<T>,
    pub iterations: usize,
    pub residual: f64,
}

/// `||a - b|| / ||a||`, zero where both are.
fn change<T: Real>(a: &[T], b: &[T]) -> f64 {
    let apart = sum2(a, b, |a, b| (a - b).to_double().powi(2)).sqrt();
    if apart == 0.0 { 0.0 } else { apart / norm_squared(a).sqrt() }
}
