//! Settings -> a whole, checked configuration: told settings over those of the preset.

use super::preset::Preset;
use super::relevance::check_relevance;
use super::settings::{Metric, Order, Rate, Schedule, Settings, Trainer, U, UStep};
use crate::flags::{check_not_negative, check_sigma_below_white};
use proxlift::network::Architecture;
use proxlift::training::grid::PAPER_RATES;
use proxlift::{Error, Result};
use std::path::PathBuf;

/// The most knots that activations are learned with.
const MOST_KNOTS: usize = 32;

/// The longest steps, as a multiple of what convergence allows.
const MOST_STEP_SCALE: f64 = 1000.0;

/// Everything that a training depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What the run's folder is called.
    pub name: String,
    /// The settings, complete but for the count of patches, which may wait for the data.
    pub settings: Settings,
    /// The sizes of the network.
    pub architecture: Architecture,
    /// The noise level.
    pub sigma: f64,
    /// The thresholds.
    pub lambda: f64,
    /// Who trains.
    pub trainer: Trainer,
    /// Whether `u` is kept for each sample.
    pub persistent: bool,
    /// The rate at the start.
    pub rate: Rate,
    /// Passes over the patches.
    pub epochs: usize,
    /// Patches in a mini-batch of the first epoch.
    pub batch: usize,
    /// Patches in one of the last epoch.
    pub last_batch: usize,
    /// The side of the patches.
    pub patch: usize,
    /// Where everything random comes from.
    pub seed: u64,
    /// Epochs between two scores.
    pub evaluate_every: usize,
    /// The rates of a grid search.
    pub rates: Vec<f64>,
    /// Epochs of each of them.
    pub grid_epochs: usize,
}

impl Config {
    /// The configuration of the settings that were `told`.
    ///
    /// # Errors
    /// When a setting is out of range, or says nothing to the trainer that was chosen.
    pub fn resolve(told: &Settings) -> Result<Self> {
        let preset = told.preset.unwrap_or_else(|| Preset::of(told.trainer.unwrap_or(Trainer::Lb)));
        let told = &Settings { rate: asked_rate(told), ..told.clone() };
        let mut all = told.over(&below(told, preset))?;
        let trainer = needed(all.trainer, "trainer")?;
        let rate = needed(all.rate, "rate")?;
        check_relevance(told, &all, trainer, rate)?;
        if told.batch.is_some() {
            all.batch_end = told.batch_end;
        }
        if rate == Rate::Backtracking {
            (all.schedule, all.momentum, all.beta2) = (None, None, None);
        }
        for path in [&mut all.data, &mut all.test, &mut all.from].into_iter().flatten() {
            *path = std::path::absolute(&*path).map_err(Error::io(&*path))?;
        }
        (all.preset, all.out) = (None, None);
        let name = match (told.preset, trainer) {
            (Some(preset), _) => format!("{preset:?}").to_lowercase(),
            (None, trainer) => format!("{trainer:?}").to_lowercase(),
        };
        let config = Self {
            name,
            architecture: Architecture {
                depth: needed(all.depth, "depth")?,
                features: needed(all.features, "features")?,
                kernel: needed(all.kernel, "kernel")?,
                channels: needed(all.channels, "channels")?,
            },
            sigma: needed(all.sigma, "sigma")?,
            lambda: needed(all.lambda, "lambda")?,
            trainer,
            persistent: trainer == Trainer::Lb && all.u == Some(U::Persistent),
            rate,
            epochs: needed(all.epochs, "epochs")?,
            batch: needed(all.batch, "batch")?,
            last_batch: all.batch_end.or(all.batch).unwrap_or(0),
            patch: needed(all.patch, "patch")?,
            seed: needed(all.seed, "seed")?,
            evaluate_every: needed(all.evaluate_every, "evaluate-every")?,
            rates: all.rate_grid.clone().unwrap_or(PAPER_RATES.to_vec()),
            grid_epochs: all.grid_epochs.or(all.epochs).unwrap_or(0),
            settings: all,
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        self.architecture.validate()?;
        check_sigma_below_white(self.sigma)?;
        check_not_negative("--lambda", self.lambda)?;
        self.check_activations()?;
        if self.settings.bounded == Some(true) && self.settings.sigma_range.is_some() {
            return Err(Error::invalid(
                "--sigma-range changes the contrast of patches, which --bounded holds in [0, 1]: leave one out",
            ));
        }
        if let Some(border) = self.settings.border
            && self.patch <= 2 * border
        {
            return Err(Error::invalid(format!(
                "patches of {} pixels are all --border with {border} on each side: give a larger --patch",
                self.patch
            )));
        }
        if let Some(step_scale) = self.settings.step_scale
            && !(step_scale > 0.0 && step_scale <= MOST_STEP_SCALE)
        {
            return Err(Error::invalid(format!(
                "--step-scale is {step_scale}, but it must be above zero and at most {MOST_STEP_SCALE}"
            )));
        }
        if let Some([least, most]) = self.settings.sigma_range
            && !(0.0 < least && least <= most && self.sigma > 0.0)
        {
            return Err(Error::invalid(format!(
                "--sigma-range is {least},{most}, but it must go up from above zero, and --sigma be above zero"
            )));
        }
        let counts = [
            ("epochs", self.epochs),
            ("batch", self.batch),
            ("batch-end", self.last_batch),
            ("patch", self.patch),
        ];
        let counts = counts.into_iter().chain([("evaluate-every", self.evaluate_every)]);
        let asked = [("count", self.settings.count), ("test-every", self.settings.test_every)];
        let asked = asked.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (name, value) in counts.chain(asked).chain([("grid-epochs", self.grid_epochs)]) {
            if value == 0 {
                return Err(Error::invalid(format!("--{name} is 0, but it must be 1 or more")));
            }
        }
        if let Rate::Value(rate) = self.rate
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(Error::invalid(format!("--rate is {rate}, but it must be above zero")));
        }
        let mut sorted = self.rates.clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid("--rate-grid needs rates that differ, such as 1e-4,5e-4"));
        }
        if let Some(rate) = sorted.iter().find(|rate| !(rate.is_finite() && **rate > 0.0)) {
            return Err(Error::invalid(format!("--rate-grid holds {rate}, but rates must be above zero")));
        }
        if self.grid_epochs > self.epochs {
            return Err(Error::invalid(format!(
                "--grid-epochs is {}, but the training has only {} epochs",
                self.grid_epochs, self.epochs
            )));
        }
        let shares = [("momentum", self.settings.momentum), ("beta2", self.settings.beta2)];
        for (name, share) in shares.into_iter().filter_map(|(name, share)| Some((name, share?))) {
            if !(0.0..1.0).contains(&share) {
                return Err(Error::invalid(format!("--{name} is {share}, but it must be in [0, 1[")));
            }
        }
        let fresh = self.settings.fresh_noise == Some(true) || self.settings.fresh_places == Some(true);
        if self.persistent && fresh {
            return Err(Error::invalid(
                "persistent u belongs to a patch and its noise: leave out --fresh-noise and --fresh-places",
            ));
        }
        Ok(())
    }

    fn check_activations(&self) -> Result<()> {
        match self.settings.knots {
            None | Some(0 | 2..=MOST_KNOTS) => Ok(()),
            Some(knots) => {
                let reason = format!("--knots is {knots}, but it must be 0, or from 2 to {MOST_KNOTS}");
                Err(Error::invalid(reason))
            }
        }
    }

    /// The same training with one rate of the grid, for `epochs`.
    pub fn with_rate(&self, rate: f64, epochs: usize) -> Self {
        let rate = Rate::Value(rate);
        let settings = Settings {
            rate: Some(rate),
            rate_grid: None,
            grid_epochs: None,
            epochs: Some(epochs),
            ..self.settings.clone()
        };
        Self { rate, epochs, grid_epochs: epochs, rates: PAPER_RATES.to_vec(), settings, ..self.clone() }
    }

    /// The file that repeats the run.
    ///
    /// # Errors
    /// When a path is not text.
    pub fn to_toml(&self) -> Result<String> {
        let text = toml::to_string(&self.settings.table()?)
            .map_err(|e| Error::invalid(format!("the settings cannot be written as TOML: {e}")))?;
        Ok(format!(
            "# proxlift {}; `proxlift train --config` with this file repeats the run.\n{text}",
            env!("CARGO_PKG_VERSION")
        ))
    }

    /// A short name for all settings but paths and threads: equal names, equal trainings on equal pictures.
    pub fn fingerprint(&self) -> Result<String> {
        let none: (Option<PathBuf>, Option<usize>) = (None, None);
        let settings =
            Settings { data: none.0.clone(), test: none.0, threads: none.1, ..self.settings.clone() };
        // FNV-1a: not to be relied on against malice, but the same everywhere and for ever.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = settings.table()?.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, step);
        Ok(format!("{hash:016x}"))
    }
}

fn needed<T>(value: Option<T>, name: &str) -> Result<T> {
    value.ok_or_else(|| Error::invalid(format!("the setting {name} is missing")))
}

/// The rate that was told; a grid alone asks for a grid search.
fn asked_rate(told: &Settings) -> Option<Rate> {
    let grid = told.rate_grid.is_some() || told.grid_epochs.is_some();
    told.rate.or(grid.then_some(Rate::Grid))
}

/// The preset's settings, bent where those that were told leave them no sense.
fn below(told: &Settings, preset: Preset) -> Settings {
    let mut below = preset.settings();
    let trainer = told.trainer.or(below.trainer);
    if trainer != below.trainer {
        let own = Preset::of(trainer.unwrap_or(Trainer::Lb)).settings();
        below.rate = own.rate;
        below.schedule = own.schedule;
        below.momentum = own.momentum;
        below.beta2 = own.beta2;
        below.mu = own.mu;
        below.mu_schedule = own.mu_schedule;
        below.u = own.u;
        below.order = own.order;
        below.metric = own.metric;
        below.inner = own.inner;
    }
    if trainer != Some(Trainer::Lb) {
        return below;
    }
    let plain = told.u == Some(U::Persistent)
        || told.order == Some(Order::Simultaneous)
        || told.metric == Some(Metric::Euclidean)
        || told.theta_steps.is_some()
        || matches!(told.u_step, Some(UStep::Closed | UStep::Backtracked));
    if plain {
        below.rate = Some(Rate::Backtracking);
    }
    if told.rate.or(below.rate) == Some(Rate::Backtracking) {
        below.metric = Some(Metric::Euclidean);
    } else if below.rate == Some(Rate::Backtracking) {
        let rated = Preset::Lifted.settings();
        (below.metric, below.schedule) = (rated.metric, rated.schedule);
        (below.momentum, below.beta2) = (rated.momentum, rated.beta2);
    }
    if matches!(told.metric, Some(Metric::Diagonal | Metric::Kronecker | Metric::GaussNewton))
        && below.rate == Some(Rate::Backtracking)
        && !plain
    {
        let rated = Preset::Lifted.settings();
        (below.rate, below.schedule) = (rated.rate, rated.schedule);
        (below.momentum, below.beta2) = (rated.momentum, rated.beta2);
    }
    if told.u == Some(U::Persistent) {
        (below.fresh_noise, below.fresh_places) = (Some(false), Some(false));
    }
    below
}

/// The schedule in the library's words.
impl From<Schedule> for proxlift::training::Schedule {
    fn from(schedule: Schedule) -> Self {
        match schedule {
            Schedule::Constant => Self::Constant,
            Schedule::Cosine => Self::Cosine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Settings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_written_configuration_gives_itself() {
        for text in [
            "",
            "preset='paper'",
            "trainer='backprop'",
            "preset='adam'\nmetric='kronecker'\nbeta2=0.99",
            "preset='backtracking'",
            "u='persistent'",
            "metric='gauss-newton'\nseed=3",
            "metric='kronecker'\nborder=4\noverstep=4.0",
            "metric='gauss-newton'\nrate='backtracking'\nu-step='backtracked'\ntheta-steps='global'",
            "preset='sgd'\nrate-grid=[1e-4, 5e-4]\ngrid-epochs=2",
        ] {
            let config = Config::resolve(&told(text)).unwrap();
            let again = Config::resolve(&told(&config.to_toml().unwrap())).unwrap();
            assert_eq!(again.settings, config.settings, "{text}");
            assert_eq!(again.fingerprint().unwrap(), config.fingerprint().unwrap());
        }
    }

    #[test]
    fn a_setting_that_would_do_nothing_or_leave_nothing_is_refused() {
        for text in [
            "trainer='backprop'\nmu=1.0",
            "preset='paper'\nmomentum=0.5",
            "preset='backtracking'\nbeta2=0.5",
            "rate=1e-3\nu-step='closed'",
            "rate=1e-3\ntheta-steps='global'",
            "order='simultaneous'\nu-step='closed'",
            "order='simultaneous'\ntheta-steps='layer'",
            "trainer='backprop'\nu-step='closed'",
            "rate=1e-3\nrate-grid=[1e-3]",
            "rate='backtracking'\ngrid-epochs=2",
            "rate-grid=[1e-3, 1e-3]",
            "rate-grid=[]",
            "rate-grid=[-1.0]",
            "grid-epochs=99",
            "border=16",
            "step-scale=0.0",
        ] {
            assert!(Config::resolve(&told(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn told_settings_bend_the_preset() {
        let config = Config::resolve(&told("u='persistent'")).unwrap();
        assert_eq!((config.rate, config.settings.fresh_noise), (Rate::Backtracking, Some(false)));
        let config = Config::resolve(&told("metric='diagonal'\nrate='backtracking'")).unwrap();
        assert_eq!(config.settings.metric, Some(Metric::Diagonal));
        let config = Config::resolve(&told("preset='sgd'\nrate-grid=[1e-4]")).unwrap();
        assert_eq!((config.rate, config.grid_epochs), (Rate::Grid, config.epochs));
        let trial = config.with_rate(1e-4, 3);
        assert_eq!(
            Config::resolve(&trial.settings).unwrap().fingerprint().unwrap(),
            trial.fingerprint().unwrap()
        );
        let config = Config::resolve(&told("preset='paper'\ntrainer='backprop'")).unwrap();
        assert!(matches!(config.rate, Rate::Value(_)) && config.settings.augment == Some(false));
    }
}
