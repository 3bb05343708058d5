//! What the fused kernels do to a vector before it leaves the registers: layers forward, and the reverse rules.

// Iterators over arrays of vectors would move these through memory.
#![allow(clippy::needless_range_loop)]

use super::activation::{Activation, Learn, PackedActivation};
use super::inertia::{Carry, Inertia, Keep, Maybe, Replace};
use super::kernels::{Epilogue, Fused, load, prefetch, store};
use crate::engine::ReverseRule;
use crate::field::LANES;
use fearless_simd::{Simd, prelude::*};

/// Numbers from a vector to the one that is needed a block of pixels later.
const AHEAD: usize = 2 * LANES;

/// `out = sum` from zero: the planes of the taps, or the first layer.
pub(super) struct Assign<'a>(pub &'a mut [f32]);

impl Epilogue for Assign<'_> {
    fn planes(&mut self) -> &mut [f32] {
        self.0
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn rows(&self) -> usize {
        usize::MAX
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, _: usize) -> S::f32s {
        S::f32s::splat(simd, 0.0)
    }

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        _: S,
        _: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        for p in 0..P {
            for n in 0..N {
                // SAFETY: the caller's promise.
                unsafe { store::<S>(sums[p][n], self.0, at[p] + n * S::f32s::LEN) };
            }
        }
    }
}

/// `u <- s(u + sum)` in place: a layer of inference, or, with [`Identity`], the pull-back. With inertia, what is in place
/// is `y`.
pub(super) struct InPlace<'a, A, const GENERAL: bool> {
    pub u: &'a mut [f32],
    pub activation: A,
    pub inertia: Maybe<Replace<'a>, GENERAL>,
}

impl<A: Activation, const GENERAL: bool> Fused for InPlace<'_, A, GENERAL> {
    fn source(&self) -> &[f32] {
        self.u
    }
}

impl<A: Activation, const GENERAL: bool> Epilogue for InPlace<'_, A, GENERAL> {
    fn planes(&mut self) -> &mut [f32] {
        self.u
    }

    fn len(&self) -> usize {
        self.u.len()
    }

    fn rows(&self) -> usize {
        self.activation.features()
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self.u, at) }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let u = self.activation.apply(simd, row, sums);
            for p in 0..P {
                for n in 0..N {
                    let at = at[p] + n * S::f32s::LEN;
                    store::<S>(self.inertia.pass(simd, at, u[p][n]), self.u, at);
                }
            }
        }
    }
}

/// `v = u + sum`, elsewhere: a block of a batch.
pub(super) struct Apart<'a> {
    pub u: &'a [f32],
    pub v: &'a mut [f32],
}

impl Fused for Apart<'_> {
    fn source(&self) -> &[f32] {
        self.u
    }
}

impl Epilogue for Apart<'_> {
    fn planes(&mut self) -> &mut [f32] {
        self.v
    }

    fn len(&self) -> usize {
        self.u.len().min(self.v.len())
    }

    fn rows(&self) -> usize {
        usize::MAX
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self.u, at) }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        _: S,
        _: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        for p in 0..P {
            for n in 0..N {
                // SAFETY: the caller's promise.
                unsafe { store::<S>(sums[p][n], self.v, at[p] + n * S::f32s::LEN) };
            }
        }
    }
}

/// `v = u + sum`, `u+ = s(v)`, both kept: a layer of training. With inertia, `u` and `u+` are `y` and `y+`.
pub(super) struct Forward<'a, A, const GENERAL: bool> {
    pub u: &'a [f32],
    pub v: &'a mut [f32],
    pub next: &'a mut [f32],
    pub activation: A,
    pub inertia: Maybe<Keep<'a>, GENERAL>,
}

impl<A: Activation, const GENERAL: bool> Fused for Forward<'_, A, GENERAL> {
    fn source(&self) -> &[f32] {
        self.u
    }
}

impl<A: Activation, const GENERAL: bool> Epilogue for Forward<'_, A, GENERAL> {
    fn planes(&mut self) -> &mut [f32] {
        self.next
    }

    fn len(&self) -> usize {
        self.u.len().min(self.v.len()).min(self.next.len())
    }

    fn rows(&self) -> usize {
        self.activation.features()
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self.u, at) }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let next = self.activation.apply(simd, row, sums);
            for p in 0..P {
                for n in 0..N {
                    let at = at[p] + n * S::f32s::LEN;
                    store::<S>(sums[p][n], self.v, at);
                    store::<S>(self.inertia.pass(simd, at, next[p][n]), self.next, at);
                }
            }
        }
    }
}

/// `d <- rule(v, start + sum)` in place: the reverse sweep through an activation. `FROM_ZERO` drops the start.
pub(super) struct Backward<'a, 'b, A, const FROM_ZERO: bool, const GENERAL: bool> {
    pub d: &'a mut [f32],
    pub v: &'a [f32],
    pub activation: A,
    pub rule: ReverseRule<f32>,
    /// Where the gradients of the activation go, if they are asked for; never for the paper's network.
    pub learn: Option<(&'a mut Learn<'b>, &'a PackedActivation)>,
    pub inertia: Maybe<Carry<'a>, GENERAL>,
}

impl<A: Activation, const FROM_ZERO: bool, const GENERAL: bool> Fused
    for Backward<'_, '_, A, FROM_ZERO, GENERAL>
{
    fn source(&self) -> &[f32] {
        self.d
    }
}

impl<A: Activation, const FROM_ZERO: bool, const GENERAL: bool> Epilogue
    for Backward<'_, '_, A, FROM_ZERO, GENERAL>
{
    fn planes(&mut self) -> &mut [f32] {
        self.d
    }

    fn len(&self) -> usize {
        self.d.len().min(self.v.len())
    }

    fn rows(&self) -> usize {
        self.activation.features()
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        if FROM_ZERO {
            S::f32s::splat(simd, 0.0)
        } else {
            // SAFETY: the caller's promise.
            unsafe { load(simd, self.d, at) }
        }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        for p in 0..P {
            for n in 0..N {
                // SAFETY: the caller's promise.
                unsafe { self.back(simd, row, at[p] + n * S::f32s::LEN, sums[p][n]) };
            }
        }
    }
}

impl<A: Activation, const FROM_ZERO: bool, const GENERAL: bool> Backward<'_, '_, A, FROM_ZERO, GENERAL> {
    /// One vector.
    ///
    /// # Safety
    /// As for [`Epilogue::finish`].
    #[inline(always)]
    unsafe fn back<S: Simd>(&mut self, simd: S, row: usize, at: usize, sum: S::f32s) {
        // SAFETY: the caller's promise.
        let v = unsafe { load(simd, self.v, at) };
        prefetch(self.v, at + AHEAD);
        let back = self.inertia.pass(simd, at, sum);
        if GENERAL && let Some((learn, packed)) = &mut self.learn {
            let pixel = at - row * learn.mask.len();
            let back = back * S::f32s::from_slice(simd, &learn.mask[pixel..pixel + S::f32s::LEN]);
            match self.rule {
                ReverseRule::Backprop => learn.backprop(simd, packed, row, v, back),
                ReverseRule::Lifted { .. } => learn.lifted(simd, packed, row, v, back),
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            let d = match self.rule {
                ReverseRule::Backprop => self.activation.derivative(simd, row, v, back),
                ReverseRule::Lifted { .. } => {
                    let [[now, then]] = self.activation.apply(simd, row, [[v, v - back]]);
                    now - then
                }
            };
            store::<S>(d, self.d, at);
        }
    }
}
