//! Vectors from memory and back, without checks.

use fearless_simd::{Simd, prelude::*};

/// Reads the lanes of `slice` from `p` on.
/// Safety: they are inside `slice`.
#[inline(always)]
pub unsafe fn load<S: Simd>(simd: S, slice: &[f32], p: usize) -> S::f32s {
    debug_assert!(p + S::f32s::LEN <= slice.len());
    // SAFETY: the caller's promise.
    S::f32s::from_slice(simd, unsafe { slice.get_unchecked(p..p + S::f32s::LEN) })
}

/// Writes the lanes of `slice` from `p` on.
/// Safety: they are inside `slice`.
#[inline(always)]
pub unsafe fn store<S: Simd>(value: S::f32s, slice: &mut [f32], p: usize) {
    debug_assert!(p + S::f32s::LEN <= slice.len());
    // SAFETY: the caller's promise.
    value.store_slice(unsafe { slice.get_unchecked_mut(p..p + S::f32s::LEN) });
}

/// Asks for the cache line of the numbers from `p` on, which may be outside the slice, before they are needed. Features
/// lie in so many planes that the processor does not foresee which it will read.
#[inline(always)]
pub fn prefetch(slice: &[f32], p: usize) {
    prefetch_at(slice.as_ptr().wrapping_add(p));
}

/// The same for those at an address.
#[inline(always)]
pub fn prefetch_at<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and it reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
