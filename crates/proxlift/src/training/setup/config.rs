//! Given settings -> a complete, checked configuration: given settings over those of the preset.

use super::choices::{FilterConstraint, StepRule};
use super::method::Method;
use super::relevance::{adapted, check_relevance, without_useless};
use super::settings::Settings;
use super::start::{absolute_model, model_to_start_from};
use crate::dataset;
use crate::error::check_not_negative;
use crate::image::noise::check_sigma_below_white;
use crate::network::{Architecture, Network};
use crate::training::constraint::Constraint;
use crate::training::driver::Plan;
use crate::training::grid::PAPER_RATES;
use crate::training::options::{Auxiliary, Options};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The most knots of learned activations.
const MOST_KNOTS: usize = 32;

/// The longest steps, as a multiple of what convergence allows.
const MOST_STEP_SCALE: f64 = 1000.0;

/// Everything that a training depends on, apart from its images.
///
/// ```
/// use proxlift::training::{Config, Preset, Settings};
///
/// let config = Config::resolve(&Settings { preset: Some(Preset::Adam), seed: Some(3), ..Settings::default() })?;
/// assert_eq!((config.architecture.depth, config.plan.batch), (15, 4));
/// assert_eq!(Config::resolve(&config.settings)?.fingerprint(), config.fingerprint());
/// // What would do nothing, or cannot be, is refused in a sentence that names the setting.
/// let wrong = Settings { preset: Some(Preset::Adam), mu: Some(1.0), ..Settings::default() };
/// assert!(Config::resolve(&wrong).unwrap_err().to_string().contains("--mu"));
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What the training is called: its preset, or else its algorithm.
    pub name: String,
    /// All settings; [`Config::resolve`] gives the same configuration for them. The number of patches may be open.
    pub settings: Settings,
    /// The sizes of the network.
    pub architecture: Architecture,
    /// The noise level.
    pub sigma: f64,
    /// The side of the patches.
    pub patch: usize,
    /// Where everything random comes from.
    pub seed: u64,
    /// Epochs, batches and their order.
    pub plan: Plan,
    /// What trains.
    pub method: Method,
    /// What the filters are held to.
    pub constraint: Constraint,
    /// Epochs between two scores.
    pub evaluate_every: usize,
    /// The rates to be tried, if it is a search.
    pub grid: Option<Grid>,
    /// The network to start from, if it is not a new one.
    pub(super) from: Option<Network<f32>>,
}

/// A search for the best rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The rates.
    pub rates: Vec<f64>,
    /// Epochs of each of them.
    pub epochs: usize,
}

impl Config {
    /// The configuration of the settings that are `given`.
    ///
    /// # Errors
    /// When a setting is out of range, contradicts another one, or would do nothing beside the others.
    pub fn resolve(given: &Settings) -> Result<Self> {
        let preset = given.preset.unwrap_or_else(|| given.trainer.unwrap_or_default().preset());
        let search = given.rate_grid.is_some() || given.grid_epochs.is_some();
        let given = &Settings {
            rate: given.rate.or(search.then_some(StepRule::Grid)),
            from: given.from.as_deref().map(absolute_model).transpose()?,
            data: given.data.as_deref().map(absolute).transpose()?,
            test: given.test.as_deref().map(absolute).transpose()?,
            ..given.clone()
        };
        let mut all = given.clone().over(adapted(preset.settings(), given));
        let from = given.from.as_ref().map(|path| model_to_start_from(path, given, &mut all)).transpose()?;
        check_relevance(given, &all)?;
        if given.batch.is_some() {
            all.batch_end = given.batch_end;
        }
        let name = given.preset.map_or(complete(all.trainer).to_string(), |preset| preset.to_string());
        (all.preset, all.out) = (None, None);
        let config = Self::complete(name, without_useless(all), from);
        config.check()?;
        Ok(config)
    }

    /// The configuration of all settings, none of them open.
    fn complete(name: String, all: Settings, from: Option<Network<f32>>) -> Self {
        let seed = complete(all.seed);
        let batch = complete(all.batch);
        let epochs = complete(all.epochs);
        let rate = complete(all.rate);
        let grid = (rate == StepRule::Grid).then(|| Grid {
            rates: all.rate_grid.clone().unwrap_or(PAPER_RATES.to_vec()),
            epochs: all.grid_epochs.unwrap_or(epochs),
        });
        let constraint = Constraint {
            zero_mean: all.filter_constraint == Some(FilterConstraint::ZeroMean),
            tied: all.tied == Some(true),
        };
        let first_rate = match (rate, &grid) {
            (StepRule::Rate(rate), _) => Some(rate),
            (_, Some(grid)) => Some(grid.rates.first().copied().unwrap_or(f64::NAN)),
            _ => None,
        };
        Self {
            architecture: Architecture {
                depth: complete(all.depth),
                features: complete(all.features),
                kernel: complete(all.kernel),
                channels: complete(all.channels),
            },
            sigma: complete(all.sigma),
            patch: complete(all.patch),
            seed,
            plan: Plan {
                epochs,
                batch,
                last_batch: all.batch_end.unwrap_or(batch),
                order: dataset::Order::Shuffled(seed),
                fresh_noise: all.fresh_noise == Some(true),
                fresh_places: all.fresh_places == Some(true),
            },
            method: Method::new(&all, first_rate, constraint),
            constraint,
            evaluate_every: complete(all.evaluate_every),
            grid,
            name,
            settings: all,
            from,
        }
    }

    /// Whether `u` is kept for each sample.
    pub fn is_persistent(&self) -> bool {
        matches!(self.method, Method::LbFb(Options { auxiliary: Auxiliary::Persistent, .. }))
    }

    /// The same training with one rate of the grid, for `epochs`.
    ///
    /// # Errors
    /// When the rate or the epochs are out of range.
    pub fn with_rate(&self, rate: f64, epochs: usize) -> Result<Self> {
        let config = Self::resolve(&Settings {
            rate: Some(StepRule::Rate(rate)),
            rate_grid: None,
            grid_epochs: None,
            epochs: Some(epochs),
            ..self.settings.clone()
        })?;
        Ok(Self { name: self.name.clone(), ..config })
    }

    /// A short name for all settings but paths and threads: equal names, equal trainings on equal images.
    pub fn fingerprint(&self) -> String {
        let settings = Settings { data: None, test: None, threads: None, ..self.settings.clone() };
        let text = serde_json::Value::Object(settings.to_map()).to_string();
        // FNV-1a: not to be relied on against malice, but the same everywhere and for ever.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    fn check(&self) -> Result<()> {
        let all = &self.settings;
        let refuse = |reason: String| Err(Error::invalid(reason));
        self.architecture.validate()?;
        check_sigma_below_white(self.sigma).map_err(|e| Error::invalid(format!("--sigma: {e}")))?;
        check_not_negative("--lambda", all.lambda.unwrap_or(0.0))?;
        if let Some(knots) = all.knots.filter(|knots| *knots != 0 && !(2..=MOST_KNOTS).contains(knots)) {
            return refuse(format!("--knots is {knots}, but it must be 0, or from 2 to {MOST_KNOTS}"));
        }
        if all.bounded == Some(true) && all.sigma_range.is_some() {
            return refuse(
                "--sigma-range changes the contrast of patches, which --bounded holds in [0, 1]: leave one out"
                    .into(),
            );
        }
        if let Some(border) = all.border.filter(|border| self.patch <= 2 * border) {
            return refuse(format!(
                "patches of {} pixels are all --border with {border} on each side: give a larger --patch",
                self.patch
            ));
        }
        if let Some(scale) = all.step_scale.filter(|scale| !(*scale > 0.0 && *scale <= MOST_STEP_SCALE)) {
            return refuse(format!(
                "--step-scale is {scale}, but it must be above zero and at most {MOST_STEP_SCALE}"
            ));
        }
        if let Some([least, most]) = all.sigma_range
            && !(0.0 < least && least <= most && self.sigma > 0.0)
        {
            return refuse(format!(
                "--sigma-range is {least},{most}, but it must go up from above zero, and --sigma be above zero"
            ));
        }
        let counts = [
            ("epochs", Some(self.plan.epochs)),
            ("batch", Some(self.plan.batch)),
            ("batch-end", Some(self.plan.last_batch)),
            ("patch", Some(self.patch)),
            ("evaluate-every", Some(self.evaluate_every)),
            ("count", all.count),
            ("test-every", all.test_every),
            ("grid-epochs", all.grid_epochs),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            return refuse(format!("--{name} is 0, but it must be 1 or more"));
        }
        for (name, share) in [("momentum", all.momentum), ("beta2", all.beta2)] {
            if let Some(share) = share.filter(|share| !(0.0..1.0).contains(share)) {
                return refuse(format!("--{name} is {share}, but it must be at least 0 and below 1"));
            }
        }
        if self.is_persistent() && (self.plan.fresh_noise || self.plan.fresh_places) {
            return refuse(
                "persistent u belongs to a patch and its noise: leave out --fresh-noise and --fresh-places"
                    .into(),
            );
        }
        self.check_rates()
    }

    fn check_rates(&self) -> Result<()> {
        let bad = |rate: &f64| !(rate.is_finite() && *rate > 0.0);
        if let Some(StepRule::Rate(rate)) = self.settings.rate.filter(|_| self.grid.is_none())
            && bad(&rate)
        {
            return Err(Error::invalid(format!("--rate is {rate}, but it must be above zero")));
        }
        let Some(Grid { rates, epochs }) = &self.grid else { return Ok(()) };
        if let Some(rate) = rates.iter().find(|rate| bad(rate)) {
            return Err(Error::invalid(format!("--rate-grid holds {rate}, but rates must be above zero")));
        }
        let repeated = |i: usize| rates[..i].contains(&rates[i]);
        if rates.is_empty() || (1..rates.len()).any(repeated) {
            return Err(Error::invalid("--rate-grid needs rates that differ, such as 1e-4,5e-4"));
        }
        if *epochs > self.plan.epochs {
            return Err(Error::invalid(format!(
                "--grid-epochs is {epochs}, but the training has only {} epochs",
                self.plan.epochs
            )));
        }
        Ok(())
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::io(path))
}

/// A setting that every preset has.
fn complete<T>(setting: Option<T>) -> T {
    setting.expect("every preset gives it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::{Metric, Preset};
    use serde_json::json;

    fn given(settings: serde_json::Value) -> Settings {
        Settings::from_map(settings.as_object().unwrap().clone()).unwrap()
    }

    fn resolved(settings: serde_json::Value) -> Config {
        Config::resolve(&given(settings)).unwrap()
    }

    #[test]
    fn a_complete_configuration_gives_itself() {
        for settings in [
            json!({}),
            json!({"preset": "paper"}),
            json!({"trainer": "backprop"}),
            json!({"preset": "adam", "metric": "kronecker", "beta2": 0.99}),
            json!({"preset": "backtracking"}),
            json!({"preset": "backtracking", "trainer": "backprop"}),
            json!({"preset": "paper", "rate": 1e-3, "order": "sweep", "u": "anchored"}),
            json!({"u": "persistent"}),
            json!({"metric": "gauss-newton", "seed": 3}),
            json!({"metric": "kronecker", "border": 4, "overstep": 4}),
            json!({"metric": "gauss-newton", "rate": "backtracking", "u-step": "backtracked", "theta-steps": "global"}),
            json!({"preset": "sgd", "rate-grid": [1e-4, 5e-4], "grid-epochs": 2}),
            json!({"from": "small", "sigma": 0.2}),
        ] {
            let config = resolved(settings.clone());
            let again = Config::resolve(&config.settings).unwrap();
            assert_eq!(Config { name: config.name.clone(), ..again.clone() }, config, "{settings}");
            assert_eq!(again.fingerprint(), config.fingerprint());
        }
    }

    #[test]
    fn settings_that_would_do_nothing_or_make_no_sense_are_refused() {
        for settings in [
            json!({"trainer": "backprop", "mu": 1}),
            json!({"preset": "paper", "momentum": 0.5}),
            json!({"preset": "backtracking", "beta2": 0.5}),
            json!({"preset": "sgd", "beta2": 0.5}),
            json!({"rate": 1e-3, "u-step": "closed"}),
            json!({"rate": 1e-3, "inner": 2}),
            json!({"rate": 1e-3, "u": "persistent"}),
            json!({"preset": "paper", "rate": 1e-3}),
            json!({"rate": 1e-3, "theta-steps": "global"}),
            json!({"order": "simultaneous", "u-step": "closed"}),
            json!({"order": "simultaneous", "theta-steps": "layer"}),
            json!({"trainer": "backprop", "u-step": "closed"}),
            json!({"rate": 1e-3, "rate-grid": [1e-3]}),
            json!({"rate": "backtracking", "grid-epochs": 2}),
            json!({"rate-grid": [1e-3, 1e-4, 1e-3]}),
            json!({"rate-grid": []}),
            json!({"rate-grid": [-1.0]}),
            json!({"grid-epochs": 99}),
            json!({"border": 16}),
            json!({"step-scale": 0}),
            json!({"from": "small", "start": "cosines"}),
            json!({"from": "small", "patch": 12}),
        ] {
            assert!(Config::resolve(&given(settings.clone())).is_err(), "{settings}");
        }
    }

    #[test]
    fn given_settings_adapt_the_preset() {
        let config = resolved(json!({"u": "persistent"}));
        assert_eq!(config.settings.rate, Some(StepRule::Backtracking));
        assert!(config.is_persistent() && !config.plan.fresh_noise);
        let config = resolved(json!({"metric": "diagonal", "rate": "backtracking"}));
        assert_eq!(config.settings.metric, Some(Metric::Diagonal));
        let config = resolved(json!({"preset": "backtracking", "metric": "diagonal"}));
        assert_eq!(config.settings.rate, Preset::Lifted.settings().rate);
        let config = resolved(json!({"preset": "sgd", "rate-grid": [1e-4]}));
        assert_eq!(config.grid, Some(Grid { rates: vec![1e-4], epochs: config.plan.epochs }));
        let trial = config.with_rate(1e-4, 3).unwrap();
        assert_eq!((trial.grid, trial.plan.epochs, trial.name.as_str()), (None, 3, "sgd"));
        let config = resolved(json!({"preset": "paper", "trainer": "backprop"}));
        assert!(matches!(config.method, Method::Descent(..)) && config.settings.augment == Some(false));
        assert_eq!((config.settings.mu, config.settings.u), (None, None));
        assert_eq!(resolved(json!({"preset": "backtracking", "batch": 3})).plan.last_batch, 3);
    }

    #[test]
    fn a_model_to_start_from_brings_its_architecture_and_refuses_another_one() {
        let grey = resolved(json!({"from": "small"}));
        let model = crate::model::BuiltIn::Small.model(crate::image::Channels::Grey);
        assert_eq!(grey.network().unwrap(), model.network);
        assert_eq!((grey.sigma, grey.settings.border), (model.sigma, Some(model.network.border)));
        let colour =
            resolved(json!({"from": "small", "channels": 3, "border": 2, "sigma": 2.0 * model.sigma}));
        let network = colour.network().unwrap();
        assert_eq!((network.architecture().channels, network.border), (3, 2));
        let knots = |network: &Network<f32>| network.activation[0].piecewise().unwrap().knots().to_vec();
        let trained = &crate::model::BuiltIn::Small.model(crate::image::Channels::Rgb).network;
        let doubled = knots(trained).iter().zip(knots(&network)).all(|(a, b)| (2.0 * a - b).abs() < 1e-6);
        assert!(doubled, "thresholds follow the noise");
        for (setting, words) in [
            (json!({"from": "small", "depth": 7}), ["depth 4", "--depth is 7"]),
            (json!({"from": "small", "unrolling": "inertial"}), ["chambolle-pock-accelerated", "inertial"]),
            (json!({"from": "small", "knots": 0}), ["knots", "--knots is 0"]),
        ] {
            let refused = Config::resolve(&given(setting)).unwrap_err().to_string();
            assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
        }
    }
}
