//! Networks in files: models, the built-in ones, and checkpoints of a training.

mod built_in;
mod checkpoint;
mod file;

pub use built_in::BuiltIn;
pub use checkpoint::Checkpoint;
pub use file::{Model, Provenance};
