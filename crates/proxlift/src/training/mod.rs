//! Training: the lifted energy, its gradients, and what descends it.

pub mod energy;
pub mod feedforward;

pub use energy::{Energy, Lifted};
