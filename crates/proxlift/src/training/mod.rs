//! Training: the lifted energy, its gradients, and what descends it.

pub mod backtracking;
mod blocks;
pub mod checkpoint;
pub mod constraint;
pub mod descent;
pub mod driver;
pub mod fixed_point;
mod gathered;
pub mod lbfb;
pub mod lifted;
mod material;
mod norms;
pub mod optimiser;
pub mod options;
pub mod rate_search;
pub mod session;
pub mod setup;
pub mod stability;
pub mod taught;
pub mod trainer;
mod validation;

pub use checkpoint::Checkpoint;
pub use constraint::Constraint;
pub use descent::{GradientDescent, Mu, Rule};
pub use driver::{ENERGY_ROUNDING, EpochRecord, Go, Notes, Observer, Plan, Progress, train};
pub use fixed_point::{FixedPointGradients, FixedPointOptions, FixedPointRule, FixedPointTrainer};
pub use lbfb::LbFb;
pub use lifted::{Energy, Lifted, Machine};
pub use material::{Material, Source};
pub use optimiser::{Descent, Metric, Optimiser, Rate, Schedule};
pub use options::{Auxiliary, BlockOrder, Options, ThetaSteps, UStep};
pub use rate_search::{Trial, best_trial, search_rates};
pub use session::{Ended, Session};
pub use setup::{
    Algorithm, Config, FilterConstraint, Grid, Kind, Method, Preset, Secant, Setting, Settings, Start,
    StepRule, fingerprint,
};
pub use stability::Stability;
pub use taught::Taught;
pub use trainer::{Batch, Report, Snapshot, Trainer};
pub use validation::{Validation, ValidationScores};
