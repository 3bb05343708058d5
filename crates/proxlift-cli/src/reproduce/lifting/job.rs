//! One training of these experiments, and what is kept of it.

use super::digits::{self, DigitSet};
use super::method::Method;
use super::point::Point;
use super::{denoising, digits::Digits, relatives::Relative};
use crate::files;
use proxlift::training::{Settings, fingerprint};
use proxlift::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What is learned, from what.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A general network on digits.
    Digits(Digits),
    /// The same by a relative of lifted Bregman.
    Relative(Digits, Relative),
    /// The denoiser on patches.
    Denoising(Box<Settings>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The job in a word: another one with the same name is not taken for it.
    fingerprint: String,
    pub points: Vec<Point>,
    /// Whether it left the finite numbers.
    pub diverged: bool,
}

pub struct Job {
    pub experiment: &'static str,
    /// Which of the cases of the experiment it belongs to.
    pub case: String,
    pub method: Method,
    pub rate: f64,
    pub seed: u64,
    pub task: Task,
    /// About how long it takes, in seconds.
    pub cost: f64,
    outcome: OnceLock<Outcome>,
}

impl Job {
    pub fn new(
        experiment: &'static str,
        case: &str,
        (method, rate): (Method, f64),
        seed: u64,
        task: Task,
    ) -> Self {
        let cost = match &task {
            Task::Digits(task) | Task::Relative(task, _) => task.cost(),
            Task::Denoising(settings) => denoising::cost(settings),
        };
        Self { experiment, case: case.into(), method, rate, seed, task, cost, outcome: OnceLock::new() }
    }

    /// Who trains.
    pub fn who(&self) -> String {
        match &self.task {
            Task::Relative(_, relative) => relative.slug().to_string(),
            _ => self.method.slug(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        let who = self.who();
        let case: String = self.case.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
        format!("{}-{case}-{who}-rate-{:e}-seed-{}", self.experiment, self.rate, self.seed)
    }

    /// Settings in a word.
    fn fingerprint(&self, data: &str) -> String {
        let text = format!("{data} {:?} {} {} {:?}", self.method, self.rate, self.seed, self.task);
        fingerprint(&text)
    }

    pub fn path(&self, runs: &Path, data: &str) -> PathBuf {
        runs.join(format!("{}-{}.json", self.name(), &self.fingerprint(data)[..8]))
    }

    /// Takes over what an earlier session has finished.
    pub fn recall(&self, runs: &Path, data: &DigitSet) {
        let found: Option<Outcome> = files::recall(&self.path(runs, &data.fingerprint));
        if let Some(outcome) =
            found.filter(|outcome| outcome.fingerprint == self.fingerprint(&data.fingerprint))
        {
            let _ = self.outcome.set(outcome);
        }
    }

    pub fn is_done(&self) -> bool {
        self.outcome.get().is_some()
    }

    pub fn outcome(&self) -> &Outcome {
        self.outcome.get().expect("only what is done is reported on")
    }

    /// Trains, and keeps what came out.
    pub fn work(&self, runs: &Path, data: &DigitSet) -> Result<()> {
        let trained = match &self.task {
            Task::Digits(task) => {
                digits::train(task, data, self.seed, |network| task.descent(network, self.method, self.rate))
            }
            Task::Relative(task, relative) => digits::train(task, data, self.seed, |network| {
                relative.trainer(network, self.rate, data.samples(task))
            }),
            Task::Denoising(settings) => denoising::train(settings, self.method, self.rate, self.seed),
        };
        let (points, diverged) = match trained {
            Ok(points) => (points, false),
            Err(Error::Diverged { .. }) => (Vec::new(), true),
            Err(error) => return Err(error),
        };
        let fingerprint = self.fingerprint(&data.fingerprint);
        let outcome = Outcome { fingerprint, points, diverged };
        files::keep(&self.path(runs, &data.fingerprint), &outcome)?;
        self.outcome.get_or_init(|| outcome);
        Ok(())
    }
}
