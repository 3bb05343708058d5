//! Features in half the memory: what a layer went through is kept in 16 bits for the reverse sweep, since memory, not the
//! matrix unit, would set the pace. `v` has the eleven bits of half precision; `u = s(v)` is computed again.

// Iterators over arrays of vectors would move these through memory.
#![allow(clippy::needless_range_loop)]

use super::super::activation::PackedActivation;
use super::super::epilogue::{Epilogue, memory};
use super::super::learned::Kept;
use super::super::vectors::{load, prefetch_at, store};
use fearless_simd::{Simd, prelude::*};
use std::arch::asm;
use std::arch::x86_64::{
    __m256i, __m512, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm512_cvtph_ps, _mm512_cvtps_ph,
};
use std::mem::transmute_copy;

/// `v` in half precision, and where `s(v)` goes in bfloat16.
pub struct Half<'a> {
    pub v: &'a [u16],
    pub u: &'a mut [u16],
}

impl Kept for Half<'_> {
    const WANTS_ACTIVATED: bool = true;

    fn len(&self) -> usize {
        self.v.len().min(self.u.len())
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(&self, _: S, at: usize) -> S::f32s {
        debug_assert!(at + 16 <= self.v.len());
        // SAFETY: the caller's promise; only AVX-512 comes here.
        unsafe { of_vector::<S>(_mm512_cvtph_ps(_mm256_loadu_si256(self.v.as_ptr().add(at).cast()))) }
    }

    #[inline(always)]
    fn prefetch(&self, at: usize) {
        prefetch_at(self.v.as_ptr().wrapping_add(at));
    }

    #[inline(always)]
    unsafe fn activated<S: Simd>(&mut self, at: usize, u: S::f32s) {
        debug_assert!(at + 16 <= self.u.len());
        // SAFETY: the caller's promise.
        unsafe { keep(vector::<S>(u), self.u.as_mut_ptr().add(at)) };
    }
}

/// `v = u + sum`, kept, and `u <- s(v)` in place; both are zero in the gaps.
pub struct Forward<'a> {
    pub u: &'a mut [f32],
    pub v: &'a mut [u16],
    pub activation: &'a PackedActivation,
    /// One at pixels.
    pub mask: &'a [f32],
}

// SAFETY: `len` is that of the shortest slice.
unsafe impl Epilogue for Forward<'_> {
    memory!(self, Some(self.u) => self.u, self.v);

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        let mut v = sums;
        for p in 0..P {
            for n in 0..N {
                let pixel = at[p] + n * S::f32s::LEN - row * self.mask.len();
                // SAFETY: a pixel of the mask stands for one of every row.
                v[p][n] *= unsafe { load(simd, self.mask, pixel) };
            }
        }
        let u = self.activation.apply(simd, row, v);
        for p in 0..P {
            for n in 0..N {
                let at = at[p] + n * S::f32s::LEN;
                // SAFETY: the caller's promise.
                unsafe {
                    store::<S>(u[p][n], self.u, at);
                    keep_half(vector::<S>(v[p][n]), self.v.as_mut_ptr().add(at));
                }
            }
        }
    }
}

/// Rounds all numbers.
pub fn round(values: &[f32], to: &mut [u16]) {
    assert_eq!(values.len(), to.len());
    to.iter_mut().zip(values).for_each(|(to, &value)| *to = super::rounded(value));
}

#[inline(always)]
fn vector<S: Simd>(value: S::f32s) -> __m512 {
    assert!(size_of::<S::f32s>() == size_of::<__m512>(), "a matrix unit comes with AVX-512");
    // SAFETY: both are sixteen floats.
    unsafe { transmute_copy(&value) }
}

#[inline(always)]
fn of_vector<S: Simd>(value: __m512) -> S::f32s {
    assert!(size_of::<S::f32s>() == size_of::<__m512>(), "a matrix unit comes with AVX-512");
    // SAFETY: both are sixteen floats.
    unsafe { transmute_copy(&value) }
}

/// Safety: there is room for sixteen numbers.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn keep_half(value: __m512, to: *mut u16) {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<NEAREST>(value)) };
}

/// Safety: there is room for sixteen numbers.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn keep(value: __m512, to: *mut u16) {
    let rounded: __m256i;
    // SAFETY: the caller's promise.
    unsafe {
        asm!("vcvtneps2bf16 {0}, {1}", lateout(ymm_reg) rounded, in(zmm_reg) value,
            options(pure, nomem, nostack, preserves_flags));
        _mm256_storeu_si256(to.cast(), rounded);
    }
}
