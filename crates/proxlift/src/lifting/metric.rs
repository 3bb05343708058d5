//! The diagonal metric of the parameters of a layer, for steps by backtracking.
//!
//! ```text
//! A = damping + sqrt(m) / r,      m the moving mean of squared gradients, r the root of the mean of m over the block
//! ```
//!
//! Steps are shorter where gradients have been large beside those of the other parameters. Its scale is that of the identity, so
//! a step that suits one metric is a start for the other. Backtracking asks for a majorant in the norm of `A`, whatever it is,
//! so `E` cannot rise.

use crate::Real;
use crate::real::norm_squared;

/// What is kept of the mean of squares when a gradient comes in.
const KEPT: f64 = 0.95;
/// The least of `A`.
const DAMPING: f64 = 0.1;

/// The mean of squared gradients; empty before the first.
#[derive(Default)]
pub(super) struct Diagonal<T> {
    squares: Vec<Vec<T>>,
}

impl<T: Real> Diagonal<T> {
    /// `A`, once `gradient` has come in.
    pub fn observe(&mut self, gradient: &[Vec<T>]) -> Vec<Vec<T>> {
        if self.squares.is_empty() {
            self.squares = gradient.iter().map(|block| block.iter().map(|&g| g * g).collect()).collect();
        } else {
            let (kept, new) = (T::of(KEPT), T::of(1.0 - KEPT));
            for (squares, block) in self.squares.iter_mut().zip(gradient) {
                squares.iter_mut().zip(block).for_each(|(m, &g)| *m = kept * *m + new * g * g);
            }
        }
        let roots = self.squares.iter().map(|block| block.iter().map(|m| m.sqrt()).collect());
        let mut roots: Vec<Vec<T>> = roots.collect();
        let count = roots.iter().map(Vec::len).sum::<usize>().max(1);
        let mean = roots.iter().map(|block| norm_squared(block)).sum::<f64>() / count as f64;
        // Where there never was a gradient, nothing moves in any metric.
        let scale = if mean > 0.0 { mean.sqrt().recip() } else { 0.0 };
        let (scale, damping) = (T::of(scale), T::of(DAMPING));
        roots.iter_mut().flatten().for_each(|root| *root = damping + scale * *root);
        roots
    }
}
