//! Networks in files: models, and the built-in ones.

mod built_in;
mod file;

pub use built_in::BuiltIn;
pub use file::{Model, Provenance};
