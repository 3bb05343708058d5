//! The blocks of LB-FB, one after the other with backtracking: (algo:BC-FB) as the paper has it.

use super::backtracking::{Backtracking, Found};
use super::lbfb::LbFb;
use super::lifted::{Energy, Lifted};
use super::options::{ThetaSteps, UStep};
use super::trainer::Report;
use super::u_steps::USearch;
use crate::engine::Engine;
use crate::network::Network;
use crate::operator::{Filters, convolution_norm_bound};

/// A batch at work: who computes, the parameters, the variables of the batch, and the weight of the loss.
pub(super) struct Work<'a> {
    pub engine: &'a dyn Engine<f32>,
    pub network: &'a mut Network<f32>,
    pub lifted: &'a mut Lifted<f32>,
    pub mu: f32,
    pub report: &'a mut Report,
}

impl Work<'_> {
    /// Anchors `u` at the forward pass.
    pub fn anchor(&mut self) {
        self.lifted.anchor(self.engine, self.network);
    }

    /// All that follows from `theta` and `u`.
    pub fn refresh(&mut self) {
        self.lifted.refresh(self.engine, self.network);
    }

    /// `E` and its blocks.
    pub fn energy(&self) -> Energy {
        self.lifted.energy(self.engine, self.network, f64::from(self.mu))
    }

    /// The part of `f` that depends on `theta_k`, a sample's mean.
    fn block(&self, k: usize) -> f64 {
        self.scale() * self.lifted.block(self.engine, self.network, k, f64::from(self.mu))
    }

    /// Puts `theta_k` at `start - beta direction`, with what follows from it.
    fn move_theta(&mut self, k: usize, start: &Filters<f32>, beta: f64, direction: &Filters<f32>) {
        move_along(&mut self.network.theta[k], start, beta, direction.weights());
        self.lifted.follow(self.engine, self.network, k);
    }

    /// One over the samples.
    fn scale(&self) -> f64 {
        1.0 / self.lifted.z.samples() as f64
    }

    fn record(&mut self, found: Found) {
        self.report.backtracks += found.refused;
        if let Some(step) = found.step {
            self.report.steps = (self.report.steps.0.min(step), self.report.steps.1.max(step));
        }
    }

    /// The step of `u_k` whose constant is known: the gradient of an inner block has Lipschitz constant 2 at most, that
    /// of `u_{K-1}` has `1 + mu ||L_K||^2`.
    fn closed_u_step(&self, k: usize) -> f32 {
        if k + 1 < self.lifted.u.len() {
            return 0.5;
        }
        (1.0 / (1.0 + self.last_constant())).min(0.5)
    }

    /// The step of `u_k` to its minimiser, shorter for `u_{K-1}` where `mu ||L_K||^2` is above 1.
    fn unit_u_step(&self, k: usize) -> f32 {
        if k + 1 < self.lifted.u.len() { 1.0 } else { (1.0 / self.last_constant()).min(1.0) }
    }

    /// `mu ||L_K||^2`.
    fn last_constant(&self) -> f32 {
        let last = self.network.last();
        let norm = convolution_norm_bound(last, 8 * last.size()).map_or(0.0, |bound| bound.upper as f32);
        self.mu * norm * norm
    }
}

impl LbFb {
    /// `theta_K, u_{K-1}, theta_{K-1}, ..., u_1, theta_1, theta_0`.
    pub(super) fn sweep(&mut self, work: &mut Work<'_>) {
        // A step for all layers grows once in a sweep, and shrinks with each layer that refuses it.
        self.beta[0].step *=
            if self.options.theta_steps == ThetaSteps::Global { self.beta[0].grow } else { 1.0 };
        for k in (0..work.network.theta.len()).rev() {
            self.theta_step(work, k);
            if k >= 2 {
                self.u_step(work, k - 1);
            }
        }
    }

    /// One parameter block: the largest step along `A^{-1} g` that keeps the majorant in the norm of `A`.
    fn theta_step(&mut self, work: &mut Work<'_>, k: usize) {
        let scale = work.scale() as f32;
        let start = work.network.theta[k].clone();
        let mut gradient = start.clone();
        work.lifted.theta_gradient(work.engine, work.network, k, work.mu, &mut gradient);
        gradient.weights_mut().iter_mut().for_each(|g| *g *= scale);
        self.options.constraint.along(&mut gradient);
        let mut direction = gradient.clone();
        if let Some(metric) = &self.metric {
            metric.solve(k, direction.weights_mut());
            self.options.constraint.along(&mut direction);
        }
        let slope = slope(gradient.weights(), direction.weights());
        // Not above zero where the gradient vanishes, or where rounding leaves no descent in a nearly singular metric.
        if slope.is_nan() || slope <= 0.0 {
            return;
        }
        let mut beta = match self.options.theta_steps {
            ThetaSteps::Layer => self.beta[k],
            ThetaSteps::Global => Backtracking { grow: 1.0, ..self.beta[0] },
        };
        let found = beta.search(work.block(k), slope, |beta| {
            work.move_theta(k, &start, beta, &direction);
            work.block(k)
        });
        match self.options.theta_steps {
            ThetaSteps::Layer => self.beta[k].step = beta.step,
            ThetaSteps::Global => self.beta[0].step = beta.step,
        }
        work.record(found);
        if found.step.is_none() {
            work.move_theta(k, &start, 0.0, &direction);
        }
    }

    /// One block of auxiliary variables.
    fn u_step(&mut self, work: &mut Work<'_>, k: usize) {
        let Work { engine, network, lifted, mu, report } = work;
        match self.options.u_step {
            UStep::Closed => {
                let gamma = work.closed_u_step(k);
                work.lifted.u_step(work.engine, work.network, k, work.mu, gamma);
            }
            UStep::Minimiser => {
                let gamma = work.unit_u_step(k);
                work.lifted.u_step(work.engine, work.network, k, work.mu, gamma);
            }
            UStep::Backtracked => {
                let kept = self.u_search.take().filter(|search| search.fits(lifted));
                let mut search = kept.unwrap_or_else(|| USearch::new(lifted));
                report.backtracks +=
                    lifted.u_search(*engine, network, (k, *mu), &mut self.gamma[k], &mut search);
                self.u_search = Some(search);
            }
        }
    }

    /// All of `theta` with one step, then all of `u` with one step; from `E` before to `E` after.
    pub(super) fn simultaneous(&mut self, work: &mut Work<'_>, before: Energy) -> Energy {
        let energy = self.all_theta(work, before);
        self.all_u(work, energy)
    }

    fn all_theta(&mut self, work: &mut Work<'_>, mut energy: Energy) -> Energy {
        let scale = work.scale();
        let start = work.network.theta.clone();
        let mut gradients = start.clone();
        work.lifted.theta_gradients(work.engine, work.network, work.mu, &mut gradients);
        for gradient in &mut gradients {
            gradient.weights_mut().iter_mut().for_each(|g| *g *= scale as f32);
            self.options.constraint.along(gradient);
        }
        let slope = gradients.iter().map(|g| slope(g.weights(), g.weights())).sum();
        let mut trial = None;
        let found = self.beta[0].search(scale * energy.total(), slope, |beta| {
            for (theta, (start, gradient)) in work.network.theta.iter_mut().zip(start.iter().zip(&gradients))
            {
                move_along(theta, start, beta, gradient.weights());
            }
            work.refresh();
            scale * trial.insert(work.energy()).total()
        });
        work.record(found);
        match (found.step, trial) {
            (Some(_), Some(trial)) => energy = trial,
            _ => {
                work.network.theta = start;
                work.refresh();
            }
        }
        energy
    }

    fn all_u(&mut self, work: &mut Work<'_>, energy: Energy) -> Energy {
        let f = energy.total();
        let before = work.lifted.u.clone();
        let mut gradients = work.lifted.u.clone();
        work.lifted.u_gradients(work.engine, work.network, work.mu, &mut gradients);
        let mut gamma = self.gamma[0].step * self.gamma[0].grow;
        for _ in 0..=self.gamma[0].most {
            let model = work.lifted.u_trial(work.engine, work.network, &before, &gradients, gamma as f32);
            work.refresh();
            let trial = work.energy();
            if trial.total() <= f + model {
                self.gamma[0].step = gamma;
                return trial;
            }
            work.report.backtracks += 1;
            gamma *= self.gamma[0].shrink;
        }
        work.lifted.u = before;
        work.refresh();
        energy
    }
}

/// `<g, p>`.
fn slope(gradient: &[f32], direction: &[f32]) -> f64 {
    gradient.iter().zip(direction).map(|(g, p)| f64::from(*g) * f64::from(*p)).sum()
}

/// `theta = start - beta direction`.
fn move_along(theta: &mut Filters<f32>, start: &Filters<f32>, beta: f64, direction: &[f32]) {
    for ((w, s), d) in theta.weights_mut().iter_mut().zip(start.weights()).zip(direction) {
        *w = (f64::from(*s) - beta * f64::from(*d)) as f32;
    }
}
