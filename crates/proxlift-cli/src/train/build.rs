//! Configuration -> trainer.

use super::config::Config;
use super::settings::{Filters, Metric, Order, Rate, Start, ThetaSteps, Trainer, UStep, Unrolling};
use proxlift::model::Model;
use proxlift::network::{self, Network};
use proxlift::training::{self, Auxiliary, Constraint, Descent, GradientDescent, LbFb, Mu, Options, Rule};
use proxlift::{Error, Result};
use std::path::Path;

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
        let knots = network.pieces();
        (network.architecture(), network.unrolling, network.step_scale, network.bounded, knots)
    };
    if kind(&old) == kind(new) {
        return Ok(Network { border: new.border, ..old });
    }
    let reason = format!("this model has {old}, but the training asks for {new}");
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
    Constraint {
        zero_mean: settings.filter_constraint == Some(Filters::ZeroMean),
        tied: settings.tied == Some(true),
    }
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
    let mu = Mu {
        start: settings.mu.unwrap_or(1.0) as f32,
        schedule: settings.mu_schedule.map_or(training::Schedule::Constant, Into::into),
    };
    let metric = match settings.metric {
        Some(Metric::Diagonal) => training::Metric::Diagonal,
        Some(Metric::Kronecker) => training::Metric::Kronecker,
        Some(Metric::GaussNewton) => training::Metric::GaussNewton,
        None | Some(Metric::Euclidean) => training::Metric::Euclidean,
    };
    let start = match config.rate {
        Rate::Value(start) => start,
        Rate::Grid => config.rates[0],
        Rate::Backtracking => {
            let options = Options {
                mu,
                auxiliary: match config.persistent {
                    true => Auxiliary::Persistent,
                    false => Auxiliary::Anchored,
                },
                order: match settings.order {
                    Some(Order::Simultaneous) => training::Order::Simultaneous,
                    _ => training::Order::Sweep,
                },
                metric,
                theta_steps: match settings.theta_steps {
                    Some(ThetaSteps::Global) => training::ThetaSteps::Global,
                    _ => training::ThetaSteps::Layer,
                },
                u_step: match settings.u_step {
                    Some(UStep::Backtracked) => training::UStep::Backtracked,
                    Some(UStep::Minimiser) => training::UStep::Minimiser,
                    _ => training::UStep::Closed,
                },
                inner: settings.inner.unwrap_or(1),
                constraint: constraint(config),
            };
            return Ok(Box::new(LbFb::new(network, options, samples, config.seed)?));
        }
    };
    let descent = Descent {
        metric,
        momentum: settings.momentum.unwrap_or(0.0) as f32,
        beta2: settings.beta2.unwrap_or(0.999) as f32,
        rate: training::Rate {
            start,
            schedule: settings.schedule.map_or(training::Schedule::Constant, Into::into),
        },
    };
    let rule = match config.trainer {
        Trainer::Lb => Rule::Lifted(mu),
        Trainer::Backprop => Rule::Backprop,
    };
    Ok(Box::new(GradientDescent::new(network, rule, descent, constraint(config), config.seed)?))
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
