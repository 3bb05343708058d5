//! The settings of the lifted Bregman trainer.

use super::constraint::Constraint;
use super::metric::MetricKind;
use super::rate::{Rate, Schedule};
use crate::{Error, Result};

/// How the auxiliary variables `u` of a sample are kept between two visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auxiliary {
    /// They start at the network's own forward pass.
    Anchored,
    /// They go on from the last visit: memory for `samples` samples.
    Persistent {
        /// Samples in the training set.
        samples: usize,
    },
}

/// In which order the blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `theta_K, u_{K-1}, theta_{K-1}, ..., theta_0`: the output error reaches every layer.
    Sweep,
    /// All of `theta` at once, then all of `u`, as the paper prints it.
    Simultaneous,
}

/// How long the parameter steps are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steps {
    /// Two-way backtracking on the majorant.
    Backtracking,
    /// A rate, in the metric.
    Rate(Rate),
}

/// How long the `u` steps of the sweep are. The simultaneous order finds one for all blocks by backtracking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UStep {
    /// The inverse of the block's Lipschitz constant, which is known: 1/2, or less for the last block.
    Closed,
    /// As long as the majorant of each sample allows.
    Backtracked,
    /// To the minimiser of `B(u_k, v_k)` plus the linearised rest, `s(v_k - back_k)`, a step of 1. `B` is 1-strongly
    /// convex and the rest has Lipschitz constant `||I - tau L L*||^2 <= 1`, so `E` cannot rise; for the last block the
    /// constant is `mu ||L_K||^2`, and the step the inverse of it where that is above 1. Shorter steps let less of the
    /// output's error through: half of it a layer with steps of 1/2.
    Minimiser,
}

/// Whether the layers share a parameter step in the sweep. In the simultaneous order they always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThetaSteps {
    /// A step for each layer.
    Layer,
    /// One for all layers: it grows once in a sweep and shrinks at each layer that refuses it.
    Global,
}

/// The settings of [`LbFb`](super::LbFb).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The weight of the loss in `E`, at the start.
    pub mu: f32,
    /// How that weight goes on. A falling weight settles the noise of small batches as a falling rate would, which
    /// backtracking does not have.
    pub mu_schedule: Schedule,
    /// How `u` is kept.
    pub auxiliary: Auxiliary,
    /// The order of the blocks.
    pub order: Order,
    /// The metric of the parameter blocks.
    pub metric: MetricKind,
    /// Their steps.
    pub steps: Steps,
    /// Whether the layers share them, when they are backtracked.
    pub theta_steps: ThetaSteps,
    /// The steps of `u` under backtracking.
    pub u_step: UStep,
    /// What is kept of the last direction.
    pub inertia: f32,
    /// Iterations on a batch before the next.
    pub inner: usize,
    /// What the filters are held to; the network must start in it.
    pub constraint: Constraint,
}

impl Options {
    /// Checks that the options are in range and fit each other.
    ///
    /// # Errors
    /// When they are not, or do not.
    pub fn validate(&self) -> Result<()> {
        if !(self.mu.is_finite() && self.mu > 0.0) {
            return Err(Error::invalid(format!("mu is {}, but it must be above zero", self.mu)));
        }
        if self.inner == 0 {
            return Err(Error::invalid("at least one inner iteration per batch is needed"));
        }
        if !(0.0..1.0).contains(&self.inertia) {
            return Err(Error::invalid(format!("the inertia is {}, but it must be in [0, 1[", self.inertia)));
        }
        let rated = matches!(self.steps, Steps::Rate(_));
        if rated && (self.auxiliary != Auxiliary::Anchored || self.order != Order::Sweep) {
            return Err(Error::invalid(
                "a rate needs u anchored and the sweep order; persistent u and simultaneous steps need backtracking",
            ));
        }
        if rated && self.metric == MetricKind::Euclidean {
            return Err(Error::invalid(
                "the Euclidean metric finds its steps by backtracking; it takes no rate",
            ));
        }
        if !rated && self.metric == MetricKind::Kronecker {
            return Err(Error::invalid(
                "the Kronecker metric takes a rate; it finds no steps by backtracking",
            ));
        }
        if self.order == Order::Simultaneous && self.metric != MetricKind::Euclidean {
            return Err(Error::invalid("simultaneous steps are for the Euclidean metric"));
        }
        Ok(())
    }
}

impl std::fmt::Display for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options {
            mu,
            mu_schedule,
            auxiliary,
            order,
            metric,
            steps,
            theta_steps,
            u_step,
            inertia,
            inner,
            constraint,
        } = *self;
        let u = match auxiliary {
            Auxiliary::Anchored => "anchored",
            Auxiliary::Persistent { .. } => "persistent",
        };
        let sweep = order == Order::Sweep && steps == Steps::Backtracking;
        let order = if order == Order::Sweep { "reverse sweep" } else { "simultaneous steps" };
        let metric = match metric {
            MetricKind::Euclidean => "Euclidean",
            MetricKind::Diagonal => "diagonal",
            MetricKind::Kronecker => "Kronecker",
            MetricKind::GaussNewton => "Gauss-Newton",
        };
        let steps = match steps {
            Steps::Backtracking => "backtracking".to_string(),
            Steps::Rate(rate) => format!("rate {rate}, inertia {inertia}"),
        };
        let shared = if sweep && theta_steps == ThetaSteps::Global { " of all layers at once" } else { "" };
        let u_step = match u_step {
            UStep::Backtracked if sweep => ", u steps backtracked",
            UStep::Minimiser if sweep => ", u at its minimiser",
            _ => "",
        };
        let falling = if mu_schedule == Schedule::Cosine { " falling by a cosine" } else { "" };
        let inner = if inner == 1 { String::new() } else { format!(", {inner} inner iterations") };
        write!(
            f,
            "lifted Bregman, mu {mu}{falling}, u {u}, {order}, {metric} metric, {steps}{shared}{u_step}{inner}{constraint}"
        )
    }
}
