//! Training: the lifted energy, its gradients, and what descends it.

pub mod backtracking;
mod blocks;
pub mod constraint;
pub mod descent;
pub mod driver;
pub mod feedforward;
pub mod grid;
pub mod lbfb;
pub mod lifted;
mod norms;
pub mod optimiser;
pub mod options;
pub mod trainer;

pub use constraint::Constraint;
pub use descent::{GradientDescent, Mu, Rule};
pub use driver::{ENERGY_ROUNDING, EpochRecord, Go, Observer, Plan, train};
pub use grid::{Trial, best_trial, search_rates};
pub use lbfb::LbFb;
pub use lifted::{Energy, Lifted};
pub use norms::TrackedNorms;
pub use optimiser::{Descent, Metric, Optimiser, Rate, Schedule};
pub use options::{Auxiliary, Options, Order, ThetaSteps, UStep};
pub use trainer::{Batch, Report, Snapshot, Trainer};
