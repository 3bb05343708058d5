//! Unfolded proximal neural networks (PNNs) for image denoising, trained by lifted Bregman.
//!
//! The flow of the library is the order of its modules:
//!
//! ```text
//! image -> dataset -> network(operator, prox, engine) -> training -> evaluation
//! ```
//!
//! `docs/notation.md` maps every symbol of the paper to its name here.

pub mod analysis;
pub mod dataset;
pub mod denoiser;
pub mod engine;
pub mod error;
pub mod evaluation;
pub mod field;
pub mod image;
pub mod laws;
pub mod model;
pub mod network;
pub mod operator;
pub mod prox;
pub mod random;
pub mod real;
pub mod solver;
pub mod training;

pub use denoiser::Denoiser;
pub use error::{Error, Result};
pub use image::Image;
pub use real::Real;
