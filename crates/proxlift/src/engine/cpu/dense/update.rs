//! One step of some numbers along their gradient, with its means, in a single pass over memory.

use super::super::level::{self, dispatch};
use fearless_simd::{Simd, prelude::*};

/// What is added to the root of a mean square.
const EPSILON: f32 = 1e-8;

/// The constants of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    /// What is kept of the mean, and how much of the gradient comes in.
    mean: [f32; 2],
    /// The same of the squares, for Adam; zero without them.
    square: [f32; 2],
    /// What the root of the mean square is multiplied by, and what is added to it: without squares, it is one.
    root: [f32; 2],
    rate: f32,
}

impl Update {
    /// Step number `steps`, from 1 on, along `scale` times the gradient: along its mean with `beta1`, over the root of mean
    /// squares with `beta2` if there is one.
    pub(crate) fn new(steps: f64, scale: f32, rate: f32, (beta1, beta2): (f32, Option<f32>)) -> Self {
        let unbias = |beta: f32| 1.0 - f64::from(beta).powf(steps);
        let Some(beta2) = beta2 else {
            return Self { mean: [beta1, scale], square: [0.0; 2], root: [0.0, 1.0], rate };
        };
        let square = (1.0 - f64::from(beta2)) * f64::from(scale).powi(2);
        Self {
            mean: [beta1, (1.0 - beta1) * scale],
            square: [beta2, square as f32],
            root: [unbias(beta2).sqrt().recip() as f32, EPSILON],
            rate: (f64::from(rate) / unbias(beta1)) as f32,
        }
    }

    /// Moves `weights` along `gradient`.
    #[inline(never)]
    pub(crate) fn apply(&self, weights: &mut [f32], gradient: &[f32], mean: &mut [f32], square: &mut [f32]) {
        let update = *self;
        dispatch!(level::chosen(), simd => {
            let _ = simd;
            let all = weights.iter_mut().zip(gradient).zip(mean.iter_mut()).zip(square);
            all.for_each(|(((weight, &gradient), mean), square)| *weight -= update.step(gradient, mean, square));
        });
    }

    /// The step of one number, with its means.
    #[inline(always)]
    pub(crate) fn step(&self, gradient: f32, mean: &mut f32, square: &mut f32) -> f32 {
        *mean = self.mean[0] * *mean + self.mean[1] * gradient;
        *square = self.square[0] * *square + self.square[1] * gradient * gradient;
        self.rate * *mean / (self.root[0] * square.sqrt() + self.root[1])
    }

    /// The first half of [`Self::apply`] for the vectors at these places, which tells the roots for the second.
    ///
    /// # Safety
    /// They are the caller's to change.
    #[inline(always)]
    pub(super) unsafe fn average<S: Simd>(
        &self,
        simd: S,
        gradient: S::f32s,
        [_, mean, square]: [*mut f32; 3],
    ) -> S::f32s {
        let splat = |value: f32| S::f32s::splat(simd, value);
        // SAFETY: the caller's promise.
        let [m, s] = [mean, square].map(|at| unsafe { std::slice::from_raw_parts_mut(at, S::f32s::LEN) });
        let new_mean = splat(self.mean[0]) * S::f32s::from_slice(simd, m) + splat(self.mean[1]) * gradient;
        let squares = splat(self.square[1]) * gradient * gradient;
        let new_square = splat(self.square[0]) * S::f32s::from_slice(simd, s) + squares;
        new_mean.store_slice(m);
        new_square.store_slice(s);
        new_square.sqrt()
    }

    /// The second half: the weights move along their means, over the roots.
    ///
    /// # Safety
    /// They are the caller's to change.
    #[inline(always)]
    pub(super) unsafe fn advance<S: Simd>(&self, simd: S, root: S::f32s, [weights, mean, _]: [*mut f32; 3]) {
        let splat = |value: f32| S::f32s::splat(simd, value);
        // SAFETY: the caller's promise.
        let [w, m] = [weights, mean].map(|at| unsafe { std::slice::from_raw_parts_mut(at, S::f32s::LEN) });
        let mean = S::f32s::from_slice(simd, m);
        let step = splat(self.rate) * mean / (splat(self.root[0]) * root + splat(self.root[1]));
        (S::f32s::from_slice(simd, w) - step).store_slice(w);
    }
}
