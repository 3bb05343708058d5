//! Gradient training: one fused pass over a mini-batch, then a step of all parameters at once.
//!
//! The trainer is the same for all rules of the reverse pass ([`ReverseRule`]), so that they differ in nothing else:
//!
//! - **back-propagation** carries `d_k = s'(v_k) back_k`, the tangent of the activation;
//! - **lifted Bregman**, anchored, carries `d_k = s(v_k) - s(v_k - back_k)`, its secant: every `u_k` goes to the exact
//!   minimiser of its linearised block in one reverse sweep. As `mu -> 0` the secant becomes the tangent, and the rule
//!   back-propagation;
//! - **centred**, it carries `d_k = (s(v_k + back_k) - s(v_k - back_k)) / 2`, which sees a kink on either side of
//!   `v_k`, from half as much.

use super::{Batch, Constraint, Descent, Lifted, Optimiser, Rate, Report, Schedule, Snapshot, Trainer};
use crate::Result;
use crate::engine::{Engine, Gradients, ReverseRule, SampleLoss};
use crate::network::{Network, Norms};

/// The rule that carries errors from layer to layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Back-propagation.
    Backprop,
    /// Lifted Bregman, anchored at the forward pass.
    Lifted(Mu),
    /// The same with centred secants.
    Centred(Mu),
}

impl Rule {
    /// Checks that its numbers are in range.
    pub fn validate(self) -> Result<()> {
        if let Self::Lifted(mu) | Self::Centred(mu) = self { mu.validate() } else { Ok(()) }
    }
}

/// The weight of the loss in `E` over a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mu {
    /// At the start.
    pub start: f32,
    /// How it goes on. A falling weight settles the noise of small batches as a falling rate would.
    pub schedule: Schedule,
}

/// What a falling weight of the loss falls to, as a share of its start: never zero, or `E` would not see the images.
const LEAST_MU: f64 = 0.01;

impl Mu {
    /// A constant weight.
    pub fn constant(start: f32) -> Self {
        Self { start, schedule: Schedule::Constant }
    }

    /// The weight when `progress` of the training is done.
    pub fn at(self, progress: f64) -> f32 {
        let rate = Rate { start: f64::from(self.start), schedule: self.schedule };
        rate.at(progress).max(LEAST_MU * rate.start) as f32
    }

    /// Checks that it is a positive number.
    pub fn validate(self) -> Result<()> {
        let start = self.start;
        refuse!(!(start.is_finite() && start > 0.0) => "mu is {start}, but it must be above zero");
        Ok(())
    }
}

impl std::fmt::Display for Mu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let falling = if self.schedule == Schedule::Cosine { ", cosine decay" } else { "" };
        write!(f, "mu {}{falling}", self.start)
    }
}

/// Gradients of a rule, averaged over the batch, and steps of an optimiser.
pub struct GradientDescent {
    rule: Rule,
    loss: SampleLoss,
    descent: Descent,
    optimiser: Optimiser,
    constraint: Constraint,
    norms: Norms<f32>,
    visits: u64,
    gradients: Option<Gradients<f32>>,
    lifted: Option<Lifted<f32>>,
}

impl GradientDescent {
    /// A trainer for `network`, whose filters fulfil the `constraint`.
    pub fn new(
        network: &Network<f32>,
        rule: Rule,
        descent: Descent,
        constraint: Constraint,
        seed: u64,
    ) -> Result<Self> {
        rule.validate()?;
        Ok(Self {
            rule,
            loss: SampleLoss::Squared,
            descent,
            optimiser: Optimiser::new(network, descent, seed)?,
            constraint,
            norms: Norms::new(network, seed),
            visits: 0,
            gradients: None,
            lifted: None,
        })
    }

    /// The same for another loss than half the square of the error.
    #[must_use]
    pub fn loss(self, loss: SampleLoss) -> Self {
        Self { loss, ..self }
    }
}

impl Trainer for GradientDescent {
    fn describe(&self) -> String {
        let rule = match self.rule {
            Rule::Backprop => "back-propagation".to_string(),
            Rule::Lifted(mu) => format!("lifted Bregman, {mu}, u anchored, reverse sweep"),
            Rule::Centred(mu) => format!("lifted Bregman, centred, {mu}, u anchored, reverse sweep"),
        };
        let loss = if self.loss == SampleLoss::Norm { ", errors by their norm" } else { "" };
        format!("{rule}{loss}, {}{}", self.descent, self.constraint)
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        self.norms.start(network);
        self.constraint.settle(network);
        if self.optimiser.observes(self.visits) {
            let mut lifted = Lifted::reuse(self.lifted.take(), network, &batch.z, &batch.x)?;
            lifted.anchor((engine, network));
            self.optimiser.observe((engine, network), &lifted);
            self.lifted = Some(lifted);
        }
        let ranks = engine.ranks();
        let mut gradients = Gradients::reuse(self.gradients.take(), network, batch.z.samples());
        let rule = match self.rule {
            Rule::Backprop => ReverseRule::Backprop,
            Rule::Lifted(mu) => ReverseRule::Lifted { mu: mu.at(progress) },
            Rule::Centred(mu) => ReverseRule::Centred { mu: mu.at(progress) },
        };
        gradients.of = self.loss;
        engine.training_pass(network, rule, &batch.z, &batch.x, &mut gradients)?;
        self.constraint.tie(&mut gradients);
        // Gradients are proportional to the weight of the loss; divided by it, rates mean the same for every mu.
        let scale = 1.0 / (rule.loss_weight() * batch.indices.len() as f32);
        let rate = self.optimiser.step(network, &mut gradients, scale, progress);
        self.constraint.project(network);
        self.norms.follow_among(network, ranks);
        self.constraint.settle(network);
        self.visits += 1;
        let loss = ranks.of_samples(gradients.loss.clone(), 1).iter().sum();
        self.gradients = Some(gradients);
        Ok(Report { loss, steps: (rate, rate), ..Report::default() })
    }

    fn save(&self, state: &mut Snapshot) {
        self.norms.save(state);
        self.optimiser.save(state);
        state.put_scalar("visits", self.visits as f64);
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.norms.restore(state)?;
        self.optimiser.restore(state)?;
        // Checkpoints of version 0.1 do not count the visits of back-propagation.
        self.visits = state.scalar("visits").unwrap_or(0.0) as u64;
        Ok(())
    }
}
