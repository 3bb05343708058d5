//! The settings of a training, each of them a flag and a key of the configuration file.

use super::preset::Preset;
use crate::flags::{number, range};
use proxlift::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The training algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trainer {
    /// Lifted Bregman: the secant of each activation where back-propagation has its tangent
    Lb,
    /// Back-propagation
    Backprop,
}

/// How the auxiliary variables start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum U {
    /// From the network's own forward pass, at every visit
    Anchored,
    /// From the last visit to the sample; needs memory for all samples
    Persistent,
}

/// The order of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// From the last layer to the first
    Sweep,
    /// All parameters at once, then all auxiliary variables
    Simultaneous,
}

/// The metric of the parameter steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// None: plain gradients
    Euclidean,
    /// One scale for each weight
    Diagonal,
    /// One scale for each weight, in the basis where the entries of a layer's gradient are uncorrelated
    Kronecker,
    /// A matrix for each layer
    GaussNewton,
}

/// What the filters are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filters {
    /// Nothing
    Free,
    /// The sum of each filter is zero, so that it sees details and not brightness
    ZeroMean,
}

/// How the filters start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Drawn from --seed (Glorot)
    Random,
    /// Cosines from low to high frequencies: a shrinkage of cosine coefficients to begin with
    Cosines,
}

/// What the network is unrolled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unrolling {
    /// Dual forward-backward, as the paper has it
    DualForwardBackward,
    /// Its inertial version: momentum on the features
    Inertial,
    /// Chambolle-Pock: memory and extrapolation on the image
    ChambollePock,
    /// Chambolle-Pock accelerated by strong convexity
    #[serde(alias = "strongly-convex")]
    #[value(alias = "strongly-convex")]
    ChambollePockAccelerated,
}

/// How long the steps of the auxiliary variables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UStep {
    /// The inverse of the known Lipschitz constant, 1/2: the energy cannot rise
    Closed,
    /// Searched for, for each sample: the energy cannot rise
    Backtracked,
    /// To the minimiser of the linearised block: a step of 1, which lets the whole error through to the lower layers
    Minimiser,
}

/// Whether layers share a parameter step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThetaSteps {
    /// A step for each layer
    Layer,
    /// One step for all layers, as the paper prints it
    Global,
}

/// How the rate goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// The same throughout
    Constant,
    /// Half a cosine, down to zero
    Cosine,
}

/// A rate, or steps found by backtracking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Rate {
    /// Steps of this length, in the metric.
    Value(f64),
    /// The longest steps that keep the majorant.
    Backtracking,
    /// Every rate of a grid; the one with the least training loss wins.
    Grid,
}

const RATES: &str = "the rate is a number such as 4e-3, or backtracking, or grid";

impl TryFrom<Value> for Rate {
    type Error = String;
    fn try_from(value: Value) -> std::result::Result<Self, String> {
        match value {
            Value::Float(rate) => Ok(Self::Value(rate)),
            Value::Integer(rate) => Ok(Self::Value(rate as f64)),
            Value::String(text) => text.parse(),
            _ => Err(RATES.into()),
        }
    }
}

impl From<Rate> for Value {
    fn from(rate: Rate) -> Self {
        match rate {
            Rate::Value(rate) => Self::Float(rate),
            Rate::Backtracking => Self::String("backtracking".into()),
            Rate::Grid => Self::String("grid".into()),
        }
    }
}

impl std::str::FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "backtracking" => Ok(Self::Backtracking),
            "grid" => Ok(Self::Grid),
            _ => text.parse().map(Self::Value).map_err(|_| RATES.to_string()),
        }
    }
}

/// Settings that were told; the others come from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, clap::Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The settings to start from [default: lifted, or that of --trainer]
    #[arg(long)]
    pub preset: Option<Preset>,
    /// A folder of clean pictures to train on [default: 1000 built-in procedural pictures]
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub data: Option<PathBuf>,
    /// A folder of clean pictures for the scores at the end [default: 12 built-in ones]
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub test: Option<PathBuf>,
    /// The side of the square patches
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub patch: Option<usize>,
    /// Patches in an epoch [default: one for each picture, but 1000 at least]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub count: Option<usize>,
    /// The noise level, where white is 1
    #[arg(long, value_name = "S", value_parser = number, allow_negative_numbers = true, help_heading = "Data")]
    pub sigma: Option<f64>,
    /// Draw the noise level of each patch between two, such as 0.02,0.3, at the contrast where it becomes --sigma: for
    /// a network whose thresholds scale with the noise, good at all levels between
    #[arg(long, value_name = "A,B", value_parser = range, allow_negative_numbers = true, help_heading = "Data")]
    pub sigma_range: Option<[f64; 2]>,
    /// Fresh noise at every visit to a patch
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Data")]
    pub fresh_noise: Option<bool>,
    /// Cut the patch at a fresh place at every visit
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Data")]
    pub fresh_places: Option<bool>,
    /// Turn and mirror patches at random
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Data")]
    pub augment: Option<bool>,
    /// Layers K
    #[arg(long, value_name = "K", help_heading = "Network")]
    pub depth: Option<usize>,
    /// Features J of each layer
    #[arg(long, value_name = "J", help_heading = "Network")]
    pub features: Option<usize>,
    /// The side of the kernels, odd
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub kernel: Option<usize>,
    /// 1 for grey, 3 for RGB
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub channels: Option<usize>,
    /// The threshold that every feature starts with
    #[arg(long, value_name = "X", value_parser = number, allow_negative_numbers = true, help_heading = "Network")]
    pub lambda: Option<f64>,
    /// Learn the activations of every layer and feature, piecewise linear with N knots on each side, 2 or more; 0 is the
    /// clip at --lambda, fixed [default: 0]
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub knots: Option<usize>,
    /// Go on from the parameters of a model, which must be such a network, but for the border [default: start anew]
    #[arg(long, value_name = "MODEL", help_heading = "Network", conflicts_with = "start")]
    pub from: Option<PathBuf>,
    /// How the filters start [default: random]
    #[arg(long, help_heading = "Network")]
    pub start: Option<Start>,
    /// The algorithm that the network is unrolled from [default: dual-forward-backward]
    #[arg(long, help_heading = "Network")]
    pub unrolling: Option<Unrolling>,
    /// Take dual steps so many times as long as the algorithm's convergence allows: a network that stops after a few layers
    /// gets further with long ones, but is no longer proven to be stable [default: 1]
    #[arg(long, value_name = "X", help_heading = "Network")]
    #[serde(alias = "overstep")]
    pub step_scale: Option<f64>,
    /// Keep the estimate in [0, 1] in every layer
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Network")]
    pub bounded: Option<bool>,
    /// Pixels at the edge of a patch that are there to be seen and whose error does not count; around a picture, so many
    /// mirrored ones are put [default: 0]
    #[arg(long, value_name = "N", help_heading = "Network")]
    pub border: Option<usize>,
    /// One operator and one activation for all layers
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Network")]
    pub tied: Option<bool>,
    /// A constraint on the filters
    #[arg(long, alias = "filters", help_heading = "Network")]
    #[serde(alias = "filters")]
    pub filter_constraint: Option<Filters>,
    /// The training algorithm
    #[arg(long, help_heading = "Training")]
    pub trainer: Option<Trainer>,
    /// Passes over the patches
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub epochs: Option<usize>,
    /// Patches in a mini-batch
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub batch: Option<usize>,
    /// Patches in a mini-batch of the last epoch: from --batch on, batches grow by the same factor each epoch, which
    /// settles the noise of small ones [default: --batch]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub batch_end: Option<usize>,
    /// The rate at the start, or `backtracking`, or `grid`: train with each rate of a grid, keep the least loss
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Training")]
    pub rate: Option<Rate>,
    /// The rates of the grid, such as 1e-4,5e-4 [default: the paper's, 1e-6 to 5e-4]
    #[arg(long, value_name = "X,..", value_delimiter = ',', allow_negative_numbers = true)]
    #[arg(help_heading = "Training")]
    pub rate_grid: Option<Vec<f64>>,
    /// Epochs for each rate of the grid; if fewer than --epochs, the best then starts anew [default: --epochs]
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub grid_epochs: Option<usize>,
    /// How the rate goes on
    #[arg(long, help_heading = "Training")]
    pub schedule: Option<Schedule>,
    /// Momentum: how much of the last direction is kept, in [0, 1[
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Training")]
    #[serde(alias = "inertia")]
    pub momentum: Option<f64>,
    /// How much is kept of the mean of squares in the diagonal and the Kronecker metric, in [0, 1[
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Training")]
    pub beta2: Option<f64>,
    /// The metric of the parameter steps
    #[arg(long, help_heading = "Training")]
    pub metric: Option<Metric>,
    /// Where weights, patches, noise and order come from
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub seed: Option<u64>,
    /// The weight of the loss in the energy
    #[arg(long, value_name = "X", value_parser = number, allow_negative_numbers = true)]
    #[arg(help_heading = "Lifted Bregman")]
    pub mu: Option<f64>,
    /// How mu goes on
    #[arg(long, help_heading = "Lifted Bregman")]
    pub mu_schedule: Option<Schedule>,
    /// How the auxiliary variables u start
    #[arg(long, help_heading = "Lifted Bregman")]
    pub u: Option<U>,
    /// The order of the blocks
    #[arg(long, help_heading = "Lifted Bregman")]
    pub order: Option<Order>,
    /// Under backtracking, how long the steps of u are [default: closed]
    #[arg(long, help_heading = "Lifted Bregman")]
    pub u_step: Option<UStep>,
    /// Under backtracking, whether layers share a step [default: layer]
    #[arg(long, help_heading = "Lifted Bregman")]
    pub theta_steps: Option<ThetaSteps>,
    /// Iterations on a batch before the next
    #[arg(long, value_name = "N", help_heading = "Lifted Bregman")]
    pub inner: Option<usize>,
    /// Score the network every N epochs
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub evaluate_every: Option<usize>,
    /// Score it on the test set too, every N epochs, in history.jsonl [default: only at the end]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub test_every: Option<usize>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub threads: Option<usize>,
    /// The run's folder, new or empty [default: runs/NAME-1, or the next free number]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,
}

impl Settings {
    /// The settings of a file.
    ///
    /// # Errors
    /// When it cannot be read or holds anything that is no setting.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        toml::from_str(&text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let said = error.message().replace("unknown field", "unknown key");
            let said = match said.split_once(", expected one of") {
                Some((said, _)) if said.starts_with("unknown key") => {
                    format!("{said}: the keys are the long flags of `proxlift train --help`")
                }
                _ => said,
            };
            Error::file(path, format!("line {line}: {said}"))
        })
    }

    /// As a table of what was told.
    ///
    /// # Errors
    /// When a path is not text.
    pub fn table(&self) -> Result<Table> {
        Table::try_from(self)
            .map_err(|e| Error::invalid(format!("the settings cannot be written as TOML: {e}")))
    }

    /// These settings, and where they are silent those `below`.
    ///
    /// # Errors
    /// When a path is not text.
    pub fn over(&self, below: &Self) -> Result<Self> {
        let mut table = below.table()?;
        table.extend(self.table()?);
        table.try_into().map_err(|e| Error::invalid(format!("the settings contradict each other: {e}")))
    }
}
