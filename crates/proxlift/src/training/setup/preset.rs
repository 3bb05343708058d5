//! The presets: all settings that a training has unless others are given.

use super::{Algorithm, FilterConstraint, Preset, Settings, StepRule};
use crate::training::{Auxiliary, BlockOrder, Metric, Schedule, UStep};

impl Algorithm {
    /// The preset that an algorithm has when none is named.
    pub fn preset(self) -> Preset {
        match self {
            Self::Lb => Preset::Lifted,
            Self::Backprop => Preset::Adam,
        }
    }
}

impl Preset {
    /// Its settings.
    pub fn settings(self) -> Settings {
        match self {
            Self::Lifted => Settings {
                mu: Some(0.1),
                mu_schedule: Some(Schedule::Cosine),
                metric: Some(Metric::Diagonal),
                rate: Some(StepRule::Rate(1e-3)),
                schedule: Some(Schedule::Cosine),
                momentum: Some(0.9),
                beta2: Some(0.99),
                batch: Some(4),
                ..lifted_bregman()
            },
            Self::Backtracking => Settings {
                mu: Some(0.3),
                u_step: Some(UStep::Minimiser),
                batch: Some(1),
                batch_end: Some(20),
                ..same_patches(lifted_bregman())
            },
            Self::Paper => Settings {
                u: Some(Auxiliary::Persistent),
                order: Some(BlockOrder::Simultaneous),
                filter_constraint: Some(FilterConstraint::Free),
                batch: Some(50),
                ..same_patches(lifted_bregman())
            },
            Self::Sgd => Settings { rate: Some(StepRule::Rate(3e-3)), ..back_propagation() },
            Self::Momentum => {
                Settings { momentum: Some(0.9), rate: Some(StepRule::Rate(3e-4)), ..back_propagation() }
            }
            Self::Adam => Settings {
                metric: Some(Metric::Diagonal),
                momentum: Some(0.9),
                beta2: Some(0.999),
                rate: Some(StepRule::Rate(1e-3)),
                schedule: Some(Schedule::Cosine),
                batch: Some(4),
                ..back_propagation()
            },
        }
    }
}

/// Every visit to a patch sees the same pixels and the same noise.
fn same_patches(settings: Settings) -> Settings {
    Settings { fresh_noise: Some(false), fresh_places: Some(false), augment: Some(false), ..settings }
}

fn lifted_bregman() -> Settings {
    Settings {
        trainer: Some(Algorithm::Lb),
        mu: Some(1.0),
        mu_schedule: Some(Schedule::Constant),
        u: Some(Auxiliary::Anchored),
        order: Some(BlockOrder::Sweep),
        metric: Some(Metric::Euclidean),
        rate: Some(StepRule::Backtracking),
        inner: Some(1),
        ..common()
    }
}

/// Plain gradients in batches of 20.
fn back_propagation() -> Settings {
    Settings {
        trainer: Some(Algorithm::Backprop),
        metric: Some(Metric::Euclidean),
        momentum: Some(0.0),
        schedule: Some(Schedule::Constant),
        batch: Some(20),
        ..common()
    }
}

/// The paper's network, and what all presets share.
fn common() -> Settings {
    Settings {
        depth: Some(15),
        features: Some(16),
        kernel: Some(3),
        channels: Some(1),
        sigma: Some(0.1),
        lambda: Some(0.1),
        filter_constraint: Some(FilterConstraint::ZeroMean),
        patch: Some(32),
        epochs: Some(50),
        seed: Some(0),
        evaluate_every: Some(1),
        fresh_noise: Some(true),
        fresh_places: Some(true),
        augment: Some(true),
        ..Settings::default()
    }
}
