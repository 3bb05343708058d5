//! Training: the lifted energy, its gradients, and what descends it.

pub mod backprop;
pub mod backtracking;
mod blocks;
pub mod constraint;
pub mod driver;
mod eigenbasis;
pub mod feedforward;
pub mod grid;
pub mod lbfb;
pub mod lifted;
mod matrix;
pub mod metric;
pub mod options;
pub mod rate;
pub mod trainer;
pub mod u_steps;
mod unrolled;

pub use backprop::{Backprop, Descent};
pub use constraint::Constraint;
pub use driver::{ENERGY_ROUNDING, EpochRecord, Go, Observer, Plan, train};

pub use grid::{Trial, best_trial, search_rates};
pub use lbfb::LbFb;
pub use lifted::{Energy, Lifted};
pub use metric::MetricKind;
pub use options::{Auxiliary, Options, Order, Steps, ThetaSteps, UStep};
pub use rate::{Rate, Schedule};
pub use trainer::{Batch, Report, Snapshot, Trainer};
