//! LB-FB: mini-batch block-coordinate forward-backward on the lifted energy (algo:BC-FB), in a variable metric.
//!
//! Two ways to walk through the blocks:
//!
//! - with **backtracking**, as the paper has it: every parameter block takes the largest step that keeps its majorant,
//!   every `u`-block a step whose constant is known, and `E` cannot rise on the batch;
//! - with a **rate**: the reverse sweep runs fused in the engine, each `u_k` at its exact minimiser, and all parameter
//!   blocks take their step at the end of it.

use super::backprop::{Descent, Moments, NORM_ITERATIONS, restore_norms, save_norms, take};
use super::backtracking::Backtracking;
use super::energy::Lifted;
use super::metric::{GaussNewton, MetricKind};
use super::rate::{Rate, Schedule};
use super::trainer::{Batch, Report, Snapshot, Trainer};
use crate::engine::{Engine, Gradients, Reverse};
use crate::network::{Network, Norms};
use crate::operator::{Filters, convolution_norm_bound};
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

/// What a falling weight of the loss falls to, as a share of its start.
const LEAST_MU: f64 = 0.01;

/// Batches between two observations of the Gauss-Newton metric.
const OBSERVE_EVERY: u64 = 10;

/// The lifted Bregman trainer.
pub struct LbFb {
    options: Options,
    norms: Norms<f32>,
    moments: Moments,
    metric: Option<GaussNewton>,
    /// The parameter step of each layer, and of all at once in the simultaneous order.
    beta: Vec<Backtracking>,
    /// The `u` step of the simultaneous order.
    gamma: Backtracking,
    /// `u_1..u_{K-1}` of every sample, `[sample][k][j][pixels with gaps]`, when persistent.
    kept: Vec<Vec<f32>>,
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
        if !(options.mu.is_finite() && options.mu > 0.0) {
            return Err(Error::invalid(format!("mu is {}, but it must be above zero", options.mu)));
        }
        if options.inner == 0 {
            return Err(Error::invalid("at least one inner iteration per batch is needed"));
        }
        if !(0.0..1.0).contains(&options.inertia) {
            return Err(Error::invalid(format!(
                "the inertia is {}, but it must be in [0, 1[",
                options.inertia
            )));
        }
        let rated = matches!(options.steps, Steps::Rate(_));
        if rated && (options.auxiliary != Auxiliary::Anchored || options.order != Order::Sweep) {
            return Err(Error::invalid(
                "a rate needs u anchored and the sweep order; persistent u and simultaneous steps need backtracking",
            ));
        }
        if rated && options.metric == MetricKind::Euclidean {
            return Err(Error::invalid(
                "the Euclidean metric finds its steps by backtracking; it takes no rate",
            ));
        }
        if options.order == Order::Simultaneous && options.metric != MetricKind::Euclidean {
            return Err(Error::invalid("simultaneous steps are for the Euclidean metric"));
        }
        let kept = match options.auxiliary {
            Auxiliary::Anchored => Vec::new(),
            Auxiliary::Persistent { samples } => vec![Vec::new(); samples],
        };
        let metric = (options.metric == MetricKind::GaussNewton).then(|| GaussNewton::new(network, seed));
        Ok(Self {
            options,
            norms: Norms::new(network, seed),
            moments: Moments::new(network),
            metric,
            beta: vec![Backtracking::default(); network.theta.len()],
            gamma: Backtracking { step: 0.25, ..Backtracking::default() },
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
        rate: f32,
    ) -> Result<Report> {
        let (mu, samples) = (self.options.mu, batch.z.samples());
        if let Some(metric) = &mut self.metric
            && self.visits.is_multiple_of(OBSERVE_EVERY)
        {
            let mut lifted = take_lifted(&mut self.lifted, network, batch)?;
            lifted.anchor(engine, network);
            metric.observe(network, &lifted, mu);
            self.lifted = Some(lifted);
        }
        let mut gradients = take(&mut self.gradients, network, samples);
        engine.training_pass(network, Reverse::Lifted { mu }, &batch.z, &batch.x, &mut gradients)?;
        let loss = gradients.loss.iter().sum();
        // The gradients are proportional to mu; divided by it, rates mean the same for every mu.
        let scale = 1.0 / (mu * samples as f32);
        match &self.metric {
            Some(metric) => {
                for (k, gradient) in gradients.theta.iter_mut().enumerate() {
                    gradient.weights_mut().iter_mut().for_each(|g| *g *= mu * scale);
                    metric.solve(k, gradient.weights_mut());
                }
                let descent = Descent::Momentum { beta: self.options.inertia };
                let rate = rate * (1.0 - self.options.inertia);
                self.moments.descend(network, &gradients.theta, 1.0, rate, descent);
            }
            None => {
                let descent = Descent::Adam { beta1: self.options.inertia, beta2: 0.99 };
                self.moments.descend(network, &gradients.theta, scale, rate, descent);
            }
        }
        self.gradients = Some(gradients);
        Ok(Report { loss, steps: (f64::from(rate), f64::from(rate)), ..Report::default() })
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
        lifted.anchor(engine, network);
        let loss = 0.5 * lifted.e.data().iter().map(|e| f64::from(*e).powi(2)).sum::<f64>();
        let mut report = Report { loss, steps: (f64::INFINITY, 0.0), ..Report::default() };
        self.recall(&mut lifted, batch);
        lifted.refresh(engine, network);
        report.energy_before = Some(lifted.energy(engine, network, f64::from(mu)).total());
        for inner in 0..self.options.inner {
            match self.options.order {
                Order::Sweep => {
                    if inner > 0 && self.options.auxiliary == Auxiliary::Anchored {
                        lifted.anchor(engine, network);
                    } else if inner > 0 {
                        lifted.refresh(engine, network);
                    }
                    self.sweep(engine, network, &mut lifted, mu, &mut report);
                }
                Order::Simultaneous => self.simultaneous(engine, network, &mut lifted, mu, &mut report),
            }
        }
        lifted.refresh(engine, network);
        let energy = lifted.energy(engine, network, f64::from(mu));
        report.data_term = Some(energy.data.iter().sum());
        report.energy = Some(energy.total());
        self.keep(&lifted, batch);
        self.lifted = Some(lifted);
        Ok(report)
    }

    /// `theta_K, u_{K-1}, theta_{K-1}, ..., u_1, theta_1, theta_0`.
    fn sweep(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        lifted: &mut Lifted<f32>,
        mu: f32,
        report: &mut Report,
    ) {
        let depth = network.theta.len() - 1;
        for k in (0..=depth).rev() {
            self.theta_step(engine, network, lifted, (k, mu), report);
            if k >= 2 {
                let gamma = if k == depth { last_u_step(network, mu) } else { U_STEP };
                lifted.u_step(engine, network, k - 1, mu, gamma);
            }
        }
    }

    /// One parameter block: the largest step along its gradient that keeps the majorant.
    fn theta_step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        lifted: &mut Lifted<f32>,
        (k, mu): (usize, f32),
        report: &mut Report,
    ) {
        let scale = 1.0 / lifted.z.samples() as f32;
        let mut gradient = network.theta[k].clone();
        lifted.theta_gradient(engine, network, k, mu, &mut gradient);
        let start = network.theta[k].clone();
        let direction: Vec<f32> = gradient.weights().iter().map(|g| scale * g).collect();
        let slope: f64 = direction.iter().map(|g| f64::from(*g).powi(2)).sum();
        if slope == 0.0 {
            return;
        }
        let f = f64::from(scale) * lifted.block(engine, network, k, f64::from(mu));
        let found = self.beta[k].search(f, slope, |beta| {
            move_along(&mut network.theta[k], &start, beta, &direction);
            lifted.follow(engine, network, k);
            f64::from(scale) * lifted.block(engine, network, k, f64::from(mu))
        });
        report.backtracks += found.refused;
        match found.step {
            Some(step) => report.steps = (report.steps.0.min(step), report.steps.1.max(step)),
            None => {
                network.theta[k] = start;
                lifted.follow(engine, network, k);
            }
        }
    }

    /// All of `theta` with one step, then all of `u` with one step.
    fn simultaneous(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        lifted: &mut Lifted<f32>,
        mu: f32,
        report: &mut Report,
    ) {
        let scale = 1.0 / lifted.z.samples() as f64;
        let mut gradients = network.theta.clone();
        lifted.theta_gradients(engine, network, mu, &mut gradients);
        let start = network.theta.clone();
        let directions: Vec<Vec<f32>> =
            gradients.iter().map(|g| g.weights().iter().map(|g| scale as f32 * g).collect()).collect();
        let slope: f64 = directions.iter().flatten().map(|g| f64::from(*g).powi(2)).sum();
        let energy = |lifted: &Lifted<f32>, network: &Network<f32>| {
            scale * lifted.energy(engine, network, f64::from(mu)).total()
        };
        let f = energy(lifted, network);
        let found = self.beta[0].search(f, slope, |beta| {
            for (theta, (start, direction)) in network.theta.iter_mut().zip(start.iter().zip(&directions)) {
                move_along(theta, start, beta, direction);
            }
            lifted.refresh(engine, network);
            energy(lifted, network)
        });
        report.backtracks += found.refused;
        if let Some(step) = found.step {
            report.steps = (report.steps.0.min(step), report.steps.1.max(step));
        } else {
            network.theta = start;
            lifted.refresh(engine, network);
        }

        let before = lifted.u.clone();
        let mut gradients = lifted.u.clone();
        lifted.u_gradients(engine, network, mu, &mut gradients);
        let f = energy(lifted, network);
        let mut gamma = self.gamma.step * self.gamma.grow;
        for _ in 0..=self.gamma.most {
            let model = lifted.u_trial(engine, network, &before, &gradients, gamma as f32);
            lifted.refresh(engine, network);
            if energy(lifted, network) <= f + scale * model {
                self.gamma.step = gamma;
                return;
            }
            report.backtracks += 1;
            gamma *= self.gamma.shrink;
        }
        lifted.u = before;
        lifted.refresh(engine, network);
    }

    /// Puts the kept `u` of the batch's samples in place; a sample seen for the first time starts anchored.
    fn recall(&self, lifted: &mut Lifted<f32>, batch: &Batch) {
        if self.kept.is_empty() {
            return;
        }
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
            self.kept[index].clear();
            for u in &lifted.u[1..] {
                self.kept[index].extend_from_slice(u.sample(s));
            }
        }
    }
}

/// The step of a single `u`-block, whose gradient has Lipschitz constant 2 at most.
const U_STEP: f32 = 0.5;

/// The step of `u_{K-1}`, whose gradient has Lipschitz constant `1 + mu ||L_K||^2`.
fn last_u_step(network: &Network<f32>, mu: f32) -> f32 {
    let norm = convolution_norm_bound(network.last(), 8 * network.last().size())
        .map_or(0.0, |bound| bound.upper as f32);
    U_STEP.min(1.0 / (1.0 + mu * norm * norm))
}

/// `theta = start - beta direction`.
fn move_along(theta: &mut Filters<f32>, start: &Filters<f32>, beta: f64, direction: &[f32]) {
    for ((w, s), d) in theta.weights_mut().iter_mut().zip(start.weights()).zip(direction) {
        *w = (f64::from(*s) - beta * f64::from(*d)) as f32;
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
        let Options { mu, mu_schedule, auxiliary, order, metric, steps, inertia, inner } = self.options;
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
        format!("lifted Bregman, mu {mu}{falling}, u {u}, {order}, {metric} metric, {steps}{inner}")
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        let report = match self.options.steps {
            Steps::Rate(rate) => self.rated_step(engine, network, batch, rate.at(progress) as f32),
            Steps::Backtracking => {
                let mu = Rate { start: f64::from(self.options.mu), schedule: self.options.mu_schedule };
                // Never zero: the energy would no longer see the images.
                let mu = mu.at(progress).max(LEAST_MU * mu.start) as f32;
                self.backtracked_step(engine, network, batch, mu)
            }
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
        state.put_scalar("gamma", self.gamma.step);
        state.put_scalar("visits", self.visits as f64);
        for (s, kept) in self.kept.iter().enumerate() {
            state.put(format!("u_{s}"), kept);
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
        self.gamma.step = state.scalar("gamma")?;
        self.visits = state.scalar("visits")? as u64;
        for (s, kept) in self.kept.iter_mut().enumerate() {
            *kept = state.array(&format!("u_{s}"))?.to_vec();
        }
        Ok(())
    }
}
