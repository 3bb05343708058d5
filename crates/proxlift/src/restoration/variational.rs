//! Convex priors: the problem is solved to its optimum by a primal-dual method, with a proof of how far it is.
//!
//! ```text
//! F(x) = sigma^2 f(x) + h(L x),      f(x) = -log p(y | x)
//! ```
//!
//! For any `u` and any other picture `t` with values between `a` and `b`, the convexity of `f` and the inequality of Fenchel and
//! Young give
//!
//! ```text
//! F(x) - F(t)  <=  h(L x) + h*(u) - <L x, u>  +  sum_i max_{a <= t_i <= b} d_i (x_i - t_i),     d = sigma^2 grad f(x) + L* u
//! ```
//!
//! The right side is the gap. It vanishes at the optimum, where `u` is in the subdifferential of `h` and `d = 0`.

use super::data::{DataTerm, Likelihood};
use super::degradation::Forward;
use crate::engine::Engine;
use crate::fixed_point::FixedPoint;
use crate::image::Channels;
use crate::model::Model;
use crate::operator::{FiniteDifferences, LinearOperator, Stacked};
use crate::prox::{BoxClip, Conjugated, GroupL2, Joined, KullbackLeibler, Prox};
use crate::real::dot;
use crate::solver::{Ended, Flat, Iterate, PrimalDualSteps, Until, condat_vu, safe_norm};
use crate::{Error, Result, memory};
use std::ops::ControlFlow;

/// `sigma_dual / tau` for total variation: pictures change by about a tenth where the dual variables change by the weight.
const BALANCE: f64 = 0.01;

/// Iterations between two looks at the gap.
const EVERY: usize = 25;

/// `lambda / sigma` in `1/2 ||A x - y||^2 + lambda TV(x)`.
fn variation_per_sigma(channels: usize) -> f64 {
    if channels == 1 { 0.11 } else { 0.16 }
}

/// `h(L x)`.
pub(super) struct Penalty<'e> {
    operator: Box<dyn LinearOperator<f32> + 'e>,
    h: Box<dyn Prox<f32> + 'e>,
    norm: f64,
    /// `sigma_dual / tau`.
    balance: f64,
}

impl<'e> Penalty<'e> {
    /// Total variation, over all channels jointly.
    pub fn variation(forward: &Forward, sigma: f64) -> Result<Self> {
        let (channels, (height, width)) = (forward.channels, forward.scene);
        let differences = FiniteDifferences::new(channels, height, width)?;
        let lambda = variation_per_sigma(channels) * sigma;
        let norm = GroupL2::new(2 * channels, 2 * channels, vec![lambda as f32])?;
        let (bound, h) = (differences.norm(), Box::new(norm));
        Ok(Self { operator: Box::new(differences), h, norm: bound, balance: BALANCE })
    }

    /// The regulariser that a network at its fixed point is the proximity operator of.
    pub fn learned(
        engine: &'e dyn Engine<f32>,
        model: &Model,
        forward: &Forward,
        sigma: f64,
    ) -> Result<Self> {
        let regulariser = adapted(model, forward, sigma)?.regulariser(engine, forward.scene)?;
        let norm = regulariser.operator.norm()?;
        let h = Box::new(Conjugated(regulariser.conjugate));
        Ok(Self { operator: Box::new(regulariser.operator), h, norm, balance: norm.powi(-2) })
    }
}

/// The limit of a network, its thresholds for this noise level.
/// Fails when it is for other channels.
pub(super) fn adapted(model: &Model, forward: &Forward, sigma: f64) -> Result<FixedPoint<f32>> {
    let colours = model.network.architecture().colours();
    refuse!(colours != forward.channels =>
        "the prior was trained on {}, but the picture is in {}", of(colours), of(forward.channels));
    let mut network = model.network.clone();
    let trained = if model.sigma > 0.0 { model.sigma } else { sigma };
    network.scale_thresholds((sigma / trained) as f32);
    FixedPoint::of(&network)
}

fn of(channels: usize) -> &'static str {
    if Channels::from_count(channels) == Some(Channels::Rgb) { "colour" } else { "grey" }
}

fn applied(operator: &(impl LinearOperator<f32> + ?Sized), x: &[f32]) -> Vec<f32> {
    let mut y = memory::zeros(operator.range_len());
    operator.apply(x, &mut y);
    y
}

/// How far the minimisation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reached {
    pub iterations: usize,
    pub residual: f64,
    /// `F(x) / sigma^2`, the misfit and the penalty.
    pub objective: f64,
    /// How much lower the objective may be elsewhere.
    pub gap: f64,
}

/// `argmin_x F(x)`, from the `x` that it is given: until the gap is at most `until.tolerance` of the objective. `watch` is
/// told how far it is after every few iterations; it may end the work.
pub(super) fn minimise(
    penalty: Penalty<'_>,
    (data, seen, likelihood): (&DataTerm, &[f32], Likelihood),
    (forward, sigma): (&Forward, f64),
    x: &mut Vec<f32>,
    until: &Until,
    watch: &mut dyn FnMut(&Reached) -> ControlFlow<()>,
) -> Result<Reached> {
    let Penalty { operator, h, norm, balance } = penalty;
    let square = sigma * sigma;
    match (data, likelihood) {
        (DataTerm::Gaussian { fit, .. }, _) => {
            let steps = PrimalDualSteps::for_norms(0.0, norm, balance);
            let slope = |x: &[f32], out: &mut [f32]| fit.gradient(x, out);
            let look = |x: &[f32], u: &[f32]| {
                let (penalty, gap) = gap((&*operator, &h), x, u, slope);
                (fit.energy(x) + penalty, gap)
            };
            rounds(until, square, &look, x, watch, |x, u, until, each| {
                condat_vu((&Flat, fit, &h), &*operator, (x, u), steps, until, each)
            })
        }
        (DataTerm::Poisson(_), Likelihood::Poisson { gain }) => {
            let counts = seen.iter().map(|y| y.max(0.0)).collect();
            let counts = KullbackLeibler::new(counts, (square / gain) as f32)?;
            let both = Stacked::new::<f32>(forward.operator.clone(), operator)?;
            let joined = Joined::new(counts, seen.len(), h);
            let positive = BoxClip::interval(vec![0.0], vec![f32::MAX])?;
            let steps = PrimalDualSteps::for_norms(0.0, safe_norm::<f32>(&both), balance);
            let look = |x: &[f32], u: &[f32]| gap((&both, &joined), x, u, |_, out| out.fill(0.0));
            rounds(until, square, &look, x, watch, |x, u, until, each| {
                condat_vu((&Flat, &positive, &joined), &both, (x, u), steps, until, each)
            })
        }
        _ => Err(Error::invalid("counts need a gain")),
    }
}

/// What is minimised at `(x, u)`, and the gap.
type Look<'a> = dyn Fn(&[f32], &[f32]) -> (f64, f64) + 'a;

/// A few iterations and a look at the gap, again and again.
fn rounds(
    until: &Until,
    square: f64,
    look: &Look<'_>,
    x: &mut Vec<f32>,
    watch: &mut dyn FnMut(&Reached) -> ControlFlow<()>,
    mut iterate: impl FnMut(
        &mut Vec<f32>,
        &mut Vec<f32>,
        &Until,
        &mut dyn FnMut(&Iterate<'_, f32>) -> ControlFlow<()>,
    ) -> Result<crate::solver::Course>,
) -> Result<Reached> {
    let (mut u, mut done) = (Vec::new(), 0);
    loop {
        let most = EVERY.min(until.most - done).max(1);
        let course = iterate(x, &mut u, &Until { tolerance: 0.0, most }, &mut |_| ControlFlow::Continue(()))?;
        done += course.iterations;
        let (objective, gap) = look(x, &u);
        let (objective, gap) = (objective / square, gap / square);
        let reached = Reached { iterations: done, residual: course.residual, objective, gap };
        if watch(&reached).is_break() {
            return Err(Error::Cancelled);
        }
        let still = course.ended == Ended::Settled;
        if still || reached.gap <= until.tolerance * reached.objective || done >= until.most {
            return Ok(reached);
        }
    }
}

/// `h(L x)` and the gap at `(x, u)`, for pictures with values from black to white, and as far beyond as `x` has them.
fn gap(
    (operator, h): (&(impl LinearOperator<f32> + ?Sized), &(impl Prox<f32> + ?Sized)),
    x: &[f32],
    u: &[f32],
    slope: impl Fn(&[f32], &mut [f32]),
) -> (f64, f64) {
    let features = applied(operator, x);
    let penalty = f64::from(h.value(&features));
    let fenchel = penalty + f64::from(h.conjugate_value(u)) - dot(&features, u);
    let (mut gradient, mut back) = (x.to_vec(), x.to_vec());
    slope(x, &mut gradient);
    operator.adjoint(u, &mut back);
    let (a, b) = x.iter().fold((0.0f32, 1.0f32), |(a, b), &x| (a.min(x), b.max(x)));
    let far = x.iter().zip(gradient.iter().zip(&back)).map(|(&x, (&g, &l))| {
        let d = f64::from(g) + f64::from(l);
        d * f64::from(x - if d > 0.0 { a } else { b })
    });
    (penalty, fenchel.max(0.0) + far.sum::<f64>())
}
