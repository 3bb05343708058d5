//! The vector kernel of the adjoint in pairs of rows.

use super::{UNIT, unit};
use crate::engine::cpu::level::{dispatch, wide};
use crate::engine::cpu::product::Place;
use crate::engine::cpu::vectors::{load, store};
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};
use std::ops::Range;

/// Taps of the blocks that the kernel holds in registers: the points of a kernel of 5x5 have five or ten for each channel, those of
/// 3x3 have three.
const WHOLE: usize = 5;
const SMALLER: usize = 3;
pub type Panels = crate::engine::cpu::panels::Panels<WHOLE, SMALLER>;

/// The rows of a feature that a point takes: their sum, their difference, or one of them.
const SUM: u8 = 0;
const DIFFERENCE: u8 = 1;
const ONE: u8 = 2;

/// `M` taps by `N` vectors of the products at a point, which takes these `ROWS` of features that lie from `base` on.
/// Safety: everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_block<S: Simd, const ROWS: u8, const M: usize, const N: usize>(
    simd: S,
    a: &[f32],
    (u, base): (&[f32], usize),
    p: usize,
    (planes, at): (&mut [f32], Place),
    first: usize,
) {
    let lanes = S::f32s::LEN;
    let zero = S::f32s::splat(simd, 0.0);
    let mut sums = [[zero; N]; M];
    let mut row = base;
    for a in a.as_chunks::<M>().0 {
        let mut values = [zero; N];
        for (n, value) in values.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let u = u.get_unchecked(row..);
                *value = load(simd, u, n * lanes);
                match ROWS {
                    SUM => *value += load(simd, u, UNIT + n * lanes),
                    DIFFERENCE => *value -= load(simd, u, UNIT + n * lanes),
                    _ => {}
                }
            }
        }
        for m in 0..M {
            let weight = S::f32s::splat(simd, a[m]);
            for n in 0..N {
                sums[m][n] = weight.mul_add(values[n], sums[m][n]);
            }
        }
        row += 2 * UNIT;
    }
    for (m, sums) in sums.iter().enumerate() {
        for (n, sum) in sums.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { store::<S>(*sum, planes, at.at(first + m, p + n * lanes)) };
        }
    }
}

/// All taps of a point, which come after those `before`; returns what comes before the next.
/// Safety: everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_columns<S: Simd, const ROWS: u8, const N: usize>(
    simd: S,
    a: &Panels,
    u: (&[f32], usize),
    p: usize,
    (planes, at): (&mut [f32], Place),
    before: usize,
) -> usize {
    let (whole, smaller) = a.cuts();
    // SAFETY: the caller's promise.
    unsafe {
        for t in (0..whole).step_by(WHOLE) {
            let block = a.block(t..t + WHOLE);
            adjoint_block::<S, ROWS, WHOLE, N>(simd, block, u, p, (planes, at), before + t);
        }
        for t in (whole..smaller).step_by(SMALLER) {
            let block = a.block(t..t + SMALLER);
            adjoint_block::<S, ROWS, SMALLER, N>(simd, block, u, p, (planes, at), before + t);
        }
        for t in smaller..a.rows() {
            adjoint_block::<S, ROWS, 1, N>(simd, a.block(t..t + 1), u, p, (planes, at), before + t);
        }
    }
    before + a.rows()
}

/// All points of some vectors.
/// Safety: everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_points<S: Simd, const N: usize>(
    simd: S,
    a: &[Panels; 4],
    (u, base): (&[f32], usize),
    p: usize,
    (planes, at): (&mut [f32], Place),
) {
    let [one, minus, zero, infinity] = a;
    // SAFETY: the caller's promise.
    unsafe {
        let rows = adjoint_columns::<S, SUM, N>(simd, one, (u, base), p, (planes, at), 0);
        let rows = adjoint_columns::<S, DIFFERENCE, N>(simd, minus, (u, base), p, (planes, at), rows);
        let rows = adjoint_columns::<S, ONE, N>(simd, zero, (u, base), p, (planes, at), rows);
        adjoint_columns::<S, ONE, N>(simd, infinity, (u, base + UNIT), p, (planes, at), rows);
    }
}

/// The products of every tap of every term, summed over the features, for the pairs' numbers in `range`, both ends
/// multiples of [`LANES`]; the planes of the products lie `at`.
#[inline(never)]
pub fn adjoint(
    level: Level,
    a: &[Panels; 4],
    u: &[f32],
    range: Range<usize>,
    (planes, at): (&mut [f32], Place),
) {
    let (rows, features) = (a.iter().map(Panels::rows).sum::<usize>(), a[0].depth());
    assert!(range.start.is_multiple_of(LANES) && range.end.is_multiple_of(LANES));
    assert!(2 * features * range.end.next_multiple_of(UNIT) <= u.len());
    assert!(a.iter().all(|a| a.depth() == features));
    assert!(at.at(0, range.start) <= at.at(rows - 1, range.end));
    assert!(at.at(rows - 1, range.end) <= planes.len());
    // SAFETY: asserted above.
    dispatch!(level, simd => unsafe { adjoint_range(simd, a, u, range, (planes, at)) });
}

/// Safety: everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_range<S: Simd>(
    simd: S,
    a: &[Panels; 4],
    u: &[f32],
    range: Range<usize>,
    planes: (&mut [f32], Place),
) {
    // SAFETY: the caller's promise.
    unsafe {
        // Ten sums, or nine, leave sixteen registers some for the rest.
        if const { !wide::<S>() } && a.iter().any(|a| a.cuts().0 > 0) {
            adjoint_vectors::<S, 2>(simd, a, u, range, planes);
        } else {
            adjoint_vectors::<S, 3>(simd, a, u, range, planes);
        }
    }
}

/// `N` vectors at a time.
/// Safety: everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_vectors<S: Simd, const N: usize>(
    simd: S,
    a: &[Panels; 4],
    u: &[f32],
    range: Range<usize>,
    (planes, at): (&mut [f32], Place),
) {
    let mut p = range.start;
    while p < range.end {
        let (base, together) = unit(2 * a[0].depth(), p);
        let left = together.min(range.end - p);
        // SAFETY: the caller's promise.
        unsafe {
            if left >= N * S::f32s::LEN {
                adjoint_points::<S, N>(simd, a, (u, base), p, (planes, at));
                p += N * S::f32s::LEN;
            } else {
                adjoint_points::<S, 1>(simd, a, (u, base), p, (planes, at));
                p += S::f32s::LEN;
            }
        }
    }
}
