//! The vector kernels of pairs of rows: the sums of the four points, for a convolution and for its adjoint.

use super::{POINTS, Point};
use crate::engine::cpu::epilogue::Epilogue;
use crate::engine::cpu::level::{dispatch, wide};
use crate::engine::cpu::product::Place;
use crate::engine::cpu::vectors::{load, store};
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};
use std::ops::Range;

/// Rows of the blocks that a kernel holds in registers.
const WHOLE: usize = 3;
const SMALLER: usize = 2;
type Panels = crate::engine::cpu::panels::Panels<WHOLE, SMALLER>;

/// Numbers of each feature that lie together: so many of the first feature's even rows, of its odd ones, of the next
/// feature, and after all features the next numbers. A pass reads memory from one end to the other, and a register
/// block of either kernel is never cut.
pub(super) const UNIT: usize = 48;

/// Where the numbers from `p` on of the first of `planes` planes lie, and how many there are in one piece.
#[inline(always)]
pub(super) fn unit(planes: usize, p: usize) -> (usize, usize) {
    (p / UNIT * planes * UNIT + p % UNIT, UNIT - p % UNIT)
}

/// Numbers whose taps are in memory at once: a multiple of what the kernels take at a time.
pub(super) const STRETCH: usize = 240;

/// Numbers before and after a stretch that taps along a row may reach.
pub(super) const SIDE: usize = LANES;

/// The distance between two planes of a stretch.
pub(super) const PLANE: usize = STRETCH + 2 * SIDE;

/// Combined image rows, a plane a term and channel.
#[derive(Clone, Copy)]
pub(super) struct Combined<'a> {
    pub data: &'a [f32],
    /// Planes of each point.
    pub planes: [usize; POINTS.len()],
    /// Taps along a row.
    pub kernel: usize,
}

/// `sums_m(p) += A[m,k] b(p)` for `M` rows by `N` vectors: one tap, perhaps the first.
///
/// # Safety
/// The lanes of `b` and the column of `A` are inside.
#[inline(always)]
unsafe fn add_tap<S: Simd, const FIRST: bool, const M: usize, const N: usize>(
    simd: S,
    sums: &mut [[S::f32s; N]; M],
    (a, column): (&[f32], usize),
    (b, at): (&[f32], usize),
) {
    let mut vectors = [S::f32s::splat(simd, 0.0); N];
    for (n, vector) in vectors.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *vector = unsafe { load(simd, b, at + n * S::f32s::LEN) };
    }
    for (m, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let weight = S::f32s::splat(simd, unsafe { *a.get_unchecked(column * M + m) });
        for n in 0..N {
            sums[n] = if FIRST { weight * vectors[n] } else { weight.mul_add(vectors[n], sums[n]) };
        }
    }
}

/// Both rows of a pair of `M` features, `N` vectors of each. Two points at a time, because the compiler would put off
/// what is needed last, and there are just enough registers for what is needed now.
///
/// With `SINGLE`, a point has one plane of three taps.
///
/// # Safety
/// Everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_block<S: Simd, E: Epilogue, const SINGLE: bool, const M: usize, const N: usize>(
    simd: S,
    a: &[f32],
    first: usize,
    Combined { data, planes, kernel }: Combined<'_>,
    (from, base): (usize, usize),
    epilogue: &mut E,
) {
    let ([ones, minuses, zeros, _], kernel) = if SINGLE { ([1; 4], 3) } else { (planes, kernel) };
    let at = |m: usize, n: usize| base + 2 * (first + m) * UNIT + n * S::f32s::LEN;
    let from = from + SIDE - kernel / 2;
    let zero = S::f32s::splat(simd, 0.0);
    let (mut even, mut odd) = ([[zero; N]; M], [[zero; N]; M]);
    // SAFETY: the caller's promise.
    unsafe {
        if ones > 0 {
            add_tap::<S, true, M, N>(simd, &mut even, (a, 0), (data, from));
        }
        if minuses > 0 {
            add_tap::<S, true, M, N>(simd, &mut odd, (a, ones * kernel), (data, ones * PLANE + from));
        }
        for plane in 0..ones {
            for tap in usize::from(plane == 0)..kernel {
                let (column, at) = (plane * kernel + tap, plane * PLANE + from + tap);
                add_tap::<S, false, M, N>(simd, &mut even, (a, column), (data, at));
                if plane < minuses {
                    let (column, at) = (column + ones * kernel, at + ones * PLANE);
                    add_tap::<S, false, M, N>(simd, &mut odd, (a, column), (data, at));
                }
            }
        }
        for m in 0..M {
            for n in 0..N {
                let (one, minus) = (even[m][n], odd[m][n]);
                even[m][n] = (one + minus) + epilogue.start(simd, at(m, n));
                odd[m][n] = (one - minus) + epilogue.start(simd, at(m, n) + UNIT);
            }
        }
        for plane in ones + minuses..ones + minuses + zeros {
            for tap in 0..kernel {
                let (column, at) = (plane * kernel + tap, plane * PLANE + from + tap);
                add_tap::<S, false, M, N>(simd, &mut even, (a, column), (data, at));
                let (column, at) = (column + zeros * kernel, at + zeros * PLANE);
                add_tap::<S, false, M, N>(simd, &mut odd, (a, column), (data, at));
            }
        }
        for m in 0..M {
            epilogue.finish(simd, first + m, [at(m, 0), at(m, 0) + UNIT], [even[m], odd[m]]);
        }
    }
}

/// All features of `N` vectors.
///
/// # Safety
/// Everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_columns<S: Simd, E: Epilogue, const SINGLE: bool, const N: usize>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    at: (usize, usize),
    epilogue: &mut E,
) {
    let (whole, smaller) = a.cuts();
    // SAFETY: the caller's promise.
    unsafe {
        for j in (0..whole).step_by(WHOLE) {
            convolve_block::<S, E, SINGLE, WHOLE, N>(simd, a.block(j..j + WHOLE), j, b, at, epilogue);
        }
        for j in (whole..smaller).step_by(SMALLER) {
            convolve_block::<S, E, SINGLE, SMALLER, N>(simd, a.block(j..j + SMALLER), j, b, at, epilogue);
        }
        for j in smaller..a.rows() {
            convolve_block::<S, E, SINGLE, 1, N>(simd, a.block(j..j + 1), j, b, at, epilogue);
        }
    }
}

/// `epilogue(start + L x)` of both rows of the pairs' numbers in `range`, both ends multiples of [`LANES`], a stretch at
/// most, with which the planes of `b` begin.
#[inline(never)]
pub(super) fn convolve<E: Epilogue>(
    level: Level,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    let planes: usize = b.planes.iter().sum();
    assert!(range.start.is_multiple_of(LANES) && range.end.is_multiple_of(LANES));
    assert!(range.len() <= STRETCH && b.kernel / 2 <= SIDE && planes * PLANE <= b.data.len());
    assert!(planes * b.kernel == a.depth());
    assert!(b.planes[MINUS] <= b.planes[ONE] && b.planes[ZERO] == b.planes[INFINITY] && b.kernel > 0);
    assert!(2 * a.rows() * range.end.next_multiple_of(UNIT) <= epilogue.len() && a.rows() <= epilogue.rows());
    // SAFETY: asserted above.
    dispatch!(level, simd => unsafe { convolve_at(simd, a, b, range, epilogue) });
}

/// # Safety
/// Everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_at<S: Simd, E: Epilogue>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if const { wide::<S>() } {
            convolve_range::<S, E, 3>(simd, a, b, range, epilogue);
        } else {
            convolve_range::<S, E, 2>(simd, a, b, range, epilogue);
        }
    }
}

/// # Safety
/// Everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_range<S: Simd, E: Epilogue, const N: usize>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    let single = (b.planes, b.kernel) == ([1; 4], 3);
    let mut p = range.start;
    while p < range.end {
        let (base, together) = unit(2 * a.rows(), p);
        let (at, left) = ((p - range.start, base), together.min(range.end - p));
        // SAFETY: the caller's promise.
        unsafe {
            if const { !LANES.is_multiple_of(N * S::f32s::LEN) } && left < N * S::f32s::LEN {
                if single {
                    convolve_columns::<S, E, true, 1>(simd, a, b, at, epilogue);
                } else {
                    convolve_columns::<S, E, false, 1>(simd, a, b, at, epilogue);
                }
                after_columns::<S, E, 1>(simd, a.rows(), base, epilogue);
                p += S::f32s::LEN;
                continue;
            }
            if single {
                convolve_columns::<S, E, true, N>(simd, a, b, at, epilogue);
            } else {
                convolve_columns::<S, E, false, N>(simd, a, b, at, epilogue);
            }
            after_columns::<S, E, N>(simd, a.rows(), base, epilogue);
            p += N * S::f32s::LEN;
        }
    }
}

/// What is left to do with `N` vectors of all features.
///
/// # Safety
/// Everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn after_columns<S: Simd, E: Epilogue, const N: usize>(
    simd: S,
    rows: usize,
    base: usize,
    epilogue: &mut E,
) {
    for j in 0..rows {
        let even = base + 2 * j * UNIT;
        // SAFETY: the caller's promise.
        unsafe { epilogue.after::<S, 2, N>(simd, j, [even, even + UNIT]) };
    }
}

/// `M` taps by `N` vectors of the products at a point, of features that lie from `base` on. The point takes both rows of
/// a feature, `even + sign odd`, or only the one that lies at `base`.
///
/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_block<S: Simd, const BOTH: bool, const M: usize, const N: usize>(
    simd: S,
    a: &[f32],
    (u, base, sign): (&[f32], usize, f32),
    p: usize,
    (planes, at): (&mut [f32], Place),
    first: usize,
) {
    let lanes = S::f32s::LEN;
    let zero = S::f32s::splat(simd, 0.0);
    let sign = S::f32s::splat(simd, sign);
    let mut sums = [[zero; N]; M];
    let mut row = base;
    for a in a.as_chunks::<M>().0 {
        let mut values = [zero; N];
        for (n, value) in values.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                *value = load(simd, u, row + n * lanes);
                if BOTH {
                    *value = load(simd, u, row + UNIT + n * lanes).mul_add(sign, *value);
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

const ONE: usize = Point::One as usize;
const MINUS: usize = Point::Minus as usize;
const ZERO: usize = Point::Zero as usize;
const INFINITY: usize = Point::Infinity as usize;

/// All taps of a point, which come after those `before`; returns what comes before the next.
///
/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_columns<S: Simd, const BOTH: bool, const N: usize>(
    simd: S,
    a: &Panels,
    u: (&[f32], usize, f32),
    p: usize,
    (planes, at): (&mut [f32], Place),
    before: usize,
) -> usize {
    let (whole, smaller) = a.cuts();
    // SAFETY: the caller's promise.
    unsafe {
        for t in (0..whole).step_by(WHOLE) {
            let block = a.block(t..t + WHOLE);
            adjoint_block::<S, BOTH, WHOLE, N>(simd, block, u, p, (planes, at), before + t);
        }
        for t in (whole..smaller).step_by(SMALLER) {
            let block = a.block(t..t + SMALLER);
            adjoint_block::<S, BOTH, SMALLER, N>(simd, block, u, p, (planes, at), before + t);
        }
        for t in smaller..a.rows() {
            adjoint_block::<S, BOTH, 1, N>(simd, a.block(t..t + 1), u, p, (planes, at), before + t);
        }
    }
    before + a.rows()
}

/// All points of some vectors.
///
/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_points<S: Simd, const N: usize>(
    simd: S,
    a: &[Panels; 4],
    (u, base): (&[f32], usize),
    p: usize,
    (planes, at): (&mut [f32], Place),
) {
    let mut rows = 0;
    // SAFETY: the caller's promise.
    unsafe {
        for (a, sign) in [(&a[ONE], 1.0), (&a[MINUS], -1.0)] {
            rows = adjoint_columns::<S, true, N>(simd, a, (u, base, sign), p, (planes, at), rows);
        }
        for (a, odd) in [(&a[ZERO], 0), (&a[INFINITY], UNIT)] {
            rows = adjoint_columns::<S, false, N>(simd, a, (u, base + odd, 0.0), p, (planes, at), rows);
        }
    }
}

/// The products of every tap of every term, summed over the features, for the pairs' numbers in `range`, both ends
/// multiples of [`LANES`]; the planes of the products lie `at`.
#[inline(never)]
pub(super) fn adjoint(
    level: Level,
    a: &[Panels; 4],
    u: &[f32],
    range: Range<usize>,
    (planes, at): (&mut [f32], Place),
) {
    let (rows, features) = (a.iter().map(Panels::rows).sum::<usize>(), a[ZERO].depth());
    assert!(range.start.is_multiple_of(LANES) && range.end.is_multiple_of(LANES));
    assert!(2 * features * range.end.next_multiple_of(UNIT) <= u.len());
    assert!(a.iter().all(|a| a.depth() == features));
    assert!(at.at(0, range.start) <= at.at(rows - 1, range.end));
    assert!(at.at(rows - 1, range.end) <= planes.len());
    // SAFETY: asserted above.
    dispatch!(level, simd => unsafe { adjoint_range::<_, 3>(simd, a, u, range, (planes, at)) });
}

/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_range<S: Simd, const N: usize>(
    simd: S,
    a: &[Panels; 4],
    u: &[f32],
    range: Range<usize>,
    (planes, at): (&mut [f32], Place),
) {
    let mut p = range.start;
    while p < range.end {
        let (base, together) = unit(2 * a[ZERO].depth(), p);
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
