//! Settings -> configuration -> what a training is made of.
//!
//! ```text
//! settings that are given, over those of a preset -> Config, complete and checked -> network, patches, trainer
//! ```

mod build;
mod choices;
mod config;
mod method;
mod preset;
mod relevance;
mod settings;
mod start;

pub use choices::{Algorithm, FilterConstraint, Preset, Secant, Start, StepRule};
pub use config::{Config, Grid, fingerprint};
pub use method::Method;
pub use settings::{Kind, Setting, Settings};
