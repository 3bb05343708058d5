//! Inertia, one vector at a time: `y+ = u+ + alpha (u+ - u)`, and what it sends back.

use super::vectors::{load, store};
use fearless_simd::{Simd, prelude::*};

/// From `u+` to `y+ = u+ + alpha (u+ - u)`, where `u+` takes the place of `u`.
pub struct Replace<'a> {
    pub alpha: f32,
    pub u: &'a mut [f32],
}

impl Replace<'_> {
    /// Safety: the lanes from `at` on are inside `u`.
    #[inline(always)]
    pub unsafe fn pass<S: Simd>(&mut self, simd: S, at: usize, next: S::f32s) -> S::f32s {
        // SAFETY: the caller's promise.
        let moved = unsafe { next - load(simd, self.u, at) };
        // SAFETY: the caller's promise.
        unsafe { store::<S>(next, self.u, at) };
        moved.mul_add(S::f32s::splat(simd, self.alpha), next)
    }
}

/// The same with `u`, `u+` and `y+` all kept.
pub struct Keep<'a> {
    pub alpha: f32,
    pub u: &'a [f32],
    pub next: &'a mut [f32],
}

impl Keep<'_> {
    #[inline(always)]
    pub fn pass<S: Simd>(&mut self, simd: S, at: usize, next: S::f32s) -> S::f32s {
        let moved = next - S::f32s::from_slice(simd, &self.u[at..at + S::f32s::LEN]);
        next.store_slice(&mut self.next[at..at + S::f32s::LEN]);
        moved.mul_add(S::f32s::splat(simd, self.alpha), next)
    }
}

/// Backwards: to what comes back to `y` adds what `u` gets from the layer after next, and leaves what the one before gets.
pub struct Carry<'a> {
    pub alpha: f32,
    pub carried: &'a mut [f32],
}

impl Carry<'_> {
    #[inline(always)]
    pub fn pass<S: Simd>(&mut self, simd: S, at: usize, back: S::f32s) -> S::f32s {
        let carried = &mut self.carried[at..at + S::f32s::LEN];
        let faster = back * S::f32s::splat(simd, self.alpha);
        let sum = back + (faster + S::f32s::from_slice(simd, carried));
        (-faster).store_slice(carried);
        sum
    }
}
