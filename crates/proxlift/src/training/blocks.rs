//! The blocks of LB-FB: a parameter block, a block of auxiliary variables, or all of either at once.

use super::backtracking::{Backtracking, Found, Trial};
use super::{Constraint, Energy, Lifted, Report, optimiser::gauss_newton::GaussNewton};
use crate::operator::{Filters, convolution_norm_bound};
use crate::{engine::Engine, field::Field, network::Network};
use std::ops::Range;

/// A batch at work: who computes, the parameters, the variables of the batch, and the weight of the loss.
pub(super) struct Blocks<'a> {
    pub engine: &'a dyn Engine<f32>,
    pub network: &'a mut Network<f32>,
    pub lifted: &'a mut Lifted<f32>,
    pub mu: f32,
    pub constraint: Constraint,
    pub memory: &'a mut UMemory,
    pub report: &'a mut Report,
}

/// Where a search for steps of `u` starts, and the gradients there, at the index of their layers.
#[derive(Default)]
pub(super) struct UMemory {
    before: Vec<Field<f32>>,
    gradients: Vec<Field<f32>>,
}

impl UMemory {
    /// Sizes it for the blocks of `lifted`; once sized, it stays.
    pub fn fit(&mut self, lifted: &Lifted<f32>) {
        let shape = |fields: &[Field<f32>]| fields.first().map(|u| (u.samples(), u.grid()));
        if shape(&self.before) != shape(&lifted.u) {
            (self.before, self.gradients) = (lifted.u.clone(), lifted.u.clone());
        }
    }
}

impl Blocks<'_> {
    /// `E` and its blocks.
    pub fn energy(&self) -> Energy {
        self.lifted.energy((self.engine, self.network), f64::from(self.mu))
    }

    /// One parameter block: the longest step along `A^{-1} g` that keeps the majorant in the norm of `A`. There,
    /// `<theta+ - theta, g> + 1/(2 beta) ||theta+ - theta||_A^2 = -beta/2 <g, A^{-1} g>`.
    pub fn theta(&mut self, k: usize, metric: Option<&GaussNewton>, beta: &mut Backtracking) {
        let start = self.network.theta[k].clone();
        let mut gradient = start.clone();
        self.lifted.theta_gradient((self.engine, self.network), k, self.mu, &mut gradient);
        self.scale_and_constrain(&mut gradient);
        let mut direction = gradient.clone();
        if let Some(metric) = metric {
            metric.solve(k, direction.weights_mut());
            self.constraint.along(&mut direction);
        }
        let slope = inner(gradient.weights(), direction.weights());
        // Not above zero where the gradient vanishes, or where rounding leaves no descent in a nearly singular metric.
        if slope.is_nan() || slope <= 0.0 {
            return;
        }
        let found = beta.search(&[self.block(k)], |steps| {
            move_along(&mut self.network.theta[k], &start, steps[0], &direction);
            self.lifted.follow((self.engine, self.network), k);
            vec![Trial { value: self.block(k), model: -0.5 * steps[0] * slope }]
        });
        self.record(found);
    }

    /// All parameter blocks with one step (eq:maj-theta).
    pub fn all_theta(&mut self, beta: &mut Backtracking) {
        let start = self.network.theta.clone();
        let mut gradients = start.clone();
        self.lifted.theta_gradients((self.engine, self.network), self.mu, &mut gradients);
        gradients.iter_mut().for_each(|gradient| self.scale_and_constrain(gradient));
        let slope: f64 = gradients.iter().map(|g| inner(g.weights(), g.weights())).sum();
        let scale = self.scale();
        let found = beta.search(&[scale * self.energy().total()], |steps| {
            for (theta, (start, gradient)) in self.network.theta.iter_mut().zip(start.iter().zip(&gradients))
            {
                move_along(theta, start, steps[0], gradient);
            }
            self.lifted.refresh((self.engine, self.network));
            vec![Trial { value: scale * self.energy().total(), model: -0.5 * steps[0] * slope }]
        });
        self.record(found);
    }

    /// All `u` with one step (eq:maj-u).
    pub fn all_u(&mut self, gamma: &mut Backtracking) {
        let layers = 1..self.lifted.u.len();
        let samples = self.samples();
        self.remember_u(layers.clone());
        self.lifted.u_gradients((self.engine, self.network), self.mu, &mut self.memory.gradients);
        let found = gamma.search(&[self.energy().total()], |steps| {
            let models = self.move_u(layers.clone(), &vec![steps[0]; samples]);
            self.lifted.refresh((self.engine, self.network));
            vec![Trial { value: self.energy().total(), model: models.iter().sum() }]
        });
        self.report.backtracks += found.refused;
    }

    /// `u_k` with a step that is known: `u_k <- s(u_k - gamma df/du_k)`. What follows from `u_k` is left as it was.
    pub fn u(&mut self, k: usize, gamma: f32) {
        self.lifted.u_step((self.engine, self.network), k, self.mu, gamma);
    }

    /// `u_k` with a step for each sample, as long as its own majorant allows: given `theta`, samples are independent.
    pub fn searched_u(&mut self, k: usize, gamma: &mut Backtracking) {
        self.remember_u(k..k + 1);
        self.lifted.u_gradient((self.engine, self.network), k, self.mu, &mut self.memory.gradients[k]);
        let found = gamma.search(&self.u_block(k), |steps| {
            let models = self.move_u(k..k + 1, steps);
            self.lifted.follow((self.engine, self.network), k + 1);
            let trial = |(value, model)| Trial { value, model };
            self.u_block(k).into_iter().zip(models).map(trial).collect()
        });
        self.report.backtracks += found.refused;
    }

    /// The step of `u_k` whose constant is known: the gradient of an inner block has Lipschitz constant 2 at most, that
    /// of `u_{K-1}` has `1 + mu ||L_K||^2`.
    pub fn closed_u_step(&self, k: usize) -> f32 {
        if k + 1 < self.lifted.u.len() { 0.5 } else { (1.0 / (1.0 + self.last_constant())).min(0.5) }
    }

    /// The step of `u_k` to its minimiser, shorter for `u_{K-1}` where `mu ||L_K||^2` is above 1.
    pub fn unit_u_step(&self, k: usize) -> f32 {
        if k + 1 < self.lifted.u.len() { 1.0 } else { (1.0 / self.last_constant()).min(1.0) }
    }

    /// `mu ||L_K||^2`.
    fn last_constant(&self) -> f32 {
        let last = self.network.last();
        let norm = convolution_norm_bound(last, 8 * last.size()).map_or(0.0, |bound| bound.upper as f32);
        self.mu * norm * norm
    }

    /// The part of `f` that depends on `theta_k`, a sample's mean.
    fn block(&self, k: usize) -> f64 {
        self.scale() * self.lifted.block((self.engine, self.network), k, f64::from(self.mu))
    }

    /// The part of `f` that depends on `u_k`, of each sample: its own penalty, and the next one or the loss.
    fn u_block(&self, k: usize) -> Vec<f64> {
        let next = self.lifted.block_of_samples((self.engine, self.network), k + 1, f64::from(self.mu));
        let own = self.lifted.block_of_samples((self.engine, self.network), k, f64::from(self.mu));
        own.into_iter().zip(next).map(|(own, next)| own + next).collect()
    }

    fn remember_u(&mut self, layers: Range<usize>) {
        for k in layers {
            self.memory.before[k].data_mut().copy_from_slice(self.lifted.u[k].data());
        }
    }

    /// Puts `u_k` of sample `s` at `s(before - steps[s] gradient)` in these layers, and returns what the majorant of each
    /// sample adds to `f`.
    fn move_u(&mut self, layers: Range<usize>, steps: &[f64]) -> Vec<f64> {
        let ranks = self.engine.ranks();
        let steps: Vec<f64> = ranks.places(self.lifted.z.samples()).into_iter().map(|s| steps[s]).collect();
        let mut models = vec![0.0; steps.len()];
        for k in layers {
            let (before, gradient) = (&self.memory.before[k], &self.memory.gradients[k]);
            self.lifted.put_u((self.engine, self.network), k, (before, gradient), &steps);
            for (s, model) in models.iter_mut().enumerate() {
                let u = self.lifted.u[k].sample(s);
                *model += majorant(u, before.sample(s), gradient.sample(s), steps[s]);
            }
        }
        ranks.of_samples(models, 1)
    }

    fn scale_and_constrain(&self, gradient: &mut Filters<f32>) {
        let scale = self.scale() as f32;
        gradient.weights_mut().iter_mut().for_each(|g| *g *= scale);
        self.constraint.along(gradient);
    }

    fn scale(&self) -> f64 {
        1.0 / self.samples() as f64
    }

    /// The samples of the batch.
    fn samples(&self) -> usize {
        self.engine.ranks().samples(self.lifted.z.samples())
    }

    fn record(&mut self, found: Found) {
        self.report.backtracks += found.refused;
        if let Some(step) = found.step {
            self.report.steps = (self.report.steps.0.min(step), self.report.steps.1.max(step));
        }
    }
}

/// `<g, p>`.
fn inner(gradient: &[f32], direction: &[f32]) -> f64 {
    gradient.iter().zip(direction).map(|(g, p)| f64::from(*g) * f64::from(*p)).sum()
}

/// `theta = start - beta direction`.
fn move_along(theta: &mut Filters<f32>, start: &Filters<f32>, beta: f64, direction: &Filters<f32>) {
    for ((w, s), d) in theta.weights_mut().iter_mut().zip(start.weights()).zip(direction.weights()) {
        *w = (f64::from(*s) - beta * f64::from(*d)) as f32;
    }
}

/// `<u - from, g> + 1/(2 gamma) ||u - from||^2`.
fn majorant(u: &[f32], from: &[f32], gradient: &[f32], gamma: f64) -> f64 {
    let terms = u.iter().zip(from).zip(gradient).map(|((&u, &from), &g)| {
        let moved = f64::from(u - from);
        if moved == 0.0 { 0.0 } else { moved * f64::from(g) + moved * moved / (2.0 * gamma) }
    });
    terms.sum()
}
