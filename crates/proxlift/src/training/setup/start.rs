//! A model to start from, instead of a new network.

use super::{FilterConstraint, Settings};
use crate::model::{BuiltIn, Model};
use crate::training::taught::check as check_teacher;
use crate::{Error, Result, image::Channels, network::Network, operator::Filters};
use std::path::{Path, PathBuf};

/// Filters whose sums are below this have zero mean.
const ZERO_SUM: f32 = 1e-4;

/// A path that does not depend on where the program runs; names of built-in models stay.
pub(super) fn absolute_model(path: &Path) -> Result<PathBuf> {
    match path.to_str().and_then(BuiltIn::named) {
        Some(_) => Ok(path.to_path_buf()),
        None => std::path::absolute(path).map_err(Error::io(path)),
    }
}

/// The network of a model, its thresholds adapted to the noise level; what the model is becomes part of `all` settings.
pub(super) fn model_to_start_from(path: &Path, given: &Settings, all: &mut Settings) -> Result<Network<f32>> {
    let Model { mut network, sigma, .. } = open(path, given)?;
    if let Some(kernel) = given.kernel.filter(|kernel| *kernel > network.architecture().kernel) {
        network = network.widened(kernel)?;
    }
    let own = settings_of(&network);
    let asked = given.to_map();
    for (name, own) in own.to_map() {
        if let Some(asked) = asked.get(&name).filter(|asked| **asked != own) {
            let reason = format!("this model has {name} {own}, but --{name} is {asked}: leave it out");
            return Err(Error::file(path, reason));
        }
    }
    let zero_mean = network.theta.iter().all(has_zero_sums);
    let constraint = if zero_mean { FilterConstraint::ZeroMean } else { FilterConstraint::Free };
    *all = own.over(Settings {
        border: given.border.or(Some(network.border)),
        sigma: given.sigma.or((sigma > 0.0).then_some(sigma)).or(all.sigma),
        filter_constraint: given.filter_constraint.or(Some(constraint)),
        ..std::mem::take(all)
    });
    network.border = all.border.unwrap_or(0);
    if let Some(target) = all.sigma.filter(|target| sigma > 0.0 && *target > 0.0 && *target != sigma) {
        network.scale_thresholds((target / sigma) as f32);
    }
    Ok(network)
}

/// The share of the epochs that a teacher has.
const TAUGHT: f64 = 0.7;

/// The network to learn from, its thresholds adapted to the noise level, and for which share of the epochs.
pub(super) fn teacher(all: &Settings) -> Result<Option<(Network<f32>, f64)>> {
    let Some(path) = &all.teacher else { return Ok(None) };
    let Model { mut network, sigma, .. } = open(path, all)?;
    if let Some(target) = all.sigma.filter(|target| sigma > 0.0 && *target > 0.0 && *target != sigma) {
        network.scale_thresholds((target / sigma) as f32);
    }
    let share = all.taught.unwrap_or(TAUGHT);
    check_teacher(&network, share, all.channels.unwrap_or(1))?;
    Ok(Some((network, share)))
}

/// A built-in model for these channels, or a file.
fn open(path: &Path, given: &Settings) -> Result<Model> {
    let channels = if given.channels == Some(3) { Channels::Rgb } else { Channels::Grey };
    path.to_str().map_or_else(|| Model::load(path), |name| Model::open(name, channels))
}

fn settings_of(network: &Network<f32>) -> Settings {
    let sizes = network.architecture();
    Settings {
        depth: Some(sizes.depth),
        features: Some(sizes.features),
        kernel: Some(sizes.kernel),
        channels: Some(sizes.colours()),
        stride: (sizes.stride() > 1).then_some(sizes.stride()),
        knots: Some(if network.learns_activations() { network.pieces() } else { 0 }),
        unrolling: Some(network.unrolling),
        // The number that people write, not that of its 32 bits.
        step_scale: network.step_scale.to_string().parse().ok(),
        bounded: Some(network.bounded),
        own_synthesis: (!network.synthesis.is_empty()).then_some(true),
        ..Settings::default()
    }
}

fn has_zero_sums(theta: &Filters<f32>) -> bool {
    let taps = theta.phases() * theta.size() * theta.size();
    theta.weights().chunks_exact(taps).all(|filter| filter.iter().sum::<f32>().abs() < ZERO_SUM)
}
