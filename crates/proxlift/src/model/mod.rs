//! Networks in files: models, and the built-in ones.

mod built_in;
mod file;
pub(crate) mod tensors;

pub use built_in::BuiltIn;
pub use file::{Model, Provenance};
pub use tensors::{Metadata, Numbers, write_tensors};
