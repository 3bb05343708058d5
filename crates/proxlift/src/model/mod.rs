//! Networks in files: models, the built-in ones, and ONNX for other programs.

mod built_in;
mod checksum;
mod file;
mod names;
mod onnx;
pub(crate) mod tensors;

pub use built_in::BuiltIn;
pub use file::{Model, Provenance};
pub use onnx::OPSET;
pub use tensors::{Metadata, Numbers, write_tensors};

/// A network at a lower level than that of its training changes no pixel by more than this many times the level. Noise
/// of that level hardly ever reaches so far; but the outer slopes of learned activations do not follow the level, and would
/// blur strong edges of a picture that has next to no noise.
pub const MOST_CHANGE: f64 = 6.0;
