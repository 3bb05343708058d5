//! The blocks of LB-FB, one after the other with backtracking: (algo:BC-FB) as the paper has it.

use super::energy::Lifted;
use super::lifted::LbFb;
use super::trainer::Report;
use crate::engine::Engine;
use crate::network::Network;
use crate::operator::{Filters, convolution_norm_bound};

impl LbFb {
    /// `theta_K, u_{K-1}, theta_{K-1}, ..., u_1, theta_1, theta_0`.
    pub(super) fn sweep(
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
    pub(super) fn simultaneous(
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
