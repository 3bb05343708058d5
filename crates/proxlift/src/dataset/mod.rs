//! Training data: sets of clean images, patches drawn from them, mini-batches.
//!
//! Everything follows from seeds: the same seed gives the same bits on any number of threads.

mod batches;
mod patches;
mod set;
pub mod synthetic;

pub use batches::{Batches, Order};
pub use patches::{PatchSpec, Patches, Visit};
pub use set::ImageSet;
