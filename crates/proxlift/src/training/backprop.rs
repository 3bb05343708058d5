//! The baselines: stochastic gradients by back-propagation, on the same engine and data as everything else.

use super::constraint::Constraint;
use super::eigenbasis::Eigenbasis;
use super::rate::Rate;
use super::trainer::{Batch, Report, Snapshot, Trainer};
use crate::Result;
use crate::engine::{Engine, Gradients, ReverseRule};
use crate::network::{Activation, Network, Norms};
use crate::operator::Filters;

/// How a gradient becomes a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Descent {
    /// `theta -= rate g`.
    Sgd,
    /// `m = beta m + g`, `theta -= rate m`.
    Momentum {
        /// What is kept of the last direction.
        beta: f32,
    },
    /// Adam (Kingma and Ba 2014).
    Adam {
        /// Of the mean.
        beta1: f32,
        /// Of the square.
        beta2: f32,
    },
}

/// Gradients of the plain loss by back-propagation, averaged over the batch.
pub struct Backprop {
    descent: Descent,
    rate: Rate,
    moments: Moments,
    constraint: Constraint,
    norms: Norms<f32>,
    gradients: Option<Gradients<f32>>,
}

impl Backprop {
    /// A trainer for `network`, whose filters fulfil the `constraint`; `seed` starts the norms.
    pub fn new(
        network: &Network<f32>,
        descent: Descent,
        rate: Rate,
        constraint: Constraint,
        seed: u64,
    ) -> Self {
        let norms = Norms::new(network, seed);
        Self { descent, rate, moments: Moments::new(network), constraint, norms, gradients: None }
    }
}

impl Trainer for Backprop {
    fn describe(&self) -> String {
        let name = match self.descent {
            Descent::Sgd => "SGD",
            Descent::Momentum { .. } => "SGD with momentum",
            Descent::Adam { .. } => "Adam",
        };
        format!("{name} by back-propagation, rate {}{}", self.rate, self.constraint)
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        let samples = batch.z.samples();
        let mut gradients = take(&mut self.gradients, network, samples);
        engine.training_pass(network, ReverseRule::Backprop, &batch.z, &batch.x, &mut gradients)?;
        self.constraint.tie(&mut gradients);
        let rate = self.rate.at(progress) as f32;
        self.moments.descend(network, &gradients, 1.0 / samples as f32, rate, self.descent);
        self.constraint.project(network);
        self.norms.update(network, NORM_ITERATIONS);
        let loss = gradients.loss.iter().sum();
        self.gradients = Some(gradients);
        Ok(Report { loss, steps: (f64::from(rate), f64::from(rate)), ..Report::default() })
    }

    fn save(&self, state: &mut Snapshot) {
        self.moments.save(state);
        save_norms(&self.norms, state);
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.moments.restore(state)?;
        restore_norms(&mut self.norms, state)
    }
}

/// Steps of power iteration after each batch; the weights move little, so the norms follow.
pub(super) const NORM_ITERATIONS: usize = 2;

/// The gradients of the last batch if they fit this one.
pub(super) fn take(
    kept: &mut Option<Gradients<f32>>,
    network: &Network<f32>,
    samples: usize,
) -> Gradients<f32> {
    kept.take().filter(|g| g.loss.len() == samples).unwrap_or_else(|| {
        let zeros = Gradients::zeros(network, samples);
        if network.learns_activations() { zeros.with_activations(network) } else { zeros }
    })
}

pub(super) fn save_norms(norms: &Norms<f32>, state: &mut Snapshot) {
    for (k, vector) in norms.vectors().enumerate() {
        state.put(format!("norm_{}", k + 1), vector);
    }
}

pub(super) fn restore_norms(norms: &mut Norms<f32>, state: &Snapshot) -> Result<()> {
    let count = norms.vectors().count();
    let kept = (1..=count).map(|k| state.array(&format!("norm_{k}"))).collect::<Result<Vec<_>>>()?;
    norms.restore(kept.into_iter())
}

/// Running means of the gradients and of their squares.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    mean: Vec<Vec<f32>>,
    square: Vec<Vec<f32>>,
    steps: f64,
    /// The bases in which those of the filters are; empty if it is that of the weights.
    bases: Vec<Eigenbasis>,
    /// The step of a block.
    step: Vec<f32>,
}

impl Moments {
    pub(super) fn new(network: &Network<f32>) -> Self {
        let filters = network.theta.iter().map(|theta| theta.weights().len());
        let learned: &[_] = if network.learns_activations() { &network.activation } else { &[] };
        let activations = learned.iter().flat_map(|s| [s.knots().len(), s.slopes().len()]);
        let zero: Vec<_> = filters.chain(activations).map(|numbers| vec![0.0; numbers]).collect();
        Self { mean: zero.clone(), square: zero, steps: 0.0, bases: Vec::new(), step: Vec::new() }
    }

    /// The same in the basis of [`Eigenbasis`], layer by layer.
    pub(super) fn in_eigenbases(self, network: &Network<f32>) -> Self {
        Self { bases: network.theta.iter().map(Eigenbasis::new).collect(), ..self }
    }

    /// One step along `scale` times the gradients.
    pub(super) fn descend(
        &mut self,
        network: &mut Network<f32>,
        gradients: &Gradients<f32>,
        scale: f32,
        rate: f32,
        descent: Descent,
    ) {
        self.steps += 1.0;
        let filters = network.theta.iter_mut().map(Filters::weights_mut);
        let activations = network.activation.iter_mut().flat_map(Activation::parts_mut);
        let of_filters = gradients.theta.iter().map(Filters::weights);
        let of_activations = gradients.activation.iter().flat_map(|g| [g.knots.as_slice(), &g.slopes]);
        // Without gradients of the activations, these end with the filters.
        let blocks = filters.chain(activations).zip(of_filters.chain(of_activations));
        for (k, (weights, gradient)) in blocks.enumerate() {
            let step = &mut self.step;
            step.clear();
            step.extend(gradient.iter().map(|g| scale * g));
            if let Some(basis) = self.bases.get_mut(k) {
                basis.observe(step, &mut self.mean[k]);
                basis.turn(step);
            }
            let moments = self.mean[k].iter_mut().zip(&mut self.square[k]);
            for (g, (mean, square)) in step.iter_mut().zip(moments) {
                *g = match descent {
                    Descent::Sgd => *g,
                    Descent::Momentum { beta } => {
                        *mean = beta * *mean + *g;
                        *mean
                    }
                    Descent::Adam { beta1, beta2 } => {
                        *mean = beta1 * *mean + (1.0 - beta1) * *g;
                        *square = beta2 * *square + (1.0 - beta2) * *g * *g;
                        let unbias = |beta: f32| (1.0 - f64::from(beta).powf(self.steps)) as f32;
                        (*mean / unbias(beta1)) / ((*square / unbias(beta2)).sqrt() + 1e-8)
                    }
                };
            }
            if let Some(basis) = self.bases.get_mut(k) {
                basis.back(step);
            }
            weights.iter_mut().zip(&*step).for_each(|(weight, step)| *weight -= rate * step);
        }
    }

    pub(super) fn save(&self, state: &mut Snapshot) {
        for (k, (mean, square)) in self.mean.iter().zip(&self.square).enumerate() {
            state.put(format!("mean_{k}"), mean);
            state.put(format!("square_{k}"), square);
        }
        self.bases.iter().enumerate().for_each(|(k, basis)| basis.save(k, state));
        state.put_scalar("steps", self.steps);
    }

    pub(super) fn restore(&mut self, state: &Snapshot) -> Result<()> {
        for (k, (mean, square)) in self.mean.iter_mut().zip(&mut self.square).enumerate() {
            state.get(&format!("mean_{k}"), mean)?;
            state.get(&format!("square_{k}"), square)?;
        }
        for (k, basis) in self.bases.iter_mut().enumerate() {
            basis.restore(k, state)?;
        }
        self.steps = state.scalar("steps")?;
        Ok(())
    }
}
