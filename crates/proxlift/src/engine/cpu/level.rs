//! The instruction sets that the kernels are compiled for.
//!
//! On x86-64 these are AVX-512, AVX2 with FMA, and SSE2, which every such processor has. SSE4.2 would bring these
//! kernels nothing, and each set takes as long to compile as the next. Elsewhere the library decides.
//!
//! A kernel is a function that is never inlined and dispatches inside, so that there is one copy of it for each
//! instruction set, however many passes call it.

use fearless_simd::{Level, Simd, prelude::*};

/// `$op`, compiled for every instruction set, with `$simd` that of `$level`.
#[cfg(target_arch = "x86_64")]
macro_rules! dispatch {
    ($level:expr, $simd:ident => $op:expr) => {{
        use fearless_simd::Simd as _;
        let level: fearless_simd::Level = $level;
        if let Some($simd) = level.as_avx512() {
            $simd.vectorize(
                #[inline(always)]
                || $op,
            )
        } else if let Some($simd) = level.as_avx2() {
            $simd.vectorize(
                #[inline(always)]
                || $op,
            )
        } else {
            let $simd = level.as_sse2().expect("x86-64 has SSE2");
            $op
        }
    }};
}
#[cfg(target_arch = "x86_64")]
pub(super) use dispatch;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use fearless_simd::dispatch;

/// The best set of this machine that the kernels are compiled for.
pub fn best() -> Level {
    match Level::new() {
        #[cfg(target_arch = "x86_64")]
        Level::Sse4_2(_) => Level::baseline(),
        level => level,
    }
}

/// Whether there are registers for four vectors of accumulators a row.
#[inline(always)]
pub const fn wide<S: Simd>() -> bool {
    S::f32s::LEN >= 16 || cfg!(target_arch = "aarch64")
}
