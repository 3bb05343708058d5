//! Training at infinite depth.
//!
//! The trainer moves a network whose layers are tied, of any depth, by the gradients of its limit: what the driver scores is
//! then the limit cut off after `K` layers, and [`FixedPoint::of`] is the limit itself.

use super::FixedPointRule;
use super::coordinates::{Coordinates, STEEPEST};
use super::influences::Influences;
use super::knots::Knots;
use crate::engine::{Engine, SampleLoss};
use crate::fixed_point::{Acceleration, FixedPoint, FixedPointParams};
use crate::network::{Network, Norms, STEP};
use crate::prox::PiecewiseLinear;
use crate::training::optimiser::Moments;
use crate::training::{Batch, Descent, Metric, Report, Snapshot, Trainer};
use crate::{Result, field::Field};
use std::sync::Arc;

/// `tau ||L||^2` with inertia, whose norm is known to a third of a percent.
const INERTIAL_STEP: f32 = 0.98;

/// The side of pictures at whose edges the norm is looked for.
const EDGE: usize = 40;

/// The settings of [`FixedPointTrainer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPointOptions {
    /// Implicit, lifted, or centred gradients.
    pub rule: FixedPointRule<f32>,
    /// The loss that they are the gradients of.
    pub loss: SampleLoss,
    /// Metric, momentum and rate.
    pub descent: Descent,
    /// When a fixed point is found.
    pub params: FixedPointParams,
    /// Start each sample where its last visit ended; needs memory for all samples.
    pub warm: bool,
    /// Filters that do not see a constant.
    pub zero_mean: bool,
    /// The modulus of weak convexity that the function may have, `rho`: 0 keeps it convex, and below 1 what is minimised is.
    pub weak: f64,
}

impl FixedPointOptions {
    /// Refuses options that are out of range, or not for the network.
    pub fn validate(&self, network: &Network<f32>) -> Result<()> {
        FixedPoint::of(network)?;
        self.params.validate()?;
        refuse!(!(self.weak.is_finite() && (0.0..1.0).contains(&self.weak)) =>
            "the modulus of weak convexity is {}, but it must be at least 0 and below 1", self.weak);
        self.descent.check()?;
        refuse!(self.descent.metric == Metric::GaussNewton =>
            "the Gauss-Newton metric is not written for fixed points: choose another one");
        self.rule.validate()
    }
}

/// Gradients at the fixed point, averaged over the batch, and steps of an optimiser.
pub struct FixedPointTrainer {
    options: FixedPointOptions,
    moments: Moments,
    /// A network of one layer that the norm of `L` is followed with.
    single: Network<f32>,
    norms: Norms<f32>,
    kept: Vec<Arc<Vec<f32>>>,
    /// Layers and iterations of linear systems so far, slowest samples of all batches.
    iterations: (usize, usize),
}

impl FixedPointTrainer {
    /// For `network`, whose layers are tied, on a set of `samples`.
    /// Fails when layers differ, an option is out of range, or the metric is not for it.
    pub fn new(
        network: &Network<f32>,
        options: FixedPointOptions,
        samples: usize,
        seed: u64,
    ) -> Result<Self> {
        options.validate(network)?;
        let limit = FixedPoint::of(network)?;
        let inertial = options.params.acceleration == Acceleration::Nesterov;
        let step_scale = if inertial { INERTIAL_STEP / STEP as f32 } else { 1.0 };
        let mut single = Network { step_scale, border: 0, ..limit.unrolled(2)? };
        single.learned_mut().for_each(|activation| activation.flatten(STEEPEST));
        let mut norms = Norms::new(&single, seed);
        norms.converge(&mut single);
        let theta = &limit.theta;
        let matrix = [theta.features(), theta.weights().len() / theta.features()];
        let weak = options.weak > 0.0;
        let learned = single.learned().map(|s| coordinates(s, limit.tau, weak).parameters());
        let blocks: Vec<_> = learned.flatten().map(|block| block.len()).collect();
        let kronecker = options.descent.metric == Metric::Kronecker;
        let moments = Moments::new(
            std::iter::once(theta.weights().len()).chain(blocks),
            kronecker.then_some(matrix).into_iter(),
        );
        let kept = vec![Arc::default(); if options.warm { samples } else { 0 }];
        Ok(Self { options, moments, single, norms, kept, iterations: (0, 0) })
    }

    /// Layers of the forward passes, and iterations of what gave the gradients, of the slowest samples of all batches.
    pub fn iterations(&self) -> (usize, usize) {
        self.iterations
    }

    /// Where the samples of a batch start.
    /// Fails when a sample is not of the set that the trainer was made for.
    fn start(&self, z: &Field<f32>, features: usize, indices: &[usize]) -> Result<Option<Field<f32>>> {
        if !self.options.warm {
            return Ok(None);
        }
        let (count, samples) = (z.samples(), self.kept.len());
        refuse!(indices.len() != count =>
            "{} indices are given for {count} samples, but where a sample starts is found by its own", indices.len());
        let outside = indices.iter().find(|index| **index >= samples);
        refuse!(outside.is_some() =>
            "a batch holds sample {}, but the trainer was made for a set of {samples}", outside.unwrap_or(&0));
        let mut start = Field::zeros(count, features, z.grid());
        let length = start.sample_len();
        for (u, &index) in start.data_mut().chunks_exact_mut(length).zip(indices) {
            // Empty before its first visit, and of another size where patches are.
            if self.kept[index].len() == length {
                u.copy_from_slice(&self.kept[index]);
            }
        }
        Ok(Some(start))
    }

    fn keep(&mut self, u: &Field<f32>, indices: &[usize]) {
        if self.options.warm {
            indices.iter().enumerate().for_each(|(s, &i)| self.kept[i] = Arc::new(u.sample(s).to_vec()));
        }
    }

    /// Keeps the modulus of weak convexity, on whole pictures, which are mirrored at their edges: potentials become wider.
    fn widen(&mut self, engine: &dyn Engine<f32>) -> Result<()> {
        let theta = self.single.theta[1].clone();
        self.single.theta.fill(theta);
        let modulus = FixedPoint::of(&self.single)?.modulus(engine, (EDGE, EDGE))?;
        if modulus > self.options.weak {
            let tau = self.single.tau[0];
            for activation in self.single.learned_mut() {
                let mut influences = Influences::of(activation, tau);
                influences.widen((modulus / self.options.weak) as f32);
                *activation = influences.activation();
            }
        }
        Ok(())
    }

    /// Gives all layers of `network` the operator, the step and the activation of the single one.
    fn spread(&self, network: &mut Network<f32>) {
        network.theta.iter_mut().for_each(|theta| theta.clone_from(&self.single.theta[1]));
        network.tau.fill(self.single.tau[0]);
        network.activation.iter_mut().for_each(|s| s.clone_from(&self.single.activation[0]));
    }
}

fn root_mean_square(weights: &[f32]) -> f32 {
    let mean = weights.iter().map(|w| w * w).sum::<f32>() / weights.len().max(1) as f32;
    mean.sqrt().max(f32::MIN_POSITIVE)
}

impl Trainer for FixedPointTrainer {
    fn describe(&self) -> String {
        let rule = match self.options.rule {
            FixedPointRule::Implicit => "implicit gradients".to_string(),
            FixedPointRule::Lifted { mu } => format!("lifted Bregman, mu {mu}"),
            FixedPointRule::Centred { mu } => format!("lifted Bregman from both sides, mu {mu}"),
        };
        let weak = if self.options.weak > 0.0 { " of a weakly convex function" } else { "" };
        format!("{rule} at the fixed point{weak}, {}", self.options.descent)
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        let ranks = engine.ranks();
        refuse!(ranks.size() > 1 && self.options.warm =>
            "samples start where their last visit ended in one process only: start them anew");
        self.single.theta.iter_mut().for_each(|theta| theta.clone_from(&network.theta[0]));
        self.single.activation[0].clone_from(&network.activation[0]);
        self.single.learned_mut().for_each(|activation| activation.flatten(STEEPEST));
        let border = network.border;
        let limit = FixedPoint { border, ..FixedPoint::of(&self.single)? };
        let start = self.start(&batch.z, limit.theta.features(), &batch.indices)?;
        let Descent { metric, momentum, beta2, rate } = self.options.descent;
        let (images, FixedPointOptions { rule, loss, .. }) = ((&batch.z, &batch.x), self.options);
        let mut found = limit.gradients(engine, (rule, loss), images, start.as_ref(), self.options.params)?;
        if self.options.zero_mean {
            found.theta.center();
        }
        self.keep(&found.solution.u, &batch.indices);
        self.iterations.0 += found.solution.iterations;
        self.iterations.1 += found.iterations;

        let squares = matches!(metric, Metric::Diagonal | Metric::Kronecker).then_some(beta2);
        let (rate, scale) = (rate.at(progress), 1.0 / ranks.samples(batch.z.samples()) as f32);
        // Steps are shares of the size of the weights.
        let weak = self.options.weak > 0.0;
        let size = root_mean_square(limit.theta.weights());
        let mut parameters = vec![limit.theta.weights().iter().map(|w| w / size).collect::<Vec<_>>()];
        let mut gradients = vec![found.theta.weights().iter().map(|g| g * size).collect::<Vec<_>>()];
        let learned = self.single.learned().next().map(|s| coordinates(s, limit.tau, weak));
        if let Some((learned, gradient)) = learned.as_ref().zip(found.activation.as_ref()) {
            parameters.extend(learned.parameters());
            gradients.extend(learned.gradients(gradient));
        }
        let blocks = parameters.iter_mut().map(Vec::as_mut_slice);
        let along = gradients.iter().map(Vec::as_slice);
        self.moments.descend(blocks, along, scale, rate as f32, (momentum, squares));
        let weights = self.single.theta[1].weights_mut();
        weights.iter_mut().zip(&parameters[0]).for_each(|(weight, w)| *weight = w * size);
        if self.options.zero_mean {
            self.single.theta[1].center();
        }
        // Of all `(L / c, g(c .))`, which are the same function, the one whose filters are as large as before.
        let c = root_mean_square(self.single.theta[1].weights()) / size;
        self.single.theta[1].weights_mut().iter_mut().for_each(|weight| *weight /= c);
        self.norms.follow(&mut self.single);
        match learned {
            Some(learned) => {
                self.single.activation[0] =
                    learned.activation(&parameters[1..], c, self.single.tau[0]).into();
            }
            None => self.single.scale_thresholds(c),
        }
        if weak {
            self.widen(engine)?;
        }
        self.spread(network);
        Ok(Report {
            loss: ranks.of_samples(found.loss, 1).iter().sum(),
            steps: (rate, rate),
            ..Report::default()
        })
    }

    fn save(&self, state: &mut Snapshot) {
        self.norms.save(state);
        self.moments.save(state);
        state.put("step", &self.single.tau);
        self.kept.iter().enumerate().for_each(|(s, kept)| state.share(format!("u_{s}"), kept));
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.norms.restore(state)?;
        self.moments.restore(state)?;
        state.get("step", &mut self.single.tau)?;
        for (s, kept) in self.kept.iter_mut().enumerate() {
            *kept = Arc::clone(state.array(&format!("u_{s}"))?);
        }
        Ok(())
    }
}

/// What is moved of `activation`, for the step `tau`: of a weakly convex function or of a convex one.
fn coordinates(activation: &PiecewiseLinear<f32>, tau: f32, weak: bool) -> Box<dyn Coordinates> {
    if weak { Box::new(Influences::of(activation, tau)) } else { Box::new(Knots::of(activation, tau)) }
}
