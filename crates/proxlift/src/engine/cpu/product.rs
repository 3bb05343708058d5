//! The vector kernel that the layers of a training pass are made of.
//!
//! With the gapped planes of [`Field`](crate::field::Field), a tap is an offset, so every convolution is a small
//! matrix product whose right-hand rows are read at an offset each:
//!
//! `out_m(p) = start_m(p) + sum_k A[m,k] b(offset_k + p)`. The convolution `L` has a row per feature
//! and reads the image at each tap; the adjoint `L*` has a row per tap and reads each feature
//! ([`combine`](super::combine) then adds the taps' planes up, shifted).
//!
//! It holds a block of accumulators in registers and loads each vector once for all of them. The order of additions
//! at a pixel does not depend on where the pixel stands, so tiles and threads cannot change a bit of the result.

use super::level::{dispatch, wide};
use super::{epilogue::Epilogue, panels::Panels, vectors::load};
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};
use std::ops::Range;

/// Where the rows of a [`product`] lie: lane `p` of row `m` at `shift + m unit + p`.
#[derive(Clone, Copy)]
pub struct Place {
    pub unit: usize,
    /// Modulo the size of memory: a shift back is allowed.
    pub shift: usize,
}

impl Place {
    #[inline(always)]
    pub fn at(self, row: usize, p: usize) -> usize {
        (row * self.unit + p).wrapping_add(self.shift)
    }
}

/// `out_m(p) = start_m(p) + sum_k A[m,k] b(offset_k + p)` for `p` in `range`, whose length is a multiple of
/// [`LANES`]; the rows lie at `place`. A row has so many vectors of accumulators: `MANY` where there are registers for
/// them, else `FEW`.
#[inline(never)]
pub fn product<E, const WHOLE: usize, const SMALLER: usize, const MANY: usize, const FEW: usize>(
    level: Level,
    a: &Panels<WHOLE, SMALLER>,
    b: (&[f32], &[usize]),
    range: Range<usize>,
    place: Place,
    epilogue: &mut E,
) where
    E: Epilogue,
{
    let largest = b.1.iter().max().copied().unwrap_or(0);
    assert!(range.len().is_multiple_of(LANES) && largest + range.end <= b.0.len());
    assert!(b.1.len() == a.depth() && a.rows() > 0 && a.rows() <= epilogue.rows());
    assert!(place.at(0, range.start) <= place.at(a.rows() - 1, range.end));
    assert!(place.at(a.rows() - 1, range.end) <= epilogue.len());
    dispatch!(level, simd => {
        // SAFETY: asserted above.
        unsafe { product_at::<_, E, WHOLE, SMALLER, MANY, FEW>(simd, a, b, range, place, epilogue) }
    });
}

/// Safety: everything that [`product`] asserts.
#[inline(always)]
unsafe fn product_at<S, E, const WHOLE: usize, const SMALLER: usize, const MANY: usize, const FEW: usize>(
    simd: S,
    a: &Panels<WHOLE, SMALLER>,
    b: (&[f32], &[usize]),
    range: Range<usize>,
    place: Place,
    epilogue: &mut E,
) where
    S: Simd,
    E: Epilogue,
{
    // SAFETY: the caller's promise.
    unsafe {
        if const { wide::<S>() } {
            product_range::<S, E, WHOLE, SMALLER, MANY>(simd, a, b, range, place, epilogue);
        } else {
            product_range::<S, E, WHOLE, SMALLER, FEW>(simd, a, b, range, place, epilogue);
        }
    }
}

/// Safety: everything that [`product`] asserts.
#[inline(always)]
unsafe fn product_range<S: Simd, E: Epilogue, const WHOLE: usize, const SMALLER: usize, const N: usize>(
    simd: S,
    a: &Panels<WHOLE, SMALLER>,
    b: (&[f32], &[usize]),
    range: Range<usize>,
    place: Place,
    epilogue: &mut E,
) {
    let lanes = S::f32s::LEN;
    let mut p = range.start;
    // SAFETY: the caller's promise.
    unsafe {
        while p + N * lanes <= range.end {
            product_columns::<S, E, WHOLE, SMALLER, N>(simd, a, b, p, place, epilogue);
            p += N * lanes;
        }
        if const { !LANES.is_multiple_of(N * S::f32s::LEN) } {
            while p < range.end {
                product_columns::<S, E, WHOLE, SMALLER, 1>(simd, a, b, p, place, epilogue);
                p += lanes;
            }
        }
    }
}

/// All rows of `N` vectors.
/// Safety: everything that [`product`] asserts.
#[inline(always)]
unsafe fn product_columns<S: Simd, E: Epilogue, const WHOLE: usize, const SMALLER: usize, const N: usize>(
    simd: S,
    a: &Panels<WHOLE, SMALLER>,
    b: (&[f32], &[usize]),
    p: usize,
    place: Place,
    epilogue: &mut E,
) {
    let (whole, smaller) = a.cuts();
    // SAFETY: the caller's promise.
    unsafe {
        for m in (0..whole).step_by(WHOLE) {
            product_block::<S, E, WHOLE, N>(simd, a.block(m..m + WHOLE), m, b, p, place, epilogue);
        }
        for m in (whole..smaller).step_by(SMALLER) {
            product_block::<S, E, SMALLER, N>(simd, a.block(m..m + SMALLER), m, b, p, place, epilogue);
        }
        for m in smaller..a.rows() {
            product_block::<S, E, 1, N>(simd, a.block(m..m + 1), m, b, p, place, epilogue);
        }
        for m in 0..a.rows() {
            epilogue.after::<S, 1, N>(simd, m, [place.at(m, p)]);
        }
    }
}

/// `BLOCK` rows by `N` vectors of accumulators.
/// Safety: everything that [`product`] asserts.
#[inline(always)]
unsafe fn product_block<S: Simd, E: Epilogue, const BLOCK: usize, const N: usize>(
    simd: S,
    a: &[f32],
    first: usize,
    (b, offsets): (&[f32], &[usize]),
    p: usize,
    place: Place,
    epilogue: &mut E,
) {
    let lanes = S::f32s::LEN;
    let zero = S::f32s::splat(simd, 0.0);
    let mut sums = [[zero; N]; BLOCK];
    for (m, sums) in sums.iter_mut().enumerate() {
        for (n, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the lanes of all rows were asserted to be inside.
            *sum = unsafe { epilogue.start(simd, place.at(first + m, p + n * lanes)) };
        }
    }
    for (a, offset) in a.as_chunks::<BLOCK>().0.iter().zip(offsets) {
        let mut vectors = [zero; N];
        for (n, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: the largest offset plus the end of the range was asserted to be inside `b`.
            *vector = unsafe { load(simd, b, offset + p + n * lanes) };
        }
        for m in 0..BLOCK {
            let weight = S::f32s::splat(simd, a[m]);
            for n in 0..N {
                sums[m][n] = weight.mul_add(vectors[n], sums[m][n]);
            }
        }
    }
    for (m, sums) in sums.iter().enumerate() {
        // SAFETY: the lanes of all rows were asserted to be inside.
        unsafe { epilogue.finish(simd, first + m, [place.at(first + m, p)], [*sums]) };
    }
}
