//! What is to be trained: every run with its settings, its name and what it will cost.

use super::scale::Scale;
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
}

impl Part {
    /// All, in the order of the report.
    pub const ALL: [Self; 5] = [Self::Figure1, Self::Figure2, Self::Figure3, Self::Table1, Self::Claims];
}

/// Who trains in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// LB-FB as the paper prints it: the preset `paper`.
    Paper,
    /// LB-FB in a reverse sweep: the preset `backtracking`.
    Sweep,
    /// The paper's baseline, with the best rate of the paper's grid.
    Sgd,
    /// The same with the best rate of a wider grid.
    SgdWide,
    /// The usual baseline today.
    Adam,
    /// Lifted Bregman in the diagonal metric: the preset `lifted`.
    Lifted,
}

impl Method {
    /// All, in the order of the figures.
    pub const ALL: [Self; 6] = [Self::Paper, Self::Sweep, Self::Sgd, Self::SgdWide, Self::Adam, Self::Lifted];

    /// The two forms of LB-FB.
    pub const LB_FB: [Self; 2] = [Self::Paper, Self::Sweep];

    /// What figures call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Paper => "LB-FB as printed",
            Self::Sweep => "LB-FB, reverse sweep",
            Self::Sgd => "SGD, the paper's grid",
            Self::SgdWide => "SGD, wider grid",
            Self::Adam => "Adam",
            Self::Lifted => "lifted, diagonal metric",
        }
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "experiment")]
pub enum Role {
    /// LB-FB with this batch size on a few images.
    Batch {
        /// Which form of it.
        method: Method,
        /// The batch size.
        size: usize,
    },
    /// A method at a depth, on all images; SGD has a run for each rate of its grid.
    Compare {
        /// Who trains.
        method: Method,
        /// `K`.
        depth: usize,
        /// The rate, where it is searched for.
        rate: Option<f64>,
    },
    /// LB-FB with persistent `u`, where the few images are one batch.
    Energy {
        /// Which form of it.
        method: Method,
    },
}

impl Role {
    /// Who trains.
    pub fn method(self) -> Method {
        match self {
            Self::Batch { method, .. } | Self::Compare { method, .. } | Self::Energy { method } => method,
        }
    }
}

/// One training.
#[derive(Clone, Debug)]
pub struct Run {
    /// The name of its folder, but for the fingerprint.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Where everything random comes from.
    pub seed: u64,
    /// All settings.
    pub config: Config,
    /// About how long it takes, in visits of a patch to a layer by back-propagation.
    pub cost: f64,
}

/// How much longer a visit takes by LB-FB with backtracking than by back-propagation, evaluation included.
const BACKTRACKING: f64 = 7.0;

impl Run {
    fn new(name: &str, role: Role, seed: u64, preset: Preset, told: Settings) -> Result<Self> {
        let config = Config::resolve(&Settings { preset: Some(preset), seed: Some(seed), ..told })?;
        let visits = config.plan.epochs * config.settings.count.unwrap_or(0) * config.architecture.depth;
        let factor = if matches!(config.method, Trained::LbFb(_)) { BACKTRACKING } else { 1.0 };
        Ok(Self { name: format!("{name}-seed-{seed}"), role, seed, cost: factor * visits as f64, config })
    }

    /// Whether test images are scored along the way.
    pub fn is_scored(&self) -> bool {
        matches!(self.role, Role::Compare { .. })
    }
}

/// All runs that the `parts` of the report need, for every seed.
///
/// # Errors
/// When a preset and the experiment's settings contradict each other.
pub fn runs(scale: &Scale, parts: &[Part], seeds: u64) -> Result<Vec<Run>> {
    let needs = |some: &[Part]| parts.iter().any(|part| some.contains(part));
    let mut runs = Vec::new();
    for seed in 0..seeds {
        if needs(&[Part::Figure1, Part::Claims]) {
            for (method, &size) in
                Method::LB_FB.iter().flat_map(|m| scale.batches.iter().map(move |b| (*m, b)))
            {
                let name = format!("{}-batch-{size}", lb_fb(method).0);
                let role = Role::Batch { method, size };
                runs.push(Run::new(&name, role, seed, lb_fb(method).1, few(scale, size))?);
            }
        }
        if needs(&[Part::Claims]) {
            for method in Method::LB_FB {
                let told = Settings { u: Some(Auxiliary::Persistent), ..few(scale, scale.few) };
                let name = format!("{}-energy", lb_fb(method).0);
                runs.push(Run::new(&name, Role::Energy { method }, seed, lb_fb(method).1, told)?);
            }
        }
        let all = needs(&[Part::Figure2, Part::Claims]);
        for &depth in &scale.depths {
            if all || (depth == scale.deepest() && needs(&[Part::Figure3, Part::Table1])) {
                comparison(scale, depth, seed, &mut runs)?;
            }
        }
    }
    Ok(runs)
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

/// What a form of LB-FB is called in names of runs, and its preset.
fn lb_fb(method: Method) -> (&'static str, Preset) {
    match method {
        Method::Paper => ("paper", Preset::Paper),
        _ => ("sweep", Preset::Backtracking),
    }
}

/// All methods at one depth. LB-FB and SGD see the same patches with the same noise in batches of the same size; Adam
/// and the lifted preset are as `proxlift train` has them.
fn comparison(scale: &Scale, depth: usize, seed: u64, runs: &mut Vec<Run>) -> Result<()> {
    let role = |method, rate| Role::Compare { method, depth, rate };
    let told = Settings { batch: Some(scale.batch), ..common(scale, depth) };
    for method in Method::LB_FB {
        let (name, preset) = lb_fb(method);
        runs.push(Run::new(&format!("{name}-k{depth}"), role(method, None), seed, preset, told.clone())?);
    }
    for &rate in scale.rates.iter().chain(&scale.wider_rates) {
        let told = Settings {
            rate: Some(StepRule::Rate(rate)),
            schedule: Some(Schedule::Constant),
            fresh_noise: Some(false),
            fresh_places: Some(false),
            augment: Some(false),
            ..told.clone()
        };
        let name = format!("sgd-k{depth}-rate-{rate:e}");
        runs.push(Run::new(&name, role(Method::Sgd, Some(rate)), seed, Preset::Sgd, told)?);
    }
    let others = [("adam", Method::Adam, Preset::Adam), ("lifted", Method::Lifted, Preset::Lifted)];
    for (name, method, preset) in others {
        let name = format!("{name}-k{depth}");
        runs.push(Run::new(&name, role(method, None), seed, preset, common(scale, depth))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_plan_has_every_run_of_the_paper_once() {
        let all = runs(&Scale::full(), &Part::ALL, 2).unwrap();
        assert_eq!(all.len(), 2 * (2 * 7 + 2 + 3 * (2 + 6 + 5 + 2)));
        let mut names: Vec<_> = all.iter().map(|run| &run.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn a_part_trains_what_it_shows_and_no_more() {
        let count = |part| runs(&Scale::full(), &[part], 1).unwrap().len();
        assert_eq!((count(Part::Figure1), count(Part::Figure2)), (14, 45));
        assert_eq!((count(Part::Figure3), count(Part::Table1)), (15, 15));
    }

    #[test]
    fn lb_fb_and_sgd_train_on_the_same_patches() {
        let all = runs(&Scale::full(), &[Part::Figure2], 1).unwrap();
        for run in all.iter().filter(|run| {
            run.name.starts_with("paper") || run.name.starts_with("sweep") || run.name.starts_with("sgd")
        }) {
            let settings = &run.config.settings;
            assert_eq!((settings.fresh_noise, settings.fresh_places), (Some(false), Some(false)));
            assert_eq!((settings.augment, settings.batch), (Some(false), Some(50)));
        }
    }
}
