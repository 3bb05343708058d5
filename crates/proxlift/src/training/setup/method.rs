//! What trains: from settings to a trainer. A new trainer is registered here.

use super::{Algorithm, Secant, Settings};
use crate::fixed_point::{Acceleration, FixedPointParams};
use crate::training::{
    Constraint, Descent, FixedPointOptions, FixedPointRule, FixedPointTrainer, GradientDescent, LbFb, Mu,
    Options, Rate, Rule, Trainer,
};
use crate::{Result, engine::SampleLoss, network::Network};

/// A trainer's kind, with all that it needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Gradients of a loss by a rule, and steps of a known rate.
    Descent(Rule, SampleLoss, Descent),
    /// The same at the fixed point of tied layers.
    FixedPoint(FixedPointOptions),
    /// LB-FB: steps by backtracking.
    LbFb(Options),
}

const BETA2: f64 = 0.999;

/// For training, fixed points and their linear systems need not be solved as well as for use.
const NEAR: FixedPointParams = FixedPointParams {
    acceleration: Acceleration::Nesterov,
    tolerance: 1e-3,
    most: 200,
    adjoint_tolerance: 3e-2,
    adjoint_most: 40,
};

/// Weakly convex problems have a condition that is worse by `1 / (1 - rho)`. Their tolerance is what is left of the gradient, as a share of
/// what was removed.
const NEAR_DESCENT: FixedPointParams =
    FixedPointParams { tolerance: 3e-3, most: 600, adjoint_tolerance: 1e-2, adjoint_most: 400, ..NEAR };

impl Method {
    /// The method of all settings, for filters held to a constraint; without a rate it backtracks.
    pub(super) fn new(all: &Settings, rate: Option<f64>, constraint: Constraint) -> Self {
        let mu = Mu { start: all.mu.unwrap_or(1.0) as f32, schedule: all.mu_schedule.unwrap_or_default() };
        let metric = all.metric.unwrap_or_default();
        let Some(start) = rate else {
            return Self::LbFb(Options {
                mu,
                auxiliary: all.u.unwrap_or_default(),
                order: all.order.unwrap_or_default(),
                metric,
                theta_steps: all.theta_steps.unwrap_or_default(),
                u_step: all.u_step.unwrap_or_default(),
                inner: all.inner.unwrap_or(1),
                constraint,
            });
        };
        let rule = match all.trainer.unwrap_or_default() {
            Algorithm::Lb if all.secant == Some(Secant::Centred) => Rule::Centred(mu),
            Algorithm::Lb => Rule::Lifted(mu),
            Algorithm::Backprop => Rule::Backprop,
        };
        let descent = Descent {
            metric,
            momentum: all.momentum.unwrap_or(0.0) as f32,
            beta2: all.beta2.unwrap_or(BETA2) as f32,
            rate: Rate { start, schedule: all.schedule.unwrap_or_default() },
        };
        if !all.at_fixed_point() {
            return Self::Descent(rule, all.loss.unwrap_or_default(), descent);
        }
        let rule = match rule {
            Rule::Backprop => FixedPointRule::Implicit,
            Rule::Lifted(mu) => FixedPointRule::Lifted { mu: mu.start },
            Rule::Centred(mu) => FixedPointRule::Centred { mu: mu.start },
        };
        let (zero_mean, warm) = (constraint.zero_mean, all.same_patches());
        let (loss, weak) = (all.loss.unwrap_or(SampleLoss::Norm), all.weakly_convex.unwrap_or(0.0));
        let params = if weak > 0.0 { NEAR_DESCENT } else { NEAR };
        Self::FixedPoint(FixedPointOptions { rule, loss, descent, params, warm, zero_mean, weak })
    }

    pub(super) fn validate(&self, network: &Network<f32>) -> Result<()> {
        match self {
            Self::Descent(rule, _, descent) => rule.validate().and_then(|()| descent.validate(network)),
            Self::FixedPoint(options) => options.validate(network),
            Self::LbFb(options) => options.validate(network),
        }
    }

    /// The trainer of `network`, its filters held to a constraint, for `samples` patches.
    pub(super) fn trainer(
        &self,
        network: &Network<f32>,
        constraint: Constraint,
        samples: usize,
        seed: u64,
    ) -> Result<Box<dyn Trainer + Send>> {
        Ok(match *self {
            Self::Descent(rule, loss, descent) => {
                Box::new(GradientDescent::new(network, rule, descent, constraint, seed)?.loss(loss))
            }
            Self::FixedPoint(options) => Box::new(FixedPointTrainer::new(network, options, samples, seed)?),
            Self::LbFb(options) => Box::new(LbFb::new(network, options, samples, seed)?),
        })
    }
}
