//! The vector kernel that adds rows up: the taps' planes back to pixels, or image rows before a convolution.

use super::level::dispatch;
use super::vectors::{load, store};
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};

/// Where the rows of a sum stand, and with which sign they are added.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    plus: Vec<usize>,
    minus: Vec<usize>,
    largest: usize,
}

impl Signed {
    /// Rows that are all added.
    pub fn plus(plus: Vec<usize>) -> Self {
        Self { largest: plus.iter().max().copied().unwrap_or(0), plus, minus: Vec::new() }
    }

    pub fn add(&mut self, sign: f32, offset: usize) {
        if sign > 0.0 { &mut self.plus } else { &mut self.minus }.push(offset);
        self.largest = self.largest.max(offset);
    }
}

#[derive(Clone, Copy)]
pub enum Start<'a> {
    Zero,
    Minus(&'a [f32]),
    /// What is in its place.
    Out,
}

/// `out(i) = mask(i) (start(i) + sum_t +-b(offset_t + from + i))` for all `i`.
#[inline(never)]
pub fn combine(
    level: Level,
    b: &[f32],
    rows: &Signed,
    from: usize,
    start: Start<'_>,
    mask: Option<&[f32]>,
    out: &mut [f32],
) {
    assert!(out.len().is_multiple_of(LANES) && rows.largest + from + out.len() <= b.len());
    assert!(mask.is_none_or(|mask| mask.len() == out.len()));
    assert!(if let Start::Minus(z) = start { z.len() == out.len() } else { true });
    // SAFETY: asserted above.
    dispatch!(level, simd => unsafe { combine_all(simd, &b[from..], rows, start, mask, out) });
}

/// `out_m(i) = sum_t +-b(offset_mt + from + i)` for the first `len` numbers of planes `stride` apart, each with its own
/// offsets.
#[inline(never)]
pub fn combine_planes(
    level: Level,
    b: &[f32],
    rows: &[Signed],
    from: usize,
    (out, stride): (&mut [f32], usize),
    len: usize,
) {
    let largest = rows.iter().map(|rows| rows.largest).max().unwrap_or(0);
    assert!(len.is_multiple_of(LANES) && largest + from + len <= b.len());
    dispatch!(level, simd => for (rows, out) in rows.iter().zip(out.chunks_exact_mut(stride)) {
        // SAFETY: asserted above.
        unsafe { combine_all(simd, &b[from..], rows, Start::Zero, None, &mut out[..len]) };
    });
}

/// Safety: everything that [`combine`] asserts.
#[inline(always)]
unsafe fn combine_all<S: Simd>(
    simd: S,
    b: &[f32],
    rows: &Signed,
    start: Start<'_>,
    mask: Option<&[f32]>,
    out: &mut [f32],
) {
    let lanes = S::f32s::LEN;
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + 6 * lanes <= out.len() {
            combine_columns::<S, 6>(simd, b, rows, start, mask, i, out);
            i += 6 * lanes;
        }
        while i + 2 * lanes <= out.len() {
            combine_columns::<S, 2>(simd, b, rows, start, mask, i, out);
            i += 2 * lanes;
        }
        while i < out.len() {
            combine_columns::<S, 1>(simd, b, rows, start, mask, i, out);
            i += lanes;
        }
    }
}

/// Safety: everything that [`combine`] asserts.
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
