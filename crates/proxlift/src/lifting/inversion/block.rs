//! One forward-backward step of a block, by backtracking: what both methods of inversion are made of.

use crate::Real;
use crate::lifting::Rows;
use crate::real::{dot, norm_squared};
use crate::training::backtracking::{Backtracking, Trial};
use rayon::prelude::*;

/// What a step of a block needs to know.
pub(super) struct Block<'b, T> {
    /// The block before the step, and the gradient of the smooth part there.
    pub before: &'b Rows<T>,
    pub gradient: &'b Rows<T>,
    /// The part of the objective that the block enters, of each sample, before the step.
    pub energy: &'b [f64],
}

impl<T: Real> Block<'_, T> {
    /// The longest step `w <- backward(w - gamma g)` of each sample that keeps the majorant of its energy,
    ///
    /// ```text
    /// E(w+) <= E(w) + <w+ - w, g> + 1/(2 gamma) ||w+ - w||^2 + psi(w+) - psi(w)
    /// ```
    ///
    /// whose right side is `E(w)` at most, as `w+` minimises it; where a backward step is solved by iteration and falls short
    /// of that, `E(w)` takes its place. So the energy cannot rise. `evaluate` puts a point in place and tells its energies.
    pub fn step(
        self,
        search: &mut Backtracking,
        backward: impl Fn(usize, T, &mut [T]) + Sync,
        psi: impl Fn(usize, &[T]) -> f64 + Sync,
        mut evaluate: impl FnMut(Rows<T>) -> Vec<f64>,
    ) {
        let psi_before: Vec<f64> = self.before.par_rows().enumerate().map(|(i, w)| psi(i, w)).collect();
        let attempt = |steps: &[f64]| {
            let mut w = self.before.clone();
            let rows = w.par_rows_mut().zip(self.gradient.par_rows()).zip(self.before.par_rows()).enumerate();
            let model = rows.map(|(i, ((w, g), before))| {
                let gamma = T::of(steps[i]);
                if steps[i] == 0.0 {
                    return 0.0;
                }
                w.iter_mut().zip(g).for_each(|(w, &g)| *w -= gamma * g);
                backward(i, gamma, w);
                let moved: Vec<T> = w.iter().zip(before).map(|(&w, &b)| w - b).collect();
                let model = dot(&moved, g) + norm_squared(&moved) / (2.0 * steps[i]);
                (model + psi(i, w) - psi_before[i]).min(0.0)
            });
            let models: Vec<f64> = model.collect();
            let trials = evaluate(w).into_iter().zip(models);
            trials.map(|(value, model)| Trial { value, model }).collect()
        };
        search.search(self.energy, attempt);
    }
}

/// Where the search of a step of `z` starts, for both methods: it grows slowly, as a refused step costs as much as another.
pub(super) fn z_search<T: Real>() -> Backtracking {
    Backtracking { step: 1.0, grow: 1.1, resolution: rounding::<T>(), ..Backtracking::default() }
}

/// Energies are sums in double precision of what was computed in `T`.
fn rounding<T: Real>() -> f64 {
    4.0 * T::epsilon().to_double()
}
