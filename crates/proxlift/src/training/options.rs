//! The settings of LB-FB.

use super::{Constraint, Metric, Mu};
use crate::{Result, named::named, network::Network};

named! {
    /// Where the auxiliary variables `u` of a sample start at a visit.
    pub enum Auxiliary ("start of u") {
        /// At the network's own forward pass.
        Anchored = "anchored",
        /// Where the last visit to the sample left them; needs memory for all samples.
        Persistent = "persistent",
    }
}

named! {
    /// The order in which the blocks take their steps.
    pub enum BlockOrder ("order") {
        /// From the last layer to the first, so that the error of the output reaches every layer.
        ///
        /// `theta_K, u_{K-1}, theta_{K-1}, ..., theta_0`.
        Sweep = "sweep",
        /// All parameters at once, then all auxiliary variables, as the paper prints it.
        Simultaneous = "simultaneous",
    }
}

named! {
    /// How long the `u` steps of the sweep are. The simultaneous order finds one for all blocks by backtracking.
    pub enum UStep ("u step") {
        /// The inverse of the block's Lipschitz constant, which is known: 1/2, or less for the last block.
        Closed = "closed",
        /// As long as the majorant of each sample allows.
        Backtracked = "backtracked",
        /// To the minimiser of the linearised block: a step of 1, which lets the whole error through to the layers below.
        ///
        /// The block is `B(u_k, v_k)` plus the linearised rest, its minimiser `s(v_k - back_k)`. A step of 1/2 would let
        /// half of the error through, layer by layer.
        ///
        /// `B` is 1-strongly convex and the rest has Lipschitz constant `||I - tau L L*||^2 <= 1`, so `E` cannot rise;
        /// for the last block the constant is `mu ||L_K||^2`, and the step its inverse where that is above 1. But a step
        /// of 1 need not make `E` fall by a fixed share of its length squared, which the convergence proof of
        /// block-coordinate forward-backward asks for: that theory covers steps below 1, not this one.
        Minimiser = "minimiser",
    }
}

named! {
    /// Whether the layers share a parameter step in the sweep. In the simultaneous order they always do.
    pub enum ThetaSteps ("choice of parameter steps") {
        /// A step for each layer.
        Layer = "layer",
        /// One for all layers: it grows once in a sweep and shrinks at each layer that refuses it.
        Global = "global",
    }
}

/// The settings of [`LbFb`](super::LbFb).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The weight of the loss in `E`.
    pub mu: Mu,
    /// How `u` starts.
    pub auxiliary: Auxiliary,
    /// The order of the blocks.
    pub order: BlockOrder,
    /// The metric of the parameter blocks: Euclidean, or the Gauss-Newton matrix or its diagonal.
    pub metric: Metric,
    /// Whether the layers share a step.
    pub theta_steps: ThetaSteps,
    /// The steps of `u`.
    pub u_step: UStep,
    /// Iterations on a batch before the next.
    pub inner: usize,
    /// What the filters are held to; the network must start in it.
    pub constraint: Constraint,
}

impl Options {
    /// The algorithm as the paper prints it (algo:BC-FB): all of `theta` with one step `beta`, then all of `u` with one
    /// step `gamma`, both by backtracking, any filters, `mu = 1`. The paper does not say what becomes of `u` between two
    /// visits to a sample; here it is kept.
    pub const PAPER: Self = Self {
        mu: Mu { start: 1.0, schedule: super::Schedule::Constant },
        auxiliary: Auxiliary::Persistent,
        order: BlockOrder::Simultaneous,
        metric: Metric::Euclidean,
        theta_steps: ThetaSteps::Global,
        u_step: UStep::Backtracked,
        inner: 1,
        constraint: Constraint::FREE,
    };

    /// Checks that the options are in range, fit each other, and fit the network.
    pub fn validate(&self, network: &Network<f32>) -> Result<()> {
        self.mu.validate()?;
        refuse!(self.inner == 0 => "at least one inner iteration per batch is needed");
        let plain = network.is_plain() && network.step_scale <= 1.0;
        refuse!(!plain || network.learns_activations() || self.constraint.tied =>
            "backtracking is for the paper's network: momentum, bounds, a synthesis of their own, long steps, learned \
             activations and tied layers need a rate");
        refuse!(self.metric == Metric::Kronecker =>
            "the Kronecker metric needs a rate: backtracking is not written for it");
        if self.order != BlockOrder::Simultaneous {
            return Ok(());
        }
        refuse!(self.metric != Metric::Euclidean => "simultaneous steps are for the Euclidean metric");
        let depth = network.architecture().depth;
        refuse!(self.auxiliary == Auxiliary::Anchored && self.inner < depth =>
            "simultaneous steps from anchored u train only the last {} of {} operators: where u starts at the \
             forward pass every penalty is at its minimum, and each iteration carries the error one layer down; \
             keep u (persistent), take {depth} inner iterations, or choose the sweep", self.inner, depth + 1);
        Ok(())
    }
}

impl std::fmt::Display for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Options { mu, auxiliary, order, metric, theta_steps, u_step, inner, constraint } = *self;
        write!(f, "lifted Bregman, {mu}, u {auxiliary}, ")?;
        match order {
            BlockOrder::Simultaneous => write!(f, "simultaneous steps by backtracking")?,
            BlockOrder::Sweep => {
                let steps = match theta_steps {
                    ThetaSteps::Layer => "",
                    ThetaSteps::Global => " with one step for all layers",
                };
                let u_step = match u_step {
                    UStep::Closed => "closed",
                    UStep::Backtracked => "backtracked",
                    UStep::Minimiser => "to the minimiser",
                };
                write!(f, "reverse sweep by backtracking{steps}, u steps {u_step}")?;
            }
        }
        write!(f, ", {metric} metric")?;
        if inner > 1 {
            write!(f, ", {inner} inner iterations")?;
        }
        write!(f, "{constraint}")
    }
}
