//! What is moved when the activation of a fixed point is learned.
//!
//! All steps are shares: gradients of different features differ by orders of magnitude.

use super::influences::Influences;
use crate::prox::{PiecewiseGradient, PiecewiseLinear, Prox};

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

/// Those of `activation`, for the step `tau`: of a convex function or of a weakly convex one.
pub(super) fn of(activation: &PiecewiseLinear<f32>, tau: f32, weak: bool) -> Box<dyn Coordinates> {
    if weak {
        return Box::new(Influences::of(activation, tau));
    }
    Box::new(Knots { activation: activation.clone(), tau })
}

/// The logarithms of knots, and what the activation rises by between them, in widths of its first piece. It does not fall.
struct Knots {
    activation: PiecewiseLinear<f32>,
    tau: f32,
}

impl Knots {
    fn knots(&self) -> impl Iterator<Item = f32> + '_ {
        self.activation.knots().iter().map(|knot| knot.max(LEAST))
    }

    /// How wide each piece is, in widths of the feature's first one, and at least as wide; the last one as all before it.
    fn widths(&self) -> Vec<f32> {
        let of_feature = |knots: &[f32]| {
            let first = knots[0].max(LEAST);
            let ends: Vec<f32> = std::iter::once(0.0).chain(knots.iter().copied()).collect();
            let inner = ends.windows(2).map(|end| end[1] - end[0]).chain(knots.last().copied());
            inner.map(|width| (width / first).max(1.0)).collect::<Vec<_>>()
        };
        self.activation.knots().chunks_exact(self.activation.pieces()).flat_map(of_feature).collect()
    }
}

impl Coordinates for Knots {
    fn parameters(&self) -> Vec<Vec<f32>> {
        let slopes = self.activation.slopes().iter();
        let rises = slopes.zip(self.widths()).map(|(slope, width)| slope * width);
        vec![self.knots().map(f32::ln).collect(), rises.collect()]
    }

    fn gradients(&self, of: &PiecewiseGradient<f32>) -> Vec<Vec<f32>> {
        let rises = of.slopes.iter().zip(self.widths()).map(|(g, width)| g / width);
        vec![self.knots().zip(&of.knots).map(|(knot, g)| knot * g).collect(), rises.collect()]
    }

    fn activation(&self, parameters: &[Vec<f32>], c: f32, tau: f32) -> PiecewiseLinear<f32> {
        let mut moved = self.activation.clone();
        let [knots, slopes] = moved.parts_mut();
        for ((slope, rise), width) in slopes.iter_mut().zip(&parameters[1]).zip(self.widths()) {
            *slope = (rise / width).clamp(0.0, STEEPEST);
        }
        knots.iter_mut().zip(&parameters[0]).for_each(|(knot, log)| *knot = log.exp());
        moved.scale(c);
        // The step follows the norm; the function that is learned stays as it is.
        let mut moved = moved.with_step(tau / (self.tau * c * c));
        moved.project();
        moved.flatten(STEEPEST);
        moved.bound();
        moved
    }
}
