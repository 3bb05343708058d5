//! The vector kernel that layers are made of.
//!
//! With the gapped planes of [`Field`](crate::field::Field), a tap is an offset, so every convolution is a small
//! matrix product whose right-hand rows are read at an offset each:
//!
//! `out_m(p) = start_m(p) + sum_k A[m,k] b(offset_k + p)`. The convolution `L` has a row per feature
//! and reads the image at each tap; the adjoint `L*` has a row per tap and reads each feature ([`combine`] then adds
//! the taps' planes up, shifted).
//!
//! It holds a block of accumulators in registers and loads each vector once for all of them. The order of additions
//! at a pixel does not depend on where the pixel stands, so tiles and threads cannot change a bit of the result.

use crate::field::LANES;
use fearless_simd::{Simd, prelude::*};
use std::ops::Range;

/// A matrix `A`, its rows in [`blocks`] that lie interleaved.
#[derive(Clone, Debug, Default)]
pub(super) struct Panels {
    data: Vec<f32>,
    rows: usize,
    depth: usize,
}

impl Panels {
    /// Packs `entry(row, k)`.
    pub(super) fn pack<const BLOCK: usize>(
        &mut self,
        rows: usize,
        depth: usize,
        entry: impl Fn(usize, usize) -> f32,
    ) {
        (self.rows, self.depth) = (rows, depth);
        self.data.clear();
        let mut first = 0;
        for (count, block) in blocks::<BLOCK>(rows) {
            for _ in 0..count {
                for k in 0..depth {
                    self.data.extend((first..first + block).map(|row| entry(row, k)));
                }
                first += block;
            }
        }
    }
}

/// How many blocks of how many rows: of `BLOCK`, of [`SMALLER`] if so many are left, of one.
fn blocks<const BLOCK: usize>(rows: usize) -> [(usize, usize); 3] {
    let left = rows % BLOCK;
    let smaller = if BLOCK > SMALLER { left / SMALLER } else { 0 };
    [(rows / BLOCK, BLOCK), (smaller, SMALLER), (left - smaller * SMALLER, 1)]
}

/// Rows of a block where there are too few for a whole one.
const SMALLER: usize = 4;

/// Where the rows of a [`product`] lie: lane `p` of row `m` at `shift + m unit + p`.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub unit: usize,
    /// Modulo the size of memory: a shift back is allowed.
    pub shift: usize,
}

impl Place {
    #[inline(always)]
    pub(super) fn at(self, row: usize, p: usize) -> usize {
        (row * self.unit + p).wrapping_add(self.shift)
    }
}

/// Where a [`product`] starts from and where it goes, one vector at a time.
pub(super) trait Epilogue {
    /// The planes that it writes and whose gaps are to be zero afterwards.
    fn planes(&mut self) -> &mut [f32];
    /// Numbers that may be touched.
    fn len(&self) -> usize;
    /// Rows that it knows what to do with.
    fn rows(&self) -> usize;
    /// What the sum of the lanes from `at` on starts from.
    ///
    /// # Safety
    /// These lanes are before [`Epilogue::len`].
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s;
    /// Takes the sums of row `row` for `N` vectors from each `at` on.
    ///
    /// # Safety
    /// These lanes are before [`Epilogue::len`], and the row is before [`Epilogue::rows`].
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    );
}

/// An epilogue that a layer can be fused around: the layer's adjoint reads the features that it will replace.
pub(super) trait Fused: Epilogue {
    /// The features before the layer.
    fn source(&self) -> &[f32];
}

/// Reads the lanes of `slice` from `p` on.
///
/// # Safety
/// They are inside `slice`.
#[inline(always)]
pub(super) unsafe fn load<S: Simd>(simd: S, slice: &[f32], p: usize) -> S::f32s {
    debug_assert!(p + S::f32s::LEN <= slice.len());
    // SAFETY: the caller's promise.
    S::f32s::from_slice(simd, unsafe { slice.get_unchecked(p..p + S::f32s::LEN) })
}

/// Asks for the cache line of the numbers from `p` on, which may be outside the slice, before they are needed. Features
/// lie in so many planes that the processor does not foresee which it will read.
#[inline(always)]
pub(super) fn prefetch(slice: &[f32], p: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and it reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(p).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, p);
}

/// Writes the lanes of `slice` from `p` on.
///
/// # Safety
/// They are inside `slice`.
#[inline(always)]
pub(super) unsafe fn store<S: Simd>(value: S::f32s, slice: &mut [f32], p: usize) {
    debug_assert!(p + S::f32s::LEN <= slice.len());
    // SAFETY: the caller's promise.
    value.store_slice(unsafe { slice.get_unchecked_mut(p..p + S::f32s::LEN) });
}

/// `BLOCK` rows by `N` vectors of accumulators.
///
/// # Safety
/// Everything that [`product`] asserts.
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
    for (a, offset) in a.chunks_exact(BLOCK).zip(offsets) {
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

/// # Safety
/// Everything that [`product`] asserts.
#[inline(always)]
unsafe fn product_columns<S: Simd, E: Epilogue, const BLOCK: usize, const N: usize>(
    simd: S,
    a: &Panels,
    b: (&[f32], &[usize]),
    p: usize,
    place: Place,
    epilogue: &mut E,
) {
    let [(whole, _), (smaller, _), _] = blocks::<BLOCK>(a.rows);
    let (panels, rest) = a.data.split_at(whole * BLOCK * a.depth);
    let (smaller_panels, single) = rest.split_at(smaller * SMALLER * a.depth);
    let mut first = 0;
    // SAFETY: the caller's promise.
    unsafe {
        for panel in panels.chunks_exact(BLOCK * a.depth) {
            product_block::<S, E, BLOCK, N>(simd, panel, first, b, p, place, epilogue);
            first += BLOCK;
        }
        if BLOCK > SMALLER {
            for panel in smaller_panels.chunks_exact(SMALLER * a.depth) {
                product_block::<S, E, SMALLER, N>(simd, panel, first, b, p, place, epilogue);
                first += SMALLER;
            }
        }
        for panel in single.chunks_exact(a.depth) {
            product_block::<S, E, 1, N>(simd, panel, first, b, p, place, epilogue);
            first += 1;
        }
    }
}

/// `out_m(p) = start_m(p) + sum_k A[m,k] b(offset_k + p)` for `p` in `range`, whose length is a multiple of
/// [`LANES`]; the rows lie at `place`.
#[inline(always)]
pub(super) fn product<S: Simd, E: Epilogue, const BLOCK: usize, const N: usize>(
    simd: S,
    a: &Panels,
    b: (&[f32], &[usize]),
    range: Range<usize>,
    place: Place,
    epilogue: &mut E,
) {
    let lanes = S::f32s::LEN;
    let largest = b.1.iter().max().copied().unwrap_or(0);
    assert!(range.len().is_multiple_of(LANES) && largest + range.end <= b.0.len());
    assert!(b.1.len() == a.depth && a.rows > 0 && a.rows <= epilogue.rows());
    assert!(place.at(0, range.start) <= place.at(a.rows - 1, range.end));
    assert!(place.at(a.rows - 1, range.end) <= epilogue.len());
    let mut p = range.start;
    while p + N * lanes <= range.end {
        // SAFETY: asserted above.
        unsafe { product_columns::<S, E, BLOCK, N>(simd, a, b, p, place, epilogue) };
        p += N * lanes;
    }
    while p < range.end {
        // SAFETY: asserted above.
        unsafe { product_columns::<S, E, BLOCK, 1>(simd, a, b, p, place, epilogue) };
        p += lanes;
    }
}

/// Where the rows of a sum stand, and with which sign they are added.
#[derive(Clone, Debug, Default)]
pub(super) struct Signed {
    pub plus: Vec<usize>,
    pub minus: Vec<usize>,
}

impl Signed {
    pub(super) fn add(&mut self, sign: f32, offset: usize) {
        if sign > 0.0 { &mut self.plus } else { &mut self.minus }.push(offset);
    }
}

/// What a sum starts from.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    Zero,
    Minus(&'a [f32]),
    /// What is in its place.
    Out,
}

/// `out(i) = mask(i) (start(i) + sum_t +-b(offset_t + from + i))` for all `i`: the taps' planes back to pixels.
#[inline(always)]
pub(super) fn combine<S: Simd>(
    simd: S,
    b: &[f32],
    rows: &Signed,
    from: usize,
    start: Start<'_>,
    mask: Option<&[f32]>,
    out: &mut [f32],
) {
    let lanes = S::f32s::LEN;
    let largest = rows.plus.iter().chain(&rows.minus).max().copied().unwrap_or(0);
    assert!(out.len().is_multiple_of(LANES) && largest + from + out.len() <= b.len());
    assert!(mask.is_none_or(|mask| mask.len() == out.len()));
    assert!(if let Start::Minus(z) = start { z.len() == out.len() } else { true });
    let mut i = 0;
    while i + 6 * lanes <= out.len() {
        // SAFETY: asserted above.
        unsafe { combine_columns::<S, 6>(simd, &b[from..], rows, start, mask, i, out) };
        i += 6 * lanes;
    }
    while i + 2 * lanes <= out.len() {
        // SAFETY: asserted above.
        unsafe { combine_columns::<S, 2>(simd, &b[from..], rows, start, mask, i, out) };
        i += 2 * lanes;
    }
    while i < out.len() {
        // SAFETY: asserted above.
        unsafe { combine_columns::<S, 1>(simd, &b[from..], rows, start, mask, i, out) };
        i += lanes;
    }
}

/// # Safety
/// Everything that [`combine`] asserts.
#[inline(always)]
unsafe fn combine_columns<S: Simd, const N: usize>(
    simd: S,
    b: &[f32],
    rows: &Signed,
    start: Start<'_>,
    mask: Option<&[f32]>,
    i: usize,
    out: &mut [f32],
) {
    let at = |n: usize| i + n * S::f32s::LEN;
    let mut sums = [S::f32s::splat(simd, 0.0); N];
    // SAFETY: the caller's promise.
    unsafe {
        for (n, sum) in sums.iter_mut().enumerate() {
            match start {
                Start::Zero => {}
                Start::Minus(z) => *sum = -load(simd, z, at(n)),
                Start::Out => *sum = load(simd, out, at(n)),
            }
        }
        for offset in &rows.plus {
            for (n, sum) in sums.iter_mut().enumerate() {
                *sum += load(simd, b, offset + at(n));
            }
        }
        for offset in &rows.minus {
            for (n, sum) in sums.iter_mut().enumerate() {
                *sum -= load(simd, b, offset + at(n));
            }
        }
        for (n, sum) in sums.iter().enumerate() {
            let sum = if let Some(mask) = mask { *sum * load(simd, mask, at(n)) } else { *sum };
            store::<S>(sum, out, at(n));
        }
    }
}
