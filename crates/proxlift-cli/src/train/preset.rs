//! The presets: all settings that a training has when nothing else is said.

use super::settings::{Settings, Trainer};
use toml::Table;

/// A set of settings to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Lifted Bregman in the diagonal metric, the best found
    Best,
    /// Lifted Bregman by Euclidean steps as long as backtracking allows, fixed noise: no rate to tune
    Paper,
    /// Plain stochastic gradients by back-propagation
    Sgd,
    /// The same with momentum
    Momentum,
    /// Adam by back-propagation, on the same data as best
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
filters = "zero-mean"
patch = 32
epochs = 50
seed = 0
evaluate-every = 1
fresh-noise = true
fresh-places = true
augment = true
"#;

const BEST: &str = r#"
trainer = "lb"
mu = 0.1
mu-schedule = "cosine"
u = "anchored"
order = "sweep"
metric = "diagonal"
rate = 1e-3
schedule = "cosine"
inertia = 0.9
inner = 1
batch = 4
"#;

const PAPER: &str = r#"
trainer = "lb"
mu = 0.3
mu-schedule = "constant"
u = "anchored"
order = "sweep"
metric = "euclidean"
rate = "backtracking"
schedule = "constant"
inertia = 0.0
inner = 1
u-step = "minimiser"
batch = 1
batch-end = 20
fresh-noise = false
fresh-places = false
augment = false
"#;

const SGD: &str = r#"
trainer = "sgd"
rate = 3e-3
schedule = "constant"
batch = 20
"#;

const MOMENTUM: &str = r#"
trainer = "momentum"
rate = 3e-4
schedule = "constant"
inertia = 0.9
batch = 20
"#;

const ADAM: &str = r#"
trainer = "adam"
rate = 1e-3
schedule = "cosine"
inertia = 0.9
batch = 4
"#;

impl Preset {
    /// The preset that a trainer has when none is named.
    pub fn of(trainer: Trainer) -> Self {
        match trainer {
            Trainer::Lb => Self::Best,
            Trainer::Sgd => Self::Sgd,
            Trainer::Momentum => Self::Momentum,
            Trainer::Adam => Self::Adam,
        }
    }

    /// Its settings.
    pub fn settings(self) -> Settings {
        let own = match self {
            Self::Best => BEST,
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
    fn every_preset_is_the_preset_of_its_trainer_or_the_papers() {
        for preset in Preset::value_variants() {
            let trainer = preset.settings().trainer.expect("a trainer");
            assert!(Preset::of(trainer) == *preset || *preset == Preset::Paper);
        }
    }
}
