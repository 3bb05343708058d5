//! Images: a planar buffer, files in and out, noise.
//!
//! Everything downstream (patches, networks, scores) works on [`Image`]: `f32`, one plane per channel, nominally
//! in `[0, 1]`, never clipped on the way.

mod buffer;
mod enlarge;
pub mod io;
pub mod noise;
pub mod symmetry;

pub use buffer::{Channels, Image};
pub use enlarge::enlarge;
