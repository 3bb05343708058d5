//! Given settings -> a complete, checked configuration: given settings over those of the preset.

use super::relevance::{adapted, check_relevance, check_stable, without_useless};
use super::start::{absolute_model, model_to_start_from, teacher};
use super::{FilterConstraint, Method, Settings, StepRule};
use crate::dataset::PatchNoise;
use crate::network::{Architecture, Network};
use crate::training::{Auxiliary, Constraint, Options, Plan, Stability};
use crate::{
    Error, Result, dataset, error::check_not_negative, image::noise::check_sigma_below_white,
    training::rate_search::PAPER_RATES,
};
use std::path::{Path, PathBuf};

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
    pub(super) from: Option<Network<f32>>,
    /// Another network to learn from, and for which share of the epochs.
    pub(super) teacher: Option<(Network<f32>, f64)>,
}

/// The most patches, epochs and the like.
const MOST_COUNTED: usize = 100_000_000;
/// The largest patch.
const MOST_PATCH: usize = 8192;

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
    /// Fails when a setting is out of range, contradicts another one, or would do nothing beside the others.
    pub fn resolve(given: &Settings) -> Result<Self> {
        let preset = given.preset.unwrap_or_else(|| given.trainer.unwrap_or_default().preset());
        let search = given.rate_grid.is_some() || given.grid_epochs.is_some();
        let given = &Settings {
            rate: given.rate.or(search.then_some(StepRule::Grid)),
            from: given.from.as_deref().map(absolute_model).transpose()?,
            teacher: given.teacher.as_deref().map(absolute_model).transpose()?,
            data: given.data.as_deref().map(absolute).transpose()?,
            noisy: given.noisy.as_deref().map(absolute).transpose()?,
            noise: given.noise.or(given.noisy.is_some().then_some(PatchNoise::Own)),
            test: given.test.as_deref().map(absolute).transpose()?,
            ..given.clone()
        };
        let stable = given.lipschitz.map(Stability::of).transpose()?;
        let mut all = given.clone().over(adapted(preset.settings(), given, stable.as_ref()));
        let from = given.from.as_ref().map(|path| model_to_start_from(path, given, &mut all)).transpose()?;
        check_relevance(given, &all)?;
        stable.map_or(Ok(()), |stable| check_stable(&all, &stable))?;
        if given.batch.is_some() {
            all.batch_end = given.batch_end;
        }
        let name = given.preset.map_or(complete(all.trainer).to_string(), |preset| preset.to_string());
        (all.preset, all.out) = (None, None);
        let teacher = teacher(&all)?;
        let config = Self { teacher, ..Self::complete(name, without_useless(all), stable, from) };
        config.check()?;
        Ok(config)
    }

    /// The configuration of all settings, none of them open.
    fn complete(name: String, all: Settings, stable: Option<Stability>, from: Option<Network<f32>>) -> Self {
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
            tied: all.tied == Some(true) || all.at_fixed_point(),
            stable,
        };
        let first_rate = match (rate, &grid) {
            (StepRule::Rate(rate), _) => Some(rate),
            (_, Some(grid)) => Some(grid.rates.first().copied().unwrap_or(f64::NAN)),
            _ => None,
        };
        let stride = all.stride.unwrap_or(1);
        Self {
            architecture: Architecture {
                depth: complete(all.depth),
                features: complete(all.features),
                kernel: complete(all.kernel),
                channels: complete(all.channels).saturating_mul(stride.saturating_pow(2)),
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
            teacher: None,
        }
    }

    /// Whether `u` is kept for each sample.
    pub fn is_persistent(&self) -> bool {
        matches!(self.method, Method::LbFb(Options { auxiliary: Auxiliary::Persistent, .. }))
    }

    /// The same training with one rate of the grid, for `epochs`.
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

    /// About how many bytes a training takes beside its pictures: what all layers of a batch hold, forward and back, the
    /// order of `count` patches, and persistent `u` for each of them.
    pub fn memory(&self, count: usize) -> u64 {
        let Architecture { depth, features, channels, .. } = self.architecture;
        let side = self.patch as u64 + 2 * self.settings.border.unwrap_or(0) as u64;
        let plane = 4 * side * side / self.architecture.stride().pow(2) as u64;
        let layers = (depth * features) as u64 * plane;
        let batch = self.plan.batch.max(self.plan.last_batch) as u64;
        let kept = if self.is_persistent() { count as u64 } else { 0 };
        let values =
            layers.saturating_mul(2 * batch + kept).saturating_add(8 * channels as u64 * plane * batch);
        values.saturating_add(48 * self.architecture.parameters() as u64).saturating_add(24 * count as u64)
    }

    /// A short name for all settings but paths and threads: equal names, equal trainings on equal images.
    pub fn fingerprint(&self) -> String {
        let settings =
            Settings { data: None, noisy: None, test: None, threads: None, ..self.settings.clone() };
        let text = serde_json::Value::Object(settings.to_map()).to_string();
        fingerprint(&text)
    }

    fn check(&self) -> Result<()> {
        let (all, plan, patch) = (&self.settings, &self.plan, self.patch);
        let (channels, stride) = (all.channels.unwrap_or(1), all.stride.unwrap_or(1));
        refuse!(![1, 2].contains(&stride) => "--stride is {stride}, but it must be 1 or 2");
        refuse!(![1, 3].contains(&channels) => "--channels is {channels}, but it must be 1 for grey or 3 for RGB");
        refuse!(!patch.is_multiple_of(stride) => "--patch is {patch}, but with --stride 2 it must be even");
        self.architecture.validate()?;
        check_sigma_below_white(self.sigma).map_err(|e| invalid!("--sigma: {e}"))?;
        check_not_negative("--lambda", all.lambda.unwrap_or(0.0))?;
        let knots = all.knots.unwrap_or(0);
        refuse!(knots == 1 || knots > MOST_KNOTS =>
            "--knots is {knots}, but it must be 0, or from 2 to {MOST_KNOTS}");
        let border = all.border.unwrap_or(0);
        refuse!(patch <= 2 * border =>
            "patches of {patch} pixels are all --border with {border} on each side: give a larger --patch");
        let scale = all.step_scale.unwrap_or(1.0);
        refuse!(!(scale > 0.0 && scale <= MOST_STEP_SCALE) =>
            "--step-scale is {scale}, but it must be above zero and at most {MOST_STEP_SCALE}");
        let noise = all.noise.unwrap_or_default();
        refuse!((noise == PatchNoise::Own) != all.noisy.is_some() =>
            "--noise own goes with the folder --noisy of noisy pictures: give both or neither");
        refuse!(noise == PatchNoise::Camera && self.architecture.colours() != 3 =>
            "--noise camera is for colour: give --channels 3");
        refuse!(noise != PatchNoise::White && (all.sigma_range.is_some() || all.test.is_some()) =>
            "--sigma-range and --test are for white noise: leave them out, held-out pictures are scored");
        if let Some([least, most]) = all.sigma_range {
            refuse!(all.bounded == Some(true) =>
                "--sigma-range changes the contrast of patches, which --bounded holds in [0, 1]: leave one out");
            refuse!(!(0.0 < least && least <= most && self.sigma > 0.0) =>
                "--sigma-range is {least},{most}, but it must go up from above zero, and --sigma be above zero");
        }
        let counts = [
            ("epochs", Some(plan.epochs)),
            ("batch", Some(plan.batch)),
            ("batch-end", Some(plan.last_batch)),
            ("patch", Some(patch)),
            ("evaluate-every", Some(self.evaluate_every)),
            ("count", all.count),
            ("test-every", all.test_every),
            ("grid-epochs", all.grid_epochs),
        ];
        for (name, count) in counts {
            let count = count.unwrap_or(1);
            refuse!(!(1..=MOST_COUNTED).contains(&count) =>
                "--{name} is {count}, but it must be between 1 and {MOST_COUNTED}");
        }
        refuse!(patch > MOST_PATCH => "--patch is {patch}, but it must be at most {MOST_PATCH}");
        refuse!(i64::try_from(self.seed).is_err() =>
            "--seed is {}, but it must be at most {}, or config.toml could not hold it", self.seed, i64::MAX);
        for (name, share) in [("momentum", all.momentum), ("beta2", all.beta2)] {
            let share = share.unwrap_or(0.0);
            refuse!(!(0.0..1.0).contains(&share) =>
                "--{name} is {share}, but it must be at least 0 and below 1");
        }
        refuse!(self.is_persistent() && (plan.fresh_noise || plan.fresh_places) =>
            "persistent u belongs to a patch and its noise: leave out --fresh-noise and --fresh-places");
        self.check_rates()
    }

    fn check_rates(&self) -> Result<()> {
        let bad = |rate: f64| !(rate.is_finite() && rate > 0.0);
        if let Some(StepRule::Rate(rate)) = self.settings.rate {
            refuse!(bad(rate) => "--rate is {rate}, but it must be above zero");
        }
        let Some(Grid { rates, epochs }) = &self.grid else { return Ok(()) };
        for (i, &rate) in rates.iter().enumerate() {
            refuse!(bad(rate) => "--rate-grid holds {rate}, but rates must be above zero");
            refuse!(rates[..i].contains(&rate) => "--rate-grid needs rates that differ, such as 1e-4,5e-4");
        }
        refuse!(rates.is_empty() => "--rate-grid needs rates, such as 1e-4,5e-4");
        let most = self.plan.epochs;
        refuse!(*epochs > most => "--grid-epochs is {epochs}, but the training has only {most} epochs");
        Ok(())
    }
}

/// A text in a word, by FNV-1a: not to be relied on against malice, but the same everywhere and for ever.
pub fn fingerprint(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::io(path))
}

fn complete<T>(setting: Option<T>) -> T {
    setting.expect("every preset gives it")
}
