//! The vector kernel of the weight gradients.

use super::{level::dispatch, vectors::load};
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};
use std::ops::Range;

/// Pixels that a correlation adds up in one go; its partial sums bound the rounding error on large images.
const CHUNK: usize = 4096;

/// `gradient[j,t] += scale sum_p d_j(p) x(offset_t + p)` over a plane of `len` numbers.
#[inline(never)]
pub fn correlate(
    level: Level,
    scale: f32,
    d: &[f32],
    (x, offsets): (&[f32], &[usize]),
    len: usize,
    gradient: &mut [f32],
) {
    let largest = offsets.iter().max().copied().unwrap_or(0);
    assert!(len.is_multiple_of(LANES) && largest + len <= x.len());
    dispatch!(level, simd => correlate_chunks(simd, scale, d, (x, offsets), len, gradient));
}

#[inline(always)]
fn correlate_chunks<S: Simd>(
    simd: S,
    scale: f32,
    d: &[f32],
    (x, offsets): (&[f32], &[usize]),
    len: usize,
    gradient: &mut [f32],
) {
    for start in (0..len).step_by(CHUNK) {
        let range = start..len.min(start + CHUNK);
        let features = d.len() / len;
        let mut j = 0;
        while j + 4 <= features {
            correlate_features::<S, 4>(simd, scale, &d[j * len..], len, (x, offsets), &range, j, gradient);
            j += 4;
        }
        while j < features {
            correlate_features::<S, 1>(simd, scale, &d[j * len..], len, (x, offsets), &range, j, gradient);
            j += 1;
        }
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn correlate_features<S: Simd, const J: usize>(
    simd: S,
    scale: f32,
    d: &[f32],
    len: usize,
    (x, offsets): (&[f32], &[usize]),
    range: &Range<usize>,
    first: usize,
    gradient: &mut [f32],
) {
    let taps = offsets.len();
    let rows: [&[f32]; J] = std::array::from_fn(|j| &d[j * len..][range.clone()]);
    let row = |t: usize| move |j: usize| (first + j) * taps + t;
    let mut t = 0;
    while t + 3 <= taps {
        correlate_block::<S, J, 3>(simd, scale, rows, (x, &offsets[t..]), range.start, row(t), gradient);
        t += 3;
    }
    while t < taps {
        correlate_block::<S, J, 1>(simd, scale, rows, (x, &offsets[t..]), range.start, row(t), gradient);
        t += 1;
    }
}

#[inline(always)]
fn correlate_block<S: Simd, const J: usize, const T: usize>(
    simd: S,
    scale: f32,
    d: [&[f32]; J],
    (x, offsets): (&[f32], &[usize]),
    start: usize,
    row: impl Fn(usize) -> usize,
    gradient: &mut [f32],
) {
    let lanes = S::f32s::LEN;
    let len = d[0].len();
    let x: [&[f32]; T] = std::array::from_fn(|t| &x[offsets[t] + start..][..len]);
    let zero = S::f32s::splat(simd, 0.0);
    let mut sums = [[zero; T]; J];
    let mut p = 0;
    while p + lanes <= len {
        let mut vectors = [zero; T];
        for t in 0..T {
            // SAFETY: all rows have `len` numbers.
            vectors[t] = unsafe { load(simd, x[t], p) };
        }
        for j in 0..J {
            // SAFETY: all rows have `len` numbers.
            let dj = unsafe { load(simd, d[j], p) };
            for t in 0..T {
                sums[j][t] = dj.mul_add(vectors[t], sums[j][t]);
            }
        }
        p += lanes;
    }
    for (j, sums) in sums.iter().enumerate() {
        for (t, sum) in sums.iter().enumerate() {
            gradient[row(j) + t] += scale * sum.reduce_sum();
        }
    }
}
