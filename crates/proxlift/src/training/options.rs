//! The settings of the lifted Bregman trainer.

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

/// The settings of [`LbFb`].
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
    /// What is kept of the last direction.
    pub inertia: f32,
    /// Iterations on a batch before the next.
    pub inner: usize,
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
        if self.order == Order::Simultaneous && self.metric != MetricKind::Euclidean {
            return Err(Error::invalid("simultaneous steps are for the Euclidean metric"));
        }
        if !rated && self.metric != MetricKind::Euclidean {
            return Err(Error::invalid(
                "backtracking works in the Euclidean metric; the other metrics take a rate",
            ));
        }
        Ok(())
    }
}

impl std::fmt::Display for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options { mu, mu_schedule, auxiliary, order, metric, steps, inertia, inner } = *self;
        let u = match auxiliary {
            Auxiliary::Anchored => "anchored",
            Auxiliary::Persistent { .. } => "persistent",
        };
        let order = if order == Order::Sweep { "reverse sweep" } else { "simultaneous steps" };
        let metric = match metric {
            MetricKind::Euclidean => "Euclidean",
            MetricKind::Diagonal => "diagonal",
            MetricKind::GaussNewton => "Gauss-Newton",
        };
        let steps = match steps {
            Steps::Backtracking => "backtracking".to_string(),
            Steps::Rate(rate) => format!("rate {rate}, inertia {inertia}"),
        };
        let falling = if mu_schedule == Schedule::Cosine { " falling by a cosine" } else { "" };
        let inner = if inner == 1 { String::new() } else { format!(", {inner} inner iterations") };
        write!(f, "lifted Bregman, mu {mu}{falling}, u {u}, {order}, {metric} metric, {steps}{inner}")
    }
}
