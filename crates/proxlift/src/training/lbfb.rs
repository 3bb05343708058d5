//! LB-FB: mini-batch block-coordinate forward-backward on the lifted energy (algo:BC-FB), in a variable metric.
//!
//! Two ways to walk through the blocks:
//!
//! - with **backtracking**, as the paper has it: every parameter block takes the largest step that keeps its majorant,
//!   in the Euclidean norm or in that of a metric, every `u`-block a step whose constant is known or that is searched
//!   for, and `E` cannot rise on the batch;
//! - with a **rate**: the reverse sweep runs fused in the engine, each `u_k` at its exact minimiser, and all parameter
//!   blocks take their step at the end of it.

use super::backprop::{Descent, Moments, NORM_ITERATIONS, restore_norms, save_norms, take};
use super::backtracking::Backtracking;
use super::blocks::Work;
use super::lifted::Lifted;
use super::metric::{GaussNewton, MetricKind};
use super::options::{Auxiliary, Options, Order, Steps};
use super::rate::Rate;
use super::trainer::{Batch, Report, Snapshot, Trainer};
use super::u_steps::USearch;
use crate::engine::{Engine, Gradients, ReverseRule};
use crate::network::{Network, Norms};
use crate::{Error, Result};
use std::sync::Arc;

/// What a falling weight of the loss falls to, as a share of its start.
const LEAST_MU: f64 = 0.01;

/// Batches between two observations of the Gauss-Newton metric.
const OBSERVE_EVERY: u64 = 10;

/// Where the first search of a parameter step starts: longer than most majorants allow, so that it is the search that
/// finds the step.
const FIRST_STEP: f64 = 1.0;

/// By how much a parameter step is tried longer than the last. A step must suit the batches to come as well, so it
/// grows slowly: the accepted ones stay near the least that the last hundred batches allowed, and few are refused.
const STEP_GROWTH: f64 = 1.02;

/// The lifted Bregman trainer.
pub struct LbFb {
    pub(super) options: Options,
    norms: Norms<f32>,
    moments: Moments,
    pub(super) metric: Option<GaussNewton>,
    /// The parameter step of each layer; the first also where all layers share one.
    pub(super) beta: Vec<Backtracking>,
    /// The `u` step of each layer; the first is that of all layers at once in the simultaneous order.
    pub(super) gamma: Vec<Backtracking>,
    pub(super) u_search: Option<USearch<f32>>,
    /// `u_1..u_{K-1}` of every sample, `[sample][k][j][pixels with gaps]`, when persistent. Shared with a checkpoint
    /// while that is written, so that it costs no second copy.
    kept: Vec<Arc<Vec<f32>>>,
    visits: u64,
    lifted: Option<Lifted<f32>>,
    gradients: Option<Gradients<f32>>,
}

impl LbFb {
    /// A trainer for `network`.
    ///
    /// # Errors
    /// When the options contradict each other or are out of range.
    pub fn new(network: &Network<f32>, options: Options, seed: u64) -> Result<Self> {
        options.validate()?;
        let metrics = [MetricKind::Diagonal, MetricKind::Kronecker];
        let rated = matches!(options.steps, Steps::Rate(_)) && metrics.contains(&options.metric);
        let papers = network.is_plain() && network.step_scale <= 1.0;
        let papers = papers && !network.learns_activations() && !options.constraint.tied;
        if !rated && !papers {
            return Err(Error::invalid(
                "backtracking and the Gauss-Newton metric are for the paper's network: momentum, bounds, long steps, \
                 learned activations and tied layers take steps with a rate in the diagonal or the Kronecker metric",
            ));
        }
        let kept = match options.auxiliary {
            Auxiliary::Anchored => Vec::new(),
            Auxiliary::Persistent { samples } => vec![Arc::default(); samples],
        };
        let metric = match (options.metric, options.steps) {
            (MetricKind::GaussNewton, _) => Some(GaussNewton::full(network, seed)),
            (MetricKind::Diagonal, Steps::Backtracking) => Some(GaussNewton::diagonal(network, seed)),
            _ => None,
        };
        let mut moments = Moments::new(network);
        if options.metric == MetricKind::Kronecker {
            moments = moments.in_eigenbases(network);
        }
        let first = Backtracking::default();
        let beta = Backtracking { step: FIRST_STEP, grow: STEP_GROWTH, ..first };
        let gamma = if options.order == Order::Sweep { 0.5 } else { 0.25 };
        Ok(Self {
            options,
            norms: Norms::new(network, seed),
            moments,
            metric,
            beta: vec![beta; network.theta.len()],
            gamma: vec![Backtracking { step: gamma, ..first }; network.theta.len() - 1],
            u_search: None,
            kept,
            visits: 0,
            lifted: None,
            gradients: None,
        })
    }

    /// The fused way: one training pass of the engine, then a step of every parameter block in the metric.
    fn rated_step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        mu: f32,
        rate: f32,
    ) -> Result<Report> {
        let samples = batch.z.samples();
        if self.metric.is_some() && self.visits.is_multiple_of(OBSERVE_EVERY) {
            let mut lifted = take_lifted(&mut self.lifted, network, batch)?;
            lifted.anchor(engine, network);
            self.observe(network, &lifted);
            self.lifted = Some(lifted);
        }
        let mut gradients = take(&mut self.gradients, network, samples);
        engine.training_pass(network, ReverseRule::Lifted { mu }, &batch.z, &batch.x, &mut gradients)?;
        let loss = gradients.loss.iter().sum();
        self.options.constraint.tie(&mut gradients);
        // The gradients are proportional to mu; divided by it, rates mean the same for every mu.
        let scale = 1.0 / (mu * samples as f32);
        match &self.metric {
            Some(metric) => {
                for (k, gradient) in gradients.theta.iter_mut().enumerate() {
                    metric.solve(k, gradient.weights_mut());
                }
                let descent = Descent::Momentum { beta: self.options.inertia };
                let rate = rate * (1.0 - self.options.inertia);
                self.moments.descend(network, &gradients, scale, rate, descent);
            }
            None => {
                let descent = Descent::Adam { beta1: self.options.inertia, beta2: 0.99 };
                self.moments.descend(network, &gradients, scale, rate, descent);
            }
        }
        self.options.constraint.project(network);
        self.gradients = Some(gradients);
        Ok(Report { loss, steps: (f64::from(rate), f64::from(rate)), ..Report::default() })
    }

    /// Averages the metric in, every so many batches.
    fn observe(&mut self, network: &Network<f32>, lifted: &Lifted<f32>) {
        if let Some(metric) = &mut self.metric
            && self.visits.is_multiple_of(OBSERVE_EVERY)
        {
            metric.observe(network, lifted);
        }
    }

    /// The paper's way, block after block.
    fn backtracked_step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        mu: f32,
    ) -> Result<Report> {
        let mut lifted = take_lifted(&mut self.lifted, network, batch)?;
        let mut report = Report { steps: (f64::INFINITY, 0.0), ..Report::default() };
        lifted.anchor(engine, network);
        report.loss = lifted.block(engine, network, lifted.u.len(), 1.0);
        if !self.kept.is_empty() {
            self.recall(&mut lifted, batch);
            lifted.refresh(engine, network);
        }
        self.observe(network, &lifted);
        let mut work = Work { engine, network, lifted: &mut lifted, mu, report: &mut report };
        let mut energy = work.energy();
        work.report.energy_before = Some(energy.total());
        for inner in 0..self.options.inner {
            match self.options.order {
                Order::Simultaneous => energy = self.simultaneous(&mut work, energy),
                Order::Sweep => {
                    if inner > 0 && self.options.auxiliary == Auxiliary::Anchored {
                        work.anchor();
                    }
                    self.sweep(&mut work);
                    work.refresh();
                }
            }
        }
        if self.options.order == Order::Sweep {
            energy = work.energy();
        }
        report.energy = Some(energy.total());
        report.blocks = energy.blocks();
        self.keep(&lifted, batch);
        self.lifted = Some(lifted);
        Ok(report)
    }

    /// Puts the kept `u` of the batch's samples in place; a sample seen for the first time starts anchored.
    fn recall(&self, lifted: &mut Lifted<f32>, batch: &Batch) {
        let length = lifted.u[0].sample_len();
        for (s, &index) in batch.indices.iter().enumerate() {
            for (u, kept) in lifted.u[1..].iter_mut().zip(self.kept[index].chunks_exact(length)) {
                u.data_mut()[s * length..][..length].copy_from_slice(kept);
            }
        }
    }

    fn keep(&mut self, lifted: &Lifted<f32>, batch: &Batch) {
        if self.kept.is_empty() {
            return;
        }
        for (s, &index) in batch.indices.iter().enumerate() {
            let kept = Arc::make_mut(&mut self.kept[index]);
            kept.clear();
            kept.reserve_exact(lifted.u[1..].len() * lifted.u[0].sample_len());
            for u in &lifted.u[1..] {
                kept.extend_from_slice(u.sample(s));
            }
        }
    }
}

/// The lifted batch of the last step if it fits this one, with this batch's images.
fn take_lifted(kept: &mut Option<Lifted<f32>>, network: &Network<f32>, batch: &Batch) -> Result<Lifted<f32>> {
    match kept.take() {
        Some(mut lifted) if lifted.z.samples() == batch.z.samples() && lifted.z.grid() == batch.z.grid() => {
            lifted.z.data_mut().copy_from_slice(batch.z.data());
            lifted.x.data_mut().copy_from_slice(batch.x.data());
            Ok(lifted)
        }
        _ => Lifted::new(network, batch.z.clone(), batch.x.clone()),
    }
}

impl Trainer for LbFb {
    fn describe(&self) -> String {
        self.options.to_string()
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        let mu = Rate { start: f64::from(self.options.mu), schedule: self.options.mu_schedule };
        // Never zero: the energy would no longer see the images.
        let mu = mu.at(progress).max(LEAST_MU * mu.start) as f32;
        let report = match self.options.steps {
            Steps::Rate(rate) => self.rated_step(engine, network, batch, mu, rate.at(progress) as f32),
            Steps::Backtracking => self.backtracked_step(engine, network, batch, mu),
        }?;
        self.visits += 1;
        self.norms.update(network, NORM_ITERATIONS);
        Ok(report)
    }

    fn save(&self, state: &mut Snapshot) {
        save_norms(&self.norms, state);
        self.moments.save(state);
        if let Some(metric) = &self.metric {
            metric.save(state);
        }
        for (k, beta) in self.beta.iter().enumerate() {
            state.put_scalar(format!("beta_{k}"), beta.step);
        }
        for (k, gamma) in self.gamma.iter().enumerate() {
            state.put_scalar(format!("gamma_{k}"), gamma.step);
        }
        state.put_scalar("visits", self.visits as f64);
        for (s, kept) in self.kept.iter().enumerate() {
            state.share(format!("u_{s}"), kept);
        }
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        restore_norms(&mut self.norms, state)?;
        self.moments.restore(state)?;
        if let Some(metric) = &mut self.metric {
            metric.restore(state)?;
        }
        for (k, beta) in self.beta.iter_mut().enumerate() {
            beta.step = state.scalar(&format!("beta_{k}"))?;
        }
        for (k, gamma) in self.gamma.iter_mut().enumerate() {
            gamma.step = state.scalar(&format!("gamma_{k}"))?;
        }
        self.visits = state.scalar("visits")? as u64;
        for (s, kept) in self.kept.iter_mut().enumerate() {
            *kept = state.shared(&format!("u_{s}"))?;
        }
        Ok(())
    }
}
