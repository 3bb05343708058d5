//! Training data: sets of clean images, patches drawn from them, mini-batches.
//!
//! Everything follows from seeds: the same seed gives the same bits on any number of threads.

mod batches;
mod folder;
mod labelled;
mod pairs;
mod patches;
mod set;
mod share;
mod spool;
pub mod synthetic;

pub use batches::{Batches, Order};
pub use folder::images_below;
pub use labelled::Labelled;
pub use pairs::Pairs;
pub use patches::{Levels, PatchNoise, PatchSpec, Patches, Visit};
pub use set::ImageSet;
