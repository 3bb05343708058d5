//! Steps of the blocks of an inversion, held to the whole objective.
//!
//! ```text
//! E(w+) <= E(w) + <w+ - w, g> + 1/(2 gamma) ||w+ - w||^2 + psi(w+) - psi(w)
//! ```
//!
//! The right side is `E(w)` at most, as `w+` minimises it; where a backward step is solved by iteration and falls short of
//! that, `E(w)` takes its place. So the objective cannot rise, to the rounding of itself: near a solution, `E` is much smaller
//! than its smooth part.

use super::Inversion;
use crate::Real;
use crate::lifting::Rows;
use crate::lifting::blocks::forward_backward;
use crate::training::backtracking::{Backtracking, Found};
use rayon::prelude::*;

/// One step of a block `w` whose objective, of each sample, is `energy` now; `evaluate` tells it for another `w`.
pub(super) fn step<T: Real>(
    w: &mut Rows<T>,
    gradient: &Rows<T>,
    energy: &[f64],
    search: &mut Backtracking,
    backward: impl Fn(usize, T, &mut [T]) + Sync,
    psi: impl Fn(usize, &[T]) -> f64 + Sync,
    evaluate: impl FnMut(&Rows<T>) -> Vec<f64>,
) -> Found {
    let before: Vec<f64> = w.par_rows().enumerate().map(|(i, w)| psi(i, w)).collect();
    let bound = |i: usize, w: &[T], model: f64| (model + psi(i, w) - before[i]).min(0.0);
    forward_backward(w, gradient, energy, search, backward, bound, evaluate)
}

impl<T: Real> Inversion<'_, T> {
    /// One step of `z`, with its regulariser: the same for both methods.
    pub(super) fn z_step(
        &self,
        z: &mut Rows<T>,
        gradient: &Rows<T>,
        energy: &[f64],
        search: &mut Backtracking,
        evaluate: impl FnMut(&Rows<T>) -> Vec<f64>,
    ) -> Found {
        let alpha = T::of(self.options.alpha);
        let backward = |i: usize, gamma: T, z: &mut [T]| {
            if alpha > T::zero() {
                self.regulariser.backward(i, gamma * alpha, z);
            }
        };
        step(z, gradient, energy, search, backward, |i, z| self.prior(i, z), evaluate)
    }
}

/// Where the search for a step of `z` starts: it grows slowly, as a refused step costs as much as another.
/// Energies are sums in double precision of what was computed in `T`.
pub(super) fn z_search<T: Real>() -> Backtracking {
    Backtracking {
        step: 1.0,
        grow: 1.1,
        resolution: 4.0 * T::epsilon().to_double(),
        ..Backtracking::default()
    }
}
