//! What the fused kernels do to a vector before it leaves the registers: activations and the reverse rules.

use super::kernels::{Epilogue, Fused, load, store};
use crate::engine::Reverse;
use fearless_simd::{Simd, prelude::*};

/// An activation `s = prox_psi`, one vector of feature `j` at a time.
pub(super) trait Activation: Copy + Sync {
    /// `s(v)`.
    fn apply<S: Simd>(self, simd: S, j: usize, v: S::f32s) -> S::f32s;
    /// `s'(v) back`, with `s' = 0` where it jumps.
    fn derivative<S: Simd>(self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s;
}

/// The projection onto `[-lambda_j, lambda_j]`.
#[derive(Clone, Copy)]
pub(super) struct Clip<'a>(pub &'a [f32]);

impl Activation for Clip<'_> {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, j: usize, v: S::f32s) -> S::f32s {
        let lambda = S::f32s::splat(simd, self.0[j]);
        v.min(lambda).max(-lambda)
    }

    #[inline(always)]
    fn derivative<S: Simd>(self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s {
        let inside = v.abs().simd_lt(S::f32s::splat(simd, self.0[j]));
        inside.select(back, S::f32s::splat(simd, 0.0))
    }
}

/// No activation.
#[derive(Clone, Copy)]
pub(super) struct Identity;

impl Activation for Identity {
    #[inline(always)]
    fn apply<S: Simd>(self, _: S, _: usize, v: S::f32s) -> S::f32s {
        v
    }

    #[inline(always)]
    fn derivative<S: Simd>(self, _: S, _: usize, _: S::f32s, back: S::f32s) -> S::f32s {
        back
    }
}

/// `out = sum` from zero: the planes of the taps, or the first layer.
pub(super) struct Assign<'a>(pub &'a mut [f32]);

impl Epilogue for Assign<'_> {
    fn planes(&mut self) -> &mut [f32] {
        self.0
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, _: usize) -> S::f32s {
        S::f32s::splat(simd, 0.0)
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, _: S, _: usize, at: usize, sum: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe { store::<S>(sum, self.0, at) };
    }
}

/// `u <- s(u + sum)` in place: a layer of inference, or, with [`Identity`], the pull-back.
pub(super) struct InPlace<'a, A> {
    pub u: &'a mut [f32],
    pub activation: A,
}

impl<A: Activation> Fused for InPlace<'_, A> {
    fn source(&self) -> &[f32] {
        self.u
    }
}

impl<A: Activation> Epilogue for InPlace<'_, A> {
    fn planes(&mut self) -> &mut [f32] {
        self.u
    }

    fn len(&self) -> usize {
        self.u.len()
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self.u, at) }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, simd: S, row: usize, at: usize, sum: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe { store::<S>(self.activation.apply(simd, row, sum), self.u, at) };
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

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self.u, at) }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, _: S, _: usize, at: usize, sum: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe { store::<S>(sum, self.v, at) };
    }
}

/// `v = u + sum`, `u+ = s(v)`, both kept: a layer of training.
pub(super) struct Forward<'a, A> {
    pub u: &'a [f32],
    pub v: &'a mut [f32],
    pub next: &'a mut [f32],
    pub activation: A,
}

impl<A: Activation> Fused for Forward<'_, A> {
    fn source(&self) -> &[f32] {
        self.u
    }
}

impl<A: Activation> Epilogue for Forward<'_, A> {
    fn planes(&mut self) -> &mut [f32] {
        self.next
    }

    fn len(&self) -> usize {
        self.u.len().min(self.v.len()).min(self.next.len())
    }

    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        unsafe { load(simd, self.u, at) }
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(&mut self, simd: S, row: usize, at: usize, sum: S::f32s) {
        // SAFETY: the caller's promise.
        unsafe {
            store::<S>(sum, self.v, at);
            store::<S>(self.activation.apply(simd, row, sum), self.next, at);
        }
    }
}

/// `d <- rule(v, start + sum)` in place: the reverse sweep through an activation. `FROM_ZERO` drops the start.
pub(super) struct Backward<'a, A, const FROM_ZERO: bool> {
    pub d: &'a mut [f32],
    pub v: &'a [f32],
    pub activation: A,
    pub rule: Reverse<f32>,
}

impl<A: Activation, const FROM_ZERO: bool> Fused for Backward<'_, A, FROM_ZERO> {
    fn source(&self) -> &[f32] {
        self.d
    }
}

impl<A: Activation, const FROM_ZERO: bool> Epilogue for Backward<'_, A, FROM_ZERO> {
    fn planes(&mut self) -> &mut [f32] {
        self.d
    }

    fn len(&self) -> usize {
        self.d.len().min(self.v.len())
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
    unsafe fn finish<S: Simd>(&mut self, simd: S, row: usize, at: usize, sum: S::f32s) {
        // SAFETY: the caller's promise.
        let (back, v) = (sum, unsafe { load(simd, self.v, at) });
        let d = match self.rule {
            Reverse::Backprop => self.activation.derivative(simd, row, v, back),
            Reverse::Lifted { .. } => {
                self.activation.apply(simd, row, v) - self.activation.apply(simd, row, v - back)
            }
        };
        // SAFETY: the caller's promise.
        unsafe { store::<S>(d, self.d, at) };
    }
}
