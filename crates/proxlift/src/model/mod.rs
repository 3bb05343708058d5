//! Networks in files: models, the built-in ones, and ONNX for other programs.

mod built_in;
mod file;
mod onnx;
pub(crate) mod tensors;

pub use built_in::BuiltIn;
pub use file::{Model, Provenance};
pub use onnx::OPSET;
pub use tensors::{Metadata, Numbers, write_tensors};
