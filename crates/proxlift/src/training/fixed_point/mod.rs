//! Training at infinite depth: gradients at the [fixed point](crate::fixed_point) of the network whose layers are all the same.
//!
//! - [`FixedPoint::gradients`](crate::fixed_point::FixedPoint::gradients) differentiates the loss there: by the implicit
//!   function theorem, or lifted, by a second solve. Both need the memory of one layer, whatever the number of iterations;
//! - [`FixedPointTrainer`] trains with either.
//!
//! S. Bai, J. Z. Kolter, V. Koltun, "Deep equilibrium models", 2019; B. Scellier, Y. Bengio, "Equilibrium propagation", 2017.

mod adjoint;
mod coordinates;
mod gradient;
mod influences;
mod knots;
mod trainer;

pub use gradient::{FixedPointGradients, FixedPointRule};
pub use trainer::{FixedPointOptions, FixedPointTrainer};
