//! Configuration -> trainer.

use super::config::Config;
use super::settings::{Filters, Metric, Order, Rate, Start, ThetaSteps, Trainer, UStep, Unrolling};
use crate::denoiser::describe;
use proxlift::model::Model;
use proxlift::network::{self, Network};
use proxlift::training::{self, Auxiliary, Backprop, Constraint, Descent, LbFb, MetricKind, Options, Steps};
use proxlift::{Error, Result};
use std::path::Path;

/// Adam's memory of squares.
const BETA2: f32 = 0.999;

/// The network that a training starts from.
///
/// # Errors
/// When the sizes make no network.
pub fn network(config: &Config) -> Result<Network<f32>> {
    let start = match config.settings.start {
        Some(Start::Cosines) => Network::cosines,
        None | Some(Start::Random) => Network::glorot,
    };
    let mut network = start(config.architecture, config.lambda, config.seed)?;
    if let Some(knots @ 2..) = config.settings.knots {
        network = network.with_knots(knots);
    }
    network.bounded = config.settings.bounded == Some(true);
    network.border = config.settings.border.unwrap_or(0);
    network.validate()?;
    let constraint = constraint(config);
    if constraint.tied {
        let first = network.theta[1].clone();
        network.theta.fill(first);
    }
    if constraint.zero_mean {
        network = network.centered(config.seed);
    }
    network =
        network.unrolled(unrolling(config), config.settings.step_scale.unwrap_or(1.0) as f32, config.seed);
    match &config.settings.from {
        Some(path) => go_on_from(path, &network),
        None => Ok(network),
    }
}

/// The network of the model at `path`, which must be of the same kind as `new`; the border may be another.
fn go_on_from(path: &Path, new: &Network<f32>) -> Result<Network<f32>> {
    let old = Model::load(path)?.network;
    let kind = |network: &Network<f32>| {
        let knots = network.activation[0].pieces();
        (network.architecture(), network.unrolling, network.step_scale, network.bounded, knots)
    };
    if kind(&old) == kind(new) {
        return Ok(Network { border: new.border, ..old });
    }
    let reason = format!("this model has {}, but the training asks for {}", describe(&old), describe(new));
    Err(Error::file(path, reason))
}

fn unrolling(config: &Config) -> network::Unrolling {
    match config.settings.unrolling {
        None | Some(Unrolling::DualForwardBackward) => network::Unrolling::DualForwardBackward,
        Some(Unrolling::Inertial) => network::Unrolling::Inertial,
        Some(Unrolling::ChambollePock) => network::Unrolling::ChambollePock,
        Some(Unrolling::ChambollePockAccelerated) => network::Unrolling::ChambollePockAccelerated,
    }
}

fn constraint(config: &Config) -> Constraint {
    let settings = &config.settings;
    Constraint { zero_mean: settings.filters == Some(Filters::ZeroMean), tied: settings.tied == Some(true) }
}

/// The trainer of `config` for `samples` patches.
///
/// # Errors
/// When the settings contradict each other.
pub fn trainer(
    config: &Config,
    network: &Network<f32>,
    samples: usize,
) -> Result<Box<dyn training::Trainer + Send>> {
    let settings = &config.settings;
    let schedule = settings.schedule.map_or(training::Schedule::Constant, Into::into);
    let start = match config.rate {
        Rate::Value(start) => start,
        Rate::Grid => config.rates[0],
        Rate::Backtracking => 0.0,
    };
    let rate = training::Rate { start, schedule };
    let inertia = settings.inertia.unwrap_or(0.0) as f32;
    let descent = match config.trainer {
        Trainer::Sgd => Descent::Sgd,
        Trainer::Momentum => Descent::Momentum { beta: inertia },
        Trainer::Adam => Descent::Adam { beta1: inertia, beta2: BETA2 },
        Trainer::Lb => {
            let options = Options {
                mu_schedule: settings.mu_schedule.map_or(training::Schedule::Constant, Into::into),
                mu: settings.mu.unwrap_or(1.0) as f32,
                auxiliary: if config.persistent {
                    Auxiliary::Persistent { samples }
                } else {
                    Auxiliary::Anchored
                },
                order: match settings.order {
                    Some(Order::Simultaneous) => training::Order::Simultaneous,
                    _ => training::Order::Sweep,
                },
                metric: match settings.metric {
                    Some(Metric::Diagonal) => MetricKind::Diagonal,
                    Some(Metric::Kronecker) => MetricKind::Kronecker,
                    Some(Metric::GaussNewton) => MetricKind::GaussNewton,
                    _ => MetricKind::Euclidean,
                },
                steps: match config.rate {
                    Rate::Backtracking => Steps::Backtracking,
                    Rate::Value(_) | Rate::Grid => Steps::Rate(rate),
                },
                theta_steps: match settings.theta_steps {
                    Some(ThetaSteps::Global) => training::ThetaSteps::Global,
                    _ => training::ThetaSteps::Layer,
                },
                u_step: match settings.u_step {
                    Some(UStep::Backtracked) => training::UStep::Backtracked,
                    Some(UStep::Minimiser) => training::UStep::Minimiser,
                    _ => training::UStep::Closed,
                },
                inertia,
                inner: settings.inner.unwrap_or(1),
                constraint: constraint(config),
            };
            return Ok(Box::new(LbFb::new(network, options, config.seed)?));
        }
    };
    Ok(Box::new(Backprop::new(network, descent, rate, constraint(config), config.seed)))
}

/// Bytes of `u` kept for all patches: `n (K - 1) J pixels` floats.
pub fn persistent_bytes(config: &Config, samples: usize) -> usize {
    if !config.persistent {
        return 0;
    }
    let sizes = config.architecture;
    samples * (sizes.depth - 1) * sizes.features * config.patch * config.patch * size_of::<f32>()
}

/// Bytes of one batch's variables, about: `z`, `x` and three fields for each layer.
pub fn batch_bytes(config: &Config) -> usize {
    let sizes = config.architecture;
    let values = 2 * sizes.channels + 3 * sizes.depth * sizes.features;
    config.batch.max(config.last_batch) * values * config.patch * config.patch * size_of::<f32>()
}
