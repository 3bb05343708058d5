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
use super::forward::Forward;
use crate::denoiser::lambda_per_sigma;
use crate::engine::Engine;
use crate::fixed_point::{FixedPoint, PrimalDual, Regulariser};
use crate::image::Channels;
use crate::model::Model;
use crate::operator::{FiniteDifferences, LinearOperator, Stacked};
use crate::prox::{BoxClip, Conjugated, GroupL2, Joined, KullbackLeibler, Prox};
use crate::real::dot;
use crate::solver::{Flat, PrimalDualSteps, Until, condat_vu, safe_norm};
use crate::{Error, Result, memory};
use std::ops::ControlFlow;

/// By how much pictures change where dual variables change by the weight of the penalty, about: so `sigma_dual / tau` is chosen.
const CHANGE: f64 = 0.1;

/// The longest step `tau` where `(I + tau A* A)^-1` is found by iterations, which longer ones take more of.
const LONGEST: f64 = 2.0;

/// `sigma_dual / tau` for dual variables that change by `scale`, with an operator whose norm is known.
fn balanced(forward: &Forward, scale: f64, norm: f64) -> f64 {
    let balance = (scale / CHANGE).powi(2);
    if forward.direct { balance } else { balance.max((LONGEST * norm).powi(-2)) }
}

/// Iterations between two looks at the gap.
const EVERY: usize = 25;

/// `h(L x)`.
pub(super) enum Penalty<'e> {
    /// Total variation, over all channels jointly.
    Variation { operator: FiniteDifferences, h: GroupL2<f32>, balance: f64 },
    /// What a network at its fixed point is the proximity operator of, and `sigma_dual / tau`.
    Learned { regulariser: Box<Regulariser<'e, f32>>, balance: f64 },
}

impl<'e> Penalty<'e> {
    /// Total variation for noise of a standard deviation, so many times.
    pub fn variation(forward: &Forward, (sigma, weight): (f64, f64)) -> Result<Self> {
        let (channels, (height, width)) = (forward.channels, forward.scene);
        let operator = FiniteDifferences::new(channels, height, width)?;
        let kind = Channels::from_count(channels).unwrap_or(Channels::Grey);
        let lambda = weight * lambda_per_sigma(kind) * sigma;
        let h = GroupL2::new(2 * channels, 2 * channels, vec![lambda as f32])?;
        let balance = balanced(forward, lambda, operator.norm());
        Ok(Self::Variation { operator, h, balance })
    }

    /// The regulariser of a network for noise of a standard deviation, so many times.
    pub fn learned(
        engine: &'e dyn Engine<f32>,
        model: &Model,
        forward: &Forward,
        (sigma, weight): (f64, f64),
    ) -> Result<Self> {
        let limit = adapted(model, forward, sigma)?.weighted(weight as f32)?;
        let regulariser = limit.regulariser(engine, forward.scene)?;
        // Dual variables change by about what the prior takes away from noise.
        let norm = f64::from(regulariser.tau).powf(-0.5);
        let balance = balanced(forward, weight * sigma / norm, norm);
        Ok(Self::Learned { regulariser: Box::new(regulariser), balance })
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
    let square = sigma * sigma;
    match (data, likelihood, penalty) {
        (DataTerm::Gaussian { fit, .. }, _, Penalty::Learned { regulariser, balance }) => {
            let mut primal_dual = PrimalDual::new(&regulariser, x, balance)?;
            let found = rounds(until, square, watch, |most| {
                let residual = (0..most).fold(0.0, |_, _| primal_dual.advance(fit));
                let (penalty, fenchel, back) = primal_dual.look();
                let at = primal_dual.picture();
                Ok((
                    residual,
                    fit.energy(at) + penalty,
                    fenchel + far(at, &back, |x, out| fit.gradient(x, out)),
                ))
            });
            x.copy_from_slice(primal_dual.picture());
            found
        }
        (DataTerm::Gaussian { fit, .. }, _, Penalty::Variation { operator, h, balance }) => {
            let steps = PrimalDualSteps::for_norms(0.0, operator.norm(), balance);
            let mut u = Vec::new();
            rounds(until, square, watch, |most| {
                let course =
                    condat_vu((&Flat, fit, &h), &operator, (x, &mut u), steps, &all(most), &mut |_| GO)?;
                let (penalty, gap) = gap((&operator, &h), x, &u, |x, out| fit.gradient(x, out));
                Ok((course.residual, fit.energy(x) + penalty, gap))
            })
        }
        (DataTerm::Poisson(_), Likelihood::Poisson { gain }, penalty) => {
            let counts = seen.iter().map(|y| y.max(0.0)).collect();
            let counts = KullbackLeibler::new(counts, (square / gain) as f32)?;
            let (operator, h): (Box<dyn LinearOperator<f32>>, Box<dyn Prox<f32>>) = match penalty {
                Penalty::Variation { operator, h, .. } => (Box::new(operator), Box::new(h)),
                Penalty::Learned { regulariser, .. } => {
                    let regulariser = *regulariser;
                    (Box::new(regulariser.operator), Box::new(Conjugated(regulariser.conjugate)))
                }
            };
            // The dual variables of the data change by about the noise.
            let balance = (sigma / CHANGE).powi(2);
            let both = Stacked::new::<f32>(forward.operator.clone(), operator)?;
            let joined = Joined::new(counts, seen.len(), h);
            let positive = BoxClip::interval(vec![0.0], vec![f32::MAX])?;
            let steps = PrimalDualSteps::for_norms(0.0, safe_norm::<f32>(&both), balance);
            let mut u = Vec::new();
            rounds(until, square, watch, |most| {
                let parts = (&Flat, &positive, &joined);
                let course = condat_vu(parts, &both, (x, &mut u), steps, &all(most), &mut |_| GO)?;
                let (objective, gap) = gap((&both, &joined), x, &u, |_, out| out.fill(0.0));
                Ok((course.residual, objective, gap))
            })
        }
        _ => Err(Error::invalid("counts need a gain")),
    }
}

const GO: ControlFlow<()> = ControlFlow::Continue(());

/// So many iterations, unless nothing moves at all.
fn all(most: usize) -> Until {
    Until { tolerance: 0.0, most }
}

/// A few iterations and a look at the gap, again and again. `iterate` tells how far the last of so many iterations moved the
/// picture, what is minimised, and the gap.
fn rounds(
    until: &Until,
    square: f64,
    watch: &mut dyn FnMut(&Reached) -> ControlFlow<()>,
    mut iterate: impl FnMut(usize) -> Result<(f64, f64, f64)>,
) -> Result<Reached> {
    let mut done = 0;
    loop {
        let most = EVERY.min(until.most - done).max(1);
        let (residual, objective, gap) = iterate(most)?;
        done += most;
        let (objective, gap) = (objective / square, gap / square);
        refuse!(residual.is_nan() || objective.is_nan() =>
            "the iterates were not finite after {done} iterations: is the input finite?");
        let reached = Reached { iterations: done, residual, objective, gap };
        if watch(&reached).is_break() {
            return Err(Error::Cancelled);
        }
        if residual == 0.0 || gap <= until.tolerance * objective || done >= until.most {
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
    let mut back = x.to_vec();
    operator.adjoint(u, &mut back);
    (penalty, fenchel.max(0.0) + far(x, &back, slope))
}

/// `sum_i max_t d_i (x_i - t_i)` for `d = grad f(x) + L* u`.
fn far(x: &[f32], back: &[f32], slope: impl Fn(&[f32], &mut [f32])) -> f64 {
    let mut gradient = x.to_vec();
    slope(x, &mut gradient);
    let (a, b) = x.iter().fold((0.0f32, 1.0f32), |(a, b), &x| (a.min(x), b.max(x)));
    let far = x.iter().zip(gradient.iter().zip(back)).map(|(&x, (&g, &l))| {
        let d = f64::from(g) + f64::from(l);
        d * f64::from(x - if d > 0.0 { a } else { b })
    });
    far.sum()
}
