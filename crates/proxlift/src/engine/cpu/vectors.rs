//! Vectors from memory and back, without checks.

use fearless_simd::{Simd, prelude::*};

/// Reads the lanes of `slice` from `p` on.
/// Safety: they are inside `slice`.
#[inline(always)]
pub unsafe fn load<S: Simd>(simd: S, slice: &[f32], p: usize) -> S::f32s {
    debug_assert!(p + S::f32s::LEN <= slice.len());
    // SAFETY: the caller's promise.
    unsafe { own::load(simd, slice, p) }
}

/// Writes the lanes of `slice` from `p` on.
/// Safety: they are inside `slice`.
#[inline(always)]
pub unsafe fn store<S: Simd>(value: S::f32s, slice: &mut [f32], p: usize) {
    debug_assert!(p + S::f32s::LEN <= slice.len());
    // SAFETY: the caller's promise.
    unsafe { own::store::<S>(value, slice, p) }
}

/// The lesser of each two lanes.
#[inline(always)]
pub fn lesser<S: Simd>(a: S::f32s, b: S::f32s) -> S::f32s {
    own::lesser::<S>(a, b)
}

#[cfg(not(target_feature = "simd128"))]
mod own {
    use fearless_simd::{Simd, prelude::*};

    #[inline(always)]
    pub unsafe fn load<S: Simd>(simd: S, slice: &[f32], p: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        S::f32s::from_slice(simd, unsafe { slice.get_unchecked(p..p + S::f32s::LEN) })
    }

    #[inline(always)]
    pub unsafe fn store<S: Simd>(value: S::f32s, slice: &mut [f32], p: usize) {
        // SAFETY: the caller's promise.
        value.store_slice(unsafe { slice.get_unchecked_mut(p..p + S::f32s::LEN) });
    }

    #[inline(always)]
    pub fn lesser<S: Simd>(a: S::f32s, b: S::f32s) -> S::f32s {
        a.min(b)
    }
}

/// In browsers, reading a slice would ask whether its address is zero, and eight instructions would make sure that the lesser
/// of two lanes is a number.
#[cfg(target_feature = "simd128")]
mod own {
    use fearless_simd::Simd;
    use std::arch::wasm32::{f32x4_pmin, v128, v128_load, v128_store};
    use std::mem::transmute_copy;

    #[inline(always)]
    fn vector<S: Simd>(value: v128) -> S::f32s {
        const { assert!(size_of::<S::f32s>() == size_of::<v128>()) };
        // SAFETY: both are four floats, whose bits mean the same.
        unsafe { transmute_copy(&value) }
    }

    #[inline(always)]
    fn bits<S: Simd>(value: S::f32s) -> v128 {
        const { assert!(size_of::<S::f32s>() == size_of::<v128>()) };
        // SAFETY: both are four floats, whose bits mean the same.
        unsafe { transmute_copy(&value) }
    }

    #[inline(always)]
    pub unsafe fn load<S: Simd>(_: S, slice: &[f32], p: usize) -> S::f32s {
        // SAFETY: the caller's promise.
        vector::<S>(unsafe { v128_load(slice.as_ptr().add(p).cast()) })
    }

    #[inline(always)]
    pub unsafe fn store<S: Simd>(value: S::f32s, slice: &mut [f32], p: usize) {
        // SAFETY: the caller's promise.
        unsafe { v128_store(slice.as_mut_ptr().add(p).cast(), bits::<S>(value)) };
    }

    #[inline(always)]
    pub fn lesser<S: Simd>(a: S::f32s, b: S::f32s) -> S::f32s {
        vector::<S>(f32x4_pmin(bits::<S>(b), bits::<S>(a)))
    }
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

/// The same for numbers that will be written: it is taken from other cores that have it now, and not only when the first
/// number is there to be written, which would wait.
#[inline(always)]
pub fn prefetch_to_write<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: it changes nothing but which cache has the line, at no address does it fail, and where a processor knows no such
    // instruction, it does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    prefetch_at(at);
}
