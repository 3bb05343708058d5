//! The epilogues of layers with learned activations or inertia: what those of the paper's clip do in registers, these do
//! right after, in the nearest cache.

// Iterators over arrays of vectors would move these through memory.
#![allow(clippy::needless_range_loop)]

use super::epilogue::{AHEAD, Epilogue, memory, store_row};
use super::inertia::{Carry, Keep, Replace};
use super::vectors::{load, prefetch, store};
use super::{activation::PackedActivation, activation_sums::ActivationSums};
use crate::engine::ReverseRule;
use fearless_simd::{Simd, prelude::*};

/// Safety: the lanes from each `at` on are inside `planes`.
#[inline(always)]
unsafe fn load_row<S: Simd, const P: usize, const N: usize>(
    simd: S,
    planes: &[f32],
    at: [usize; P],
) -> [[S::f32s; N]; P] {
    let mut vectors = [[S::f32s::splat(simd, 0.0); N]; P];
    for p in 0..P {
        for n in 0..N {
            // SAFETY: the caller's promise.
            vectors[p][n] = unsafe { load(simd, planes, at[p] + n * S::f32s::LEN) };
        }
    }
    vectors
}

/// `u <- s(u + sum)` in place: a layer of inference. With inertia, what is in place is `y`.
pub struct InPlace<'a> {
    pub u: &'a mut [f32],
    pub activation: &'a PackedActivation,
    pub inertia: Option<Replace<'a>>,
}

// SAFETY: source and planes are the same slice, and `len` is that of the shorter one with what inertia remembers.
unsafe impl Epilogue for InPlace<'_> {
    memory!(self, Some(self.u) => self.u, self.inertia.as_ref().map_or(&*self.u, |inertia| &*inertia.u));

    #[inline(always)]
    unsafe fn after<S: Simd, const P: usize, const N: usize>(&mut self, simd: S, row: usize, at: [usize; P]) {
        // SAFETY: the caller's promise.
        unsafe {
            let u = self.activation.apply::<S, P, N>(simd, row, load_row(simd, self.u, at));
            for p in 0..P {
                for n in 0..N {
                    let at = at[p] + n * S::f32s::LEN;
                    let y = match &mut self.inertia {
                        Some(inertia) => inertia.pass(simd, at, u[p][n]),
                        None => u[p][n],
                    };
                    store::<S>(y, self.u, at);
                }
            }
        }
    }
}

/// `v = u + sum`, `u+ = s(v)`, both kept: a layer of training. With inertia, `u` and `u+` are `y` and `y+`.
pub struct Forward<'a> {
    pub u: &'a [f32],
    pub v: &'a mut [f32],
    pub next: &'a mut [f32],
    pub activation: &'a PackedActivation,
    pub inertia: Option<Keep<'a>>,
}

// SAFETY: `len` is that of the shortest slice.
unsafe impl Epilogue for Forward<'_> {
    memory!(self, Some(self.u) => self.next, self.u, self.v);

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        _: S,
        _: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        // SAFETY: the caller's promise.
        unsafe { store_row::<S, P, N>(self.v, at, sums) };
    }

    #[inline(always)]
    unsafe fn after<S: Simd, const P: usize, const N: usize>(&mut self, simd: S, row: usize, at: [usize; P]) {
        // SAFETY: the caller's promise.
        unsafe {
            let u = self.activation.apply::<S, P, N>(simd, row, load_row(simd, self.v, at));
            for p in 0..P {
                for n in 0..N {
                    let at = at[p] + n * S::f32s::LEN;
                    let y = match &mut self.inertia {
                        Some(inertia) => inertia.pass(simd, at, u[p][n]),
                        None => u[p][n],
                    };
                    store::<S>(y, self.next, at);
                }
            }
        }
    }
}

/// `d <- rule(v, d + sum)` in place: the reverse sweep through an activation.
pub struct Backward<'a, 'b> {
    pub d: &'a mut [f32],
    pub v: &'a [f32],
    pub activation: &'a PackedActivation,
    pub rule: ReverseRule<f32>,
    /// Where the gradients of the activation go, if they are asked for.
    pub sums: Option<&'a mut ActivationSums<'b>>,
    pub inertia: Option<Carry<'a>>,
}

// SAFETY: `len` is that of the shorter slice.
unsafe impl Epilogue for Backward<'_, '_> {
    memory!(self, Some(self.d) => self.d, self.v);

    #[inline(always)]
    unsafe fn after<S: Simd, const P: usize, const N: usize>(&mut self, simd: S, row: usize, at: [usize; P]) {
        for p in 0..P {
            for n in 0..N {
                // SAFETY: the caller's promise.
                unsafe { self.back(simd, row, at[p] + n * S::f32s::LEN) };
            }
        }
    }
}

impl Backward<'_, '_> {
    /// Safety: as for [`Epilogue::after`].
    #[inline(always)]
    unsafe fn back<S: Simd>(&mut self, simd: S, row: usize, at: usize) {
        // SAFETY: the caller's promise.
        let (v, mut back) = unsafe { (load(simd, self.v, at), load(simd, self.d, at)) };
        prefetch(self.v, at + AHEAD);
        if let Some(inertia) = &mut self.inertia {
            back = inertia.pass(simd, at, back);
        }
        if let Some(sums) = &mut self.sums {
            let pixel = at - row * sums.mask.len();
            let back = back * S::f32s::from_slice(simd, &sums.mask[pixel..pixel + S::f32s::LEN]);
            match self.rule {
                ReverseRule::Backprop => sums.backprop(simd, self.activation, row, v, back),
                ReverseRule::Lifted { .. } => sums.lifted(simd, self.activation, row, v, back),
                ReverseRule::Centred { .. } => sums.centred(simd, self.activation, row, v, back),
            }
        }
        let d = match self.rule {
            ReverseRule::Backprop => self.activation.derivative(simd, row, v, back),
            ReverseRule::Lifted { .. } => {
                let [[now, then]] = self.activation.apply(simd, row, [[v, v - back]]);
                now - then
            }
            ReverseRule::Centred { .. } => {
                let [[above, below]] = self.activation.apply(simd, row, [[v + back, v - back]]);
                (above - below) * S::f32s::splat(simd, 0.5)
            }
        };
        // SAFETY: the caller's promise.
        unsafe { store::<S>(d, self.d, at) };
    }
}
