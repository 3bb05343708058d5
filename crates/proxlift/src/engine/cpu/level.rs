//! The instruction sets that the kernels are compiled for.
//!
//! On x86-64 these are AVX-512, AVX2 with FMA, and SSE2, which every such processor has. SSE4.2 would bring these
//! kernels nothing, and each set takes as long to compile as the next. Elsewhere the library decides.
//!
//! A kernel is a function that is never inlined and dispatches inside, so that there is one copy of it for each
//! instruction set, however many passes call it.

use super::unit::Unit;
use crate::Result;
use fearless_simd::{Level, Simd, prelude::*};
use std::sync::OnceLock;

/// An instruction set, and the matrix unit where it is to train.
type Chosen = (Level, Option<Unit>);

/// What was chosen.
static CHOSEN: OnceLock<Chosen> = OnceLock::new();

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

/// `f`, compiled for the chosen set where all that it calls is inlined: loops over arrays are then as wide as its vectors, and give the
/// bits that they give anywhere.
#[inline(always)]
pub fn in_vectors<R>(f: impl FnOnce() -> R) -> R {
    dispatch!(chosen(), simd => {
        let _ = simd;
        f()
    })
}

/// The set that was chosen, by [`choose`] or by the environment variable `PROXLIFT_SIMD`; else the best of this machine.
pub fn chosen() -> Level {
    all().0
}

/// The matrix unit, if it was chosen.
pub fn unit() -> Option<Unit> {
    all().1
}

fn all() -> Chosen {
    *CHOSEN.get_or_init(|| {
        std::env::var("PROXLIFT_SIMD").ok().and_then(|name| named(&name)).unwrap_or_else(|| (best(), None))
    })
}

/// Chooses the instruction set of all engines that are made from now on: `avx512`, `avx2` or `sse2` on x86-64, or
/// `best`; `amx` trains on the matrix unit, in bfloat16, and is `avx512` otherwise. The same set gives the same bits on every machine that has it.
/// Fails when this machine has no such set, or an engine was made with another.
pub fn choose(name: &str) -> Result<()> {
    let level = named(name);
    let level = level.ok_or_else(|| {
        invalid!("the instruction set {name} is not one that this machine has: give {}", names())
    })?;
    let now = CHOSEN.get_or_init(|| level);
    refuse!(format!("{now:?}") != format!("{level:?}") => "another instruction set is already in use");
    Ok(())
}

/// The sets that this machine has.
fn names() -> String {
    let all = ["amx", "avx512", "avx2", "sse2", "best"];
    all.into_iter().filter(|name| named(name).is_some()).collect::<Vec<_>>().join(", ")
}

fn named(name: &str) -> Option<Chosen> {
    let vectors = |level| (level, None);
    match name {
        "best" => Some(vectors(best())),
        #[cfg(target_arch = "x86_64")]
        "amx" => Some((Level::new().as_avx512().map(Level::Avx512)?, Some(Unit::new()?))),
        #[cfg(target_arch = "x86_64")]
        "avx512" => Level::new().as_avx512().map(Level::Avx512).map(vectors),
        #[cfg(target_arch = "x86_64")]
        "avx2" => Level::new().as_avx2().map(Level::Avx2).map(vectors),
        #[cfg(target_arch = "x86_64")]
        "sse2" => Level::new().as_sse2().map(Level::Sse2).map(vectors),
        _ => None,
    }
}

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
