//! The presets: all settings that a training has when nothing else is said.

use super::settings::{Settings, Trainer};
use toml::Table;

/// A set of settings to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Lifted Bregman in the diagonal metric
    #[serde(alias = "best")]
    Lifted,
    /// Lifted Bregman in a reverse sweep by backtracking: no rate to tune
    Backtracking,
    /// Lifted Bregman as the paper prints it: all parameters with one step, then all auxiliary variables with one step, both
    /// by backtracking, mu 1. The paper leaves open what becomes of u between two visits to a sample (here it is kept),
    /// lambda (0.1) and the mini-batch (50)
    Paper,
    /// Stochastic gradients by back-propagation
    Sgd,
    /// The same with momentum
    Momentum,
    /// Adam by back-propagation, on the same data as lifted
    Adam,
}

/// The paper's network, and what all presets share.
const COMMON: &str = r#"
depth = 15
features = 16
kernel = 3
channels = 1
sigma = 0.1
lambda = 0.1
filter-constraint = "zero-mean"
patch = 32
epochs = 50
seed = 0
evaluate-every = 1
fresh-noise = true
fresh-places = true
augment = true
"#;

const LIFTED: &str = r#"
trainer = "lb"
mu = 0.1
mu-schedule = "cosine"
u = "anchored"
order = "sweep"
metric = "diagonal"
rate = 1e-3
schedule = "cosine"
momentum = 0.9
beta2 = 0.99
inner = 1
batch = 4
"#;

const PAPER: &str = r#"
trainer = "lb"
mu = 1.0
mu-schedule = "constant"
u = "persistent"
order = "simultaneous"
metric = "euclidean"
rate = "backtracking"
inner = 1
filter-constraint = "free"
batch = 50
fresh-noise = false
fresh-places = false
augment = false
"#;

const BACKTRACKING: &str = r#"
trainer = "lb"
mu = 0.3
mu-schedule = "constant"
u = "anchored"
order = "sweep"
metric = "euclidean"
rate = "backtracking"
inner = 1
u-step = "minimiser"
batch = 1
batch-end = 20
fresh-noise = false
fresh-places = false
augment = false
"#;

const SGD: &str = r#"
trainer = "backprop"
metric = "euclidean"
momentum = 0.0
rate = 3e-3
schedule = "constant"
batch = 20
"#;

const MOMENTUM: &str = r#"
trainer = "backprop"
metric = "euclidean"
momentum = 0.9
rate = 3e-4
schedule = "constant"
batch = 20
"#;

const ADAM: &str = r#"
trainer = "backprop"
metric = "diagonal"
momentum = 0.9
beta2 = 0.999
rate = 1e-3
schedule = "cosine"
batch = 4
"#;

impl Preset {
    /// The preset that a trainer has when none is named.
    pub fn of(trainer: Trainer) -> Self {
        match trainer {
            Trainer::Lb => Self::Lifted,
            Trainer::Backprop => Self::Adam,
        }
    }

    /// Its settings.
    pub fn settings(self) -> Settings {
        let own = match self {
            Self::Lifted => LIFTED,
            Self::Backtracking => BACKTRACKING,
            Self::Paper => PAPER,
            Self::Sgd => SGD,
            Self::Momentum => MOMENTUM,
            Self::Adam => ADAM,
        };
        let table = |text: &str| text.parse::<Table>().expect("a preset is TOML");
        let mut all = table(COMMON);
        all.extend(table(own));
        all.try_into().expect("a preset holds settings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_preset_of_a_trainer_trains_by_it() {
        for trainer in Trainer::value_variants() {
            assert_eq!(Preset::of(*trainer).settings().trainer, Some(*trainer));
        }
    }
}
