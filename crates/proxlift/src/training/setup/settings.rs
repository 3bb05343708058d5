//! The settings of a training: one list for flags, configuration files and other languages.
//!
//! Adding one means adding a field here; front ends build flags and keyword arguments from [`Settings::list`].

use super::{Algorithm, FilterConstraint, Preset, Secant, Start, StepRule};
use crate::dataset::PatchNoise;
use crate::engine::SampleLoss;
use crate::named::{Name, Named, first_paragraph, from_name};
use crate::training::{Auxiliary, BlockOrder, Metric, Schedule, ThetaSteps, UStep};
use crate::{Error, Result, network::Unrolling};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// What the value of a setting is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number, for people also a fraction such as 25/255.
    Number,
    /// A whole number.
    Count,
    /// Yes or no.
    Switch,
    /// One of these.
    Choice(&'static [Name]),
    /// Two numbers.
    Range,
    /// Numbers.
    List,
    /// A number or a word: see [`StepRule`].
    StepRule,
    /// A file or a folder.
    Path,
}

/// A type that settings have.
trait HasKind {
    fn kind() -> Kind;
}

impl<T: Named> HasKind for T {
    fn kind() -> Kind {
        Kind::Choice(T::names())
    }
}

macro_rules! kinds {
    ($($type:ty: $kind:ident),+) => {
        $(impl HasKind for $type {
            fn kind() -> Kind {
                Kind::$kind
            }
        })+
    };
}
kinds! { f64: Number, usize: Count, u64: Count, bool: Switch, [f64; 2]: Range, Vec<f64>: List, StepRule: StepRule, PathBuf: Path }

/// One of the [`Settings`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The name of the field.
    pub field: &'static str,
    /// What it is about: `Data`, `Network`, ..
    pub group: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What its value is called in help texts, if there is a word for it.
    pub value: Option<&'static str>,
    /// A name that it had before, which is still understood.
    pub alias: Option<&'static str>,
    doc: &'static [&'static str],
}

/// The settings that most people need.
const COMMON: [&str; 12] = [
    "data", "test", "sigma", "channels", "depth", "features", "preset", "trainer", "epochs", "rate", "seed",
    "out",
];

impl Setting {
    /// Its name in flags and files: that of the field with hyphens.
    pub fn name(&self) -> String {
        self.field.replace('_', "-")
    }

    /// What it means.
    pub fn help(&self) -> String {
        first_paragraph(self.doc)
    }

    /// Whether it is one of the few that most people need.
    pub fn is_common(&self) -> bool {
        COMMON.contains(&self.field)
    }
}

macro_rules! settings {
    ($($group:literal {
        $($(#[doc = $doc:literal])+ $field:ident $(| $alias:literal)?: $type:ty $(= $value:literal)?,)+
    })+) => {
        /// Settings of a training that were given; the others come from the [`Preset`].
        ///
        /// ```
        /// use proxlift::training::{Preset, Settings};
        ///
        /// let mine = Settings { depth: Some(10), ..Settings::default() };
        /// let all = mine.over(Preset::Lifted.settings());
        /// assert_eq!((all.depth, all.features), (Some(10), Some(16)));
        /// let names: Vec<String> = Settings::list().iter().map(|setting| setting.name()).collect();
        /// assert!(names.contains(&"sigma-range".to_string()));
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct Settings {
            $($(
                $(#[doc = $doc])+
                $(#[serde(alias = $alias)])?
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )+)+
        }

        impl Settings {
            /// All settings that there are, group by group.
            pub fn list() -> Vec<Setting> {
                vec![$($(Setting {
                    field: stringify!($field),
                    group: $group,
                    kind: <$type as HasKind>::kind(),
                    value: None $(.or(Some($value)))?,
                    alias: None $(.or(Some($alias)))?,
                    doc: &[$($doc),+],
                },)+)+]
            }

            /// Those that are given.
            pub fn given(&self) -> impl Iterator<Item = Setting> {
                let given = [$($(self.$field.is_some()),+),+];
                Self::list().into_iter().zip(given).filter_map(|(setting, given)| given.then_some(setting))
            }

            /// These settings, and where one is not given, that of `below`.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                Self { $($($field: self.$field.or(below.$field)),+),+ }
            }
        }
    };
}

settings! {
    "Data" {
        /// Folder of clean pictures to train on [default: 1000 built-in pictures].
        data: PathBuf = "DIR",
        /// Folder of noisy pictures with the same names as those of --data, which may be clean, or noisy in another way.
        /// Without --data the training has noisy pictures alone.
        noisy: PathBuf = "DIR",
        /// Folder of clean pictures for the scores at the end [default: 12 built-in pictures].
        test: PathBuf = "DIR",
        /// Noise level, where white is 1.
        sigma: f64 = "S",
        /// Range that the noise level of each patch is drawn from, such as 0.02,0.3. Patches are scaled to the contrast at
        /// which their noise has the level --sigma: for a network that is used at all levels in between.
        sigma_range: [f64; 2],
        /// Noise to train for [default: white, or own with --noisy].
        noise: PatchNoise,
        /// Side of the square patches.
        patch: usize,
        /// Patches in an epoch [default: one for each picture, but at least 1000].
        count: usize,
        /// Draw new noise whenever a patch is visited.
        fresh_noise: bool,
        /// Cut the patch at a new place whenever it is visited.
        fresh_places: bool,
        /// Rotate and flip patches at random.
        augment: bool,
    }
    "Network" {
        /// Channels of the pictures: 1 for grey, 3 for RGB.
        channels: usize = "C",
        /// Stride of the convolutions: with 2, features stand for two by two pixels and kernels reach twice as far, so that a
        /// layer costs a quarter for as many weights [default: 1].
        stride: usize,
        /// Number of layers K.
        depth: usize = "K",
        /// Number of features J of each layer.
        features: usize = "J",
        /// Side of the convolution kernels, odd.
        kernel: usize,
        /// Start from a model, `best` or `small` (built in) or a file, instead of a new network. Its architecture is taken
        /// over (kernels may grow, by --kernel); its thresholds are adapted to --sigma.
        from: PathBuf = "MODEL",
        /// Filters to start from [default: random].
        start: Start,
        /// Threshold that all features start with.
        lambda: f64,
        /// Learn the activation of every layer and feature: piecewise linear, with N knots on each side (at least 2). 0 is
        /// the fixed clip at --lambda [default: 0].
        knots: usize,
        /// Algorithm that the network is unrolled from [default: dual-forward-backward].
        unrolling: Unrolling,
        /// Multiply the dual steps by X. A network that stops after a few layers gets further with steps longer than
        /// convergence allows, but is no longer proven to be stable [default: 1].
        step_scale | "overstep": f64,
        /// Keep the estimate in [0, 1] in every layer.
        bounded: bool,
        /// Pixels at the edge of a patch that the network sees but whose error does not count; pictures are padded by as
        /// many, mirrored [default: 0].
        border: usize,
        /// Share one operator and one activation between all layers.
        tied: bool,
        /// Learn a convex regulariser: layers are tied, and trained at the fixed point of infinitely many of them, where the
        /// network is the proximity operator of a convex function. --depth is the number of layers of the file.
        convex: bool,
        /// Learn a weakly convex regulariser, as --convex does a convex one: it may be as concave as -X/2 ||x||^2, with X below 1, so
        /// that what is minimised to remove noise stays convex.
        weakly_convex: f64 = "X",
        /// Train for a Lipschitz constant of at most X, at least 1, that `proxlift inspect` proves from the file: for 1, a network
        /// that enlarges no difference between two pictures. Layers share one operator.
        lipschitz: f64 = "X",
        /// Learn the synthesis of every layer by itself, which is the adjoint of its analysis else: twice as many weights for the
        /// same work.
        own_synthesis: bool,
        /// Constraint on the filters.
        filter_constraint | "filters": FilterConstraint,
    }
    "Training" {
        /// Settings to start from [default: lifted, or that of --trainer].
        preset: Preset,
        /// Training algorithm.
        trainer: Algorithm,
        /// How the error of a patch counts [default: squared, or norm with --convex].
        loss: SampleLoss,
        /// Learn first what another model, built in or a file, makes of the noisy patches, then the clean ones: short trainings get
        /// further.
        teacher: PathBuf = "MODEL",
        /// Share of the epochs that the teacher has [default: 0.7].
        taught: f64,
        /// Passes over the patches.
        epochs: usize,
        /// Patches in a mini-batch.
        batch: usize,
        /// Patches in a mini-batch of the last epoch: batches grow by the same factor each epoch, which averages out the
        /// noise of small ones [default: --batch].
        batch_end: usize,
        /// Learning rate at the start, or `backtracking`, or `grid` to try several and keep the one with the least loss.
        rate: StepRule,
        /// Rates of the grid, such as 1e-4,5e-4 [default: the paper's, 1e-6 to 5e-4].
        rate_grid: Vec<f64>,
        /// Epochs for each rate of the grid; if fewer than --epochs, the best then starts again [default: --epochs].
        grid_epochs: usize,
        /// Learning-rate schedule.
        schedule: Schedule,
        /// Momentum: share of the last direction that is kept, at least 0 and below 1.
        momentum | "inertia": f64,
        /// Decay of the mean of squares in the diagonal and Kronecker metrics, at least 0 and below 1.
        beta2: f64,
        /// Metric of the parameter steps.
        metric: Metric,
        /// Seed of weights, patches, noise and order.
        seed: u64,
    }
    "Lifted Bregman" {
        /// Weight of the loss in the energy.
        mu: f64,
        /// Schedule of mu.
        mu_schedule: Schedule,
        /// With a rate: the secant of the activations [default: one-sided].
        secant: Secant,
        /// Where the auxiliary variables u start.
        u: Auxiliary,
        /// Order of the blocks.
        order: BlockOrder,
        /// With backtracking: how long the steps of u are [default: closed].
        u_step: UStep,
        /// With backtracking: whether layers share a step [default: layer].
        theta_steps: ThetaSteps,
        /// Iterations on a batch before the next.
        inner: usize,
    }
    "Run" {
        /// Folder of the run, new or empty [default: runs/NAME-1, or the next free number].
        out: PathBuf = "DIR",
        /// Score the network every N epochs.
        evaluate_every: usize,
        /// Score it on the test pictures too, every N epochs [default: only at the end].
        test_every: usize,
        /// Threads to use [default: all cores].
        threads: usize,
    }
}

pub(super) const LIFTED_BREGMAN: &str = "Lifted Bregman";

impl Settings {
    /// Settings by name, as a file or keyword arguments give them.
    /// Fails when a name is no setting, or a value is not of its kind.
    pub fn from_map(mut map: Map<String, Value>) -> Result<Self> {
        // In version 0.1 the trainer was one of these presets.
        if let Some(Value::String(name)) = map.get("trainer")
            && let Ok(preset @ (Preset::Sgd | Preset::Momentum | Preset::Adam)) = from_name(name)
        {
            map.insert("trainer".into(), Algorithm::Backprop.to_string().into());
            map.entry("preset").or_insert_with(|| preset.to_string().into());
        }
        serde_json::from_value(Value::Object(map)).map_err(|e| Error::invalid(e.to_string()))
    }

    /// Whether what is trained is the limit of infinitely many layers.
    pub(super) fn at_fixed_point(&self) -> bool {
        self.convex == Some(true) || self.weakly_convex.is_some()
    }

    /// Whether every visit to a patch sees the same pixels and the same noise.
    pub(super) fn same_patches(&self) -> bool {
        [self.fresh_noise, self.fresh_places, self.augment].iter().all(|fresh| *fresh != Some(true))
    }

    /// The settings by name: the inverse of [`Settings::from_map`].
    pub fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            // Only a path that is not Unicode has no JSON; its setting does not change the training.
            _ => Map::new(),
        }
    }
}
