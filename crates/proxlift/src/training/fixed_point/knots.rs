//! Convex functions as they are learned: by the knots of their activations, and what these rise by between them.

use super::coordinates::{Coordinates, LEAST, STEEPEST};
use crate::prox::{PiecewiseGradient, PiecewiseLinear, Prox};

/// The logarithms of knots, and what the activation rises by between them, in widths of its first piece. It does not fall.
pub(super) struct Knots {
    activation: PiecewiseLinear<f32>,
    tau: f32,
}

impl Knots {
    /// Those of `activation`, for the step `tau`.
    pub fn of(activation: &PiecewiseLinear<f32>, tau: f32) -> Self {
        Self { activation: activation.clone(), tau }
    }

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
