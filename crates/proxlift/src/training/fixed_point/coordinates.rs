//! What is moved when the activation of a fixed point is learned.
//!
//! All steps are shares: gradients of different features differ by orders of magnitude.

use crate::prox::{PiecewiseGradient, PiecewiseLinear};

/// The steepest slope of activations, `p`. Potentials are then smooth, on a scale far below that of noise, and fixed points are
/// reached at a known rate ([`Momentum`](crate::fixed_point::Momentum)). But of noise whose frequency `L* L` scales by `s ||L||^2` no
/// more than the share `p s / (1 - p + p s)` is removed: with 0.95, a third of that with `s = 0.1` stays.
pub(super) const STEEPEST: f32 = 0.995;

/// What numbers whose logarithms are learned do not fall below.
pub(super) const LEAST: f32 = 1e-7;

/// Coordinates of the activation `s = prox_{tau g*}`.
pub(super) trait Coordinates {
    /// The numbers that are moved, block by block.
    fn parameters(&self) -> Vec<Vec<f32>>;

    /// The gradients by them, from those by knots and slopes.
    fn gradients(&self, of: &PiecewiseGradient<f32>) -> Vec<Vec<f32>>;

    /// The activation that is at `parameters`, of the function `g(c .)` instead of `g`, and for the step `tau`.
    fn activation(&self, parameters: &[Vec<f32>], c: f32, tau: f32) -> PiecewiseLinear<f32>;
}
