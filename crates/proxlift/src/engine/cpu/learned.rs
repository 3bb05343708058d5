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
pub struct Backward<'a, 'b, V> {
    pub d: &'a mut [f32],
    pub v: V,
    pub activation: &'a PackedActivation,
    pub rule: ReverseRule<f32>,
    /// Where the gradients of the activation go, if they are asked for.
    pub sums: Option<&'a mut ActivationSums<'b>>,
    pub inertia: Option<Carry<'a>>,
}

// SAFETY: `len` is that of the shorter slice.
unsafe impl<V: Kept> Epilogue for Backward<'_, '_, V> {
    memory!(self, Some(self.d) => self.d, self.v);

    #[inline(always)]
    unsafe fn after<S: Simd, const P: usize, const N: usize>(&mut self, simd: S, row: usize, at: [usize; P]) {
        for p in 0..P {
            // SAFETY: the caller's promise.
            unsafe { self.back::<S, N>(simd, row, at[p]) };
        }
    }
}

impl<V: Kept> Backward<'_, '_, V> {
    /// Safety: as for [`Epilogue::after`].
    #[inline(always)]
    unsafe fn back<S: Simd, const N: usize>(&mut self, simd: S, row: usize, at: usize) {
        let zero = S::f32s::splat(simd, 0.0);
        let (mut v, mut back) = ([zero; N], [zero; N]);
        for n in 0..N {
            let at = at + n * S::f32s::LEN;
            // SAFETY: the caller's promise.
            unsafe { (v[n], back[n]) = (self.v.load(simd, at), load(simd, self.d, at)) };
            self.v.prefetch(at + AHEAD);
            if let Some(inertia) = &mut self.inertia {
                back[n] = inertia.pass(simd, at, back[n]);
            }
        }
        if let Some(sums) = &mut self.sums {
            let pixel = at - row * sums.mask.len();
            for n in 0..N {
                let pixel = pixel + n * S::f32s::LEN;
                back[n] *= S::f32s::from_slice(simd, &sums.mask[pixel..pixel + S::f32s::LEN]);
            }
        }
        let mut u = v;
        let d = match self.rule {
            ReverseRule::Backprop => {
                if let Some(sums) = &mut self.sums {
                    sums.backprop(simd, self.activation, row, v, back);
                }
                let mut d = back;
                for n in 0..N {
                    d[n] = self.activation.derivative(simd, row, v[n], back[n]);
                }
                d
            }
            ReverseRule::Lifted { .. } => {
                let (now, d) = self.secant(simd, row, v, back, 1.0);
                u = now;
                d
            }
            ReverseRule::Centred { .. } => {
                let (mut above, mut twice) = (v, back);
                for n in 0..N {
                    (above[n], twice[n]) = (v[n] + back[n], back[n] + back[n]);
                }
                self.secant(simd, row, above, twice, 0.5).1
            }
        };
        if V::WANTS_ACTIVATED && !matches!(self.rule, ReverseRule::Lifted { .. }) {
            [u] = self.activation.apply(simd, row, [v]);
        }
        for n in 0..N {
            let at = at + n * S::f32s::LEN;
            // SAFETY: the caller's promise.
            unsafe {
                store::<S>(d[n], self.d, at);
                self.v.activated::<S>(at, u[n]);
            }
        }
    }

    /// `s(v)` and `weight (s(v) - s(v - back))`; adds the gradients of the activation.
    #[inline(always)]
    fn secant<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        v: [S::f32s; N],
        back: [S::f32s; N],
        weight: f32,
    ) -> ([S::f32s; N], [S::f32s; N]) {
        let mut w = v;
        for n in 0..N {
            w[n] = v[n] - back[n];
        }
        let [now, then] = match &mut self.sums {
            Some(sums) => sums.secant(simd, self.activation, row, v, w, weight),
            None => self.activation.apply(simd, row, [v, w]),
        };
        let mut d = now;
        for n in 0..N {
            d[n] = now[n] - then[n];
        }
        if weight != 1.0 {
            for n in 0..N {
                d[n] *= S::f32s::splat(simd, weight);
            }
        }
        (now, d)
    }
}

/// The features of a layer as they were kept for the reverse sweep.
pub trait Kept {
    /// Whether `s(v)` is computed again in the reverse sweep, since it was not kept.
    const WANTS_ACTIVATED: bool;

    fn len(&self) -> usize;

    /// Safety: the lanes from `at` on are there.
    unsafe fn load<S: Simd>(&self, simd: S, at: usize) -> S::f32s;

    fn prefetch(&self, at: usize);

    /// Takes `s(v)`.
    /// Safety: the lanes from `at` on are there.
    unsafe fn activated<S: Simd>(&mut self, at: usize, u: S::f32s);
}

impl Kept for &[f32] {
    const WANTS_ACTIVATED: bool = false;

    fn len(&self) -> usize {
        <[f32]>::len(self)
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self, at) }
    }

    #[inline(always)]
    fn prefetch(&self, at: usize) {
        prefetch(self, at);
    }

    #[inline(always)]
    unsafe fn activated<S: Simd>(&mut self, _: usize, _: S::f32s) {}
}
