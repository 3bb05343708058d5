//! What is trained for the report: every run with its settings, its name and what it will cost.

use super::scale::Scale;
use crate::chart::Style;
use proxlift::Result;
use proxlift::training::{Auxiliary, Config, Method as Trained, Preset, Schedule, Settings, StepRule};
use serde::Serialize;

/// A part of the report that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Mini-batch stability
    Figure1,
    /// Comparison with SGD
    Figure2,
    /// Visual results
    Figure3,
    /// Scores on the test images
    Table1,
    /// What the paper says, with a verdict
    Claims,
    /// Beyond the paper, in a report of its own: when lifted training pays, for any network
    Lifting,
}

/// Who trains in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Paper,
    Sweep,
    Sgd,
    SgdWide,
    Adam,
    Lifted,
}

impl Method {
    /// All, in the order of the figures.
    pub const ALL: [Self; 6] = [Self::Paper, Self::Sweep, Self::Sgd, Self::SgdWide, Self::Adam, Self::Lifted];

    pub const LB_FB: [Self; 2] = [Self::Paper, Self::Sweep];

    /// Its part of names, what figures call it, its colour there, and its preset of `proxlift train`.
    fn facts(self) -> (&'static str, &'static str, usize, Preset) {
        match self {
            Self::Paper => ("paper", "LB-FB as printed", 0, Preset::Paper),
            Self::Sweep => ("sweep", "LB-FB, reverse sweep", 4, Preset::Backtracking),
            Self::Sgd => ("sgd", "SGD, the paper's grid", 1, Preset::Sgd),
            Self::SgdWide => ("sgd", "SGD, wider grid", 5, Preset::Sgd),
            Self::Adam => ("adam", "Adam", 2, Preset::Adam),
            Self::Lifted => ("lifted", "lifted, diagonal metric", 3, Preset::Lifted),
        }
    }

    pub fn slug(self) -> &'static str {
        self.facts().0
    }

    pub fn label(self) -> &'static str {
        self.facts().1
    }

    pub fn style(self) -> Style {
        Style::kind(self.facts().2)
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Experiment {
    /// This batch size on a few images.
    Batch(usize),
    /// Persistent `u`, where the few images are one batch.
    Energy,
    /// All images at a depth; SGD has a run for each rate of its grid.
    Compare { depth: usize, rate: Option<f64> },
}

#[derive(Clone, Debug)]
pub struct Run {
    /// The name of its folder, but for the fingerprint.
    pub name: String,
    pub method: Method,
    pub experiment: Experiment,
    pub config: Config,
    /// About how long it takes, in visits of a patch to a layer by back-propagation.
    pub cost: f64,
}

/// How much longer a visit takes by LB-FB with backtracking than by back-propagation, evaluation included.
const BACKTRACKING: f64 = 7.0;

impl Run {
    fn new(method: Method, experiment: Experiment, seed: u64, told: Settings) -> Result<Self> {
        let what = match experiment {
            Experiment::Batch(size) => format!("batch-{size}"),
            Experiment::Energy => "energy".into(),
            Experiment::Compare { depth, rate: None } => format!("k{depth}"),
            Experiment::Compare { depth, rate: Some(rate) } => format!("k{depth}-rate-{rate:e}"),
        };
        let name = format!("{}-{what}-seed-{seed}", method.slug());
        let preset = Some(method.facts().3);
        let config = Config::resolve(&Settings { preset, seed: Some(seed), ..told })?;
        let visits = config.plan.epochs * config.settings.count.unwrap_or(0) * config.architecture.depth;
        let factor = if matches!(config.method, Trained::LbFb(_)) { BACKTRACKING } else { 1.0 };
        Ok(Self { name, method, experiment, cost: factor * visits as f64, config })
    }
}

/// All runs that the `parts` of the report need, for every seed.
pub fn runs(scale: &Scale, parts: &[Part], seeds: u64) -> Result<Vec<Run>> {
    let needs = |some: &[Part]| parts.iter().any(|part| some.contains(part));
    let mut wanted = Vec::new();
    if needs(&[Part::Figure1, Part::Claims]) {
        let pairs = Method::LB_FB.into_iter().flat_map(|m| scale.batches.iter().map(move |b| (m, *b)));
        wanted.extend(pairs.map(|(method, size)| (method, Experiment::Batch(size), few(scale, size))));
    }
    if needs(&[Part::Claims]) {
        let told = Settings { u: Some(Auxiliary::Persistent), ..few(scale, scale.few) };
        wanted.extend(Method::LB_FB.map(|method| (method, Experiment::Energy, told.clone())));
    }
    for &depth in scale.depths {
        let shown = depth == scale.deepest() && needs(&[Part::Figure3, Part::Table1]);
        if shown || needs(&[Part::Figure2, Part::Claims]) {
            wanted.extend(comparison(scale, depth));
        }
    }
    let all = (0..seeds).flat_map(|seed| wanted.iter().map(move |run| (seed, run)));
    all.map(|(seed, (method, experiment, told))| Run::new(*method, *experiment, seed, told.clone())).collect()
}

fn few(scale: &Scale, batch: usize) -> Settings {
    Settings {
        count: Some(scale.few),
        epochs: Some(scale.few_epochs),
        batch: Some(batch),
        ..common(scale, scale.depths[0])
    }
}

fn common(scale: &Scale, depth: usize) -> Settings {
    Settings {
        depth: Some(depth),
        features: Some(scale.features),
        patch: Some(scale.patch),
        count: Some(scale.images),
        epochs: Some(scale.epochs),
        ..Settings::default()
    }
}

/// All methods at one depth. LB-FB and SGD see the same patches with the same noise in batches of the same size; Adam
/// and the lifted preset are as `proxlift train` has them.
fn comparison(scale: &Scale, depth: usize) -> Vec<(Method, Experiment, Settings)> {
    let compare = |rate| Experiment::Compare { depth, rate };
    let told = Settings { batch: Some(scale.batch), ..common(scale, depth) };
    let with_rate = |rate| Settings {
        rate: Some(StepRule::Rate(rate)),
        schedule: Some(Schedule::Constant),
        fresh_noise: Some(false),
        fresh_places: Some(false),
        augment: Some(false),
        ..told.clone()
    };
    let lb_fb = Method::LB_FB.into_iter().map(|method| (method, compare(None), told.clone()));
    let sgd = scale.all_rates().map(|rate| (Method::Sgd, compare(Some(rate)), with_rate(rate)));
    let others = [Method::Adam, Method::Lifted].map(|method| (method, compare(None), common(scale, depth)));
    lb_fb.chain(sgd).chain(others).collect()
}
