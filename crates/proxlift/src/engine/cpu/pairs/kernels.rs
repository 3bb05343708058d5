//! The vector kernels of pairs of rows: the sums of the four points, for a convolution and for its adjoint.

use super::{POINTS, Point};
use crate::engine::cpu::kernels::{Epilogue, Place, load, store};
use crate::field::LANES;
use fearless_simd::{Simd, prelude::*};
use std::ops::Range;

/// Rows of a block that a kernel holds in registers, where there are enough.
const BLOCK: usize = 3;

/// Numbers of each feature that lie together: so many of the first feature's even rows, of its odd ones, of the next
/// feature, and after all features the next numbers. A pass reads memory from one end to the other, and a register
/// block of either kernel is never cut.
pub(super) const UNIT: usize = 48;

/// Where the numbers from `p` on of the first of `planes` planes lie, and how many there are in one piece.
#[inline(always)]
pub(super) fn unit(planes: usize, p: usize) -> (usize, usize) {
    (p / UNIT * planes * UNIT + p % UNIT, UNIT - p % UNIT)
}

/// A matrix, its rows in [`blocks`] that lie interleaved.
#[derive(Clone, Debug, Default)]
pub(in crate::engine::cpu) struct Panels {
    data: Vec<f32>,
    rows: usize,
    depth: usize,
}

impl Panels {
    /// Packs `entry(row, k)`.
    pub(super) fn pack(&mut self, rows: usize, depth: usize, entry: impl Fn(usize, usize) -> f32) {
        (self.rows, self.depth) = (rows, depth);
        self.data.clear();
        let (threes, twos) = blocks(rows);
        let mut first = 0;
        while first < rows {
            let size = if first < threes { BLOCK } else { 2.min(threes + twos - first).max(1) };
            for k in 0..depth {
                self.data.extend((first..first + size).map(|row| entry(row, k)));
            }
            first += size;
        }
    }

    /// The entries of rows that make a block.
    ///
    /// # Safety
    /// There are such rows, and they were packed.
    #[inline(always)]
    unsafe fn block(&self, rows: Range<usize>) -> &[f32] {
        debug_assert!(rows.end <= self.rows && self.data.len() == self.rows * self.depth);
        // SAFETY: the caller's promise.
        unsafe { self.data.get_unchecked(rows.start * self.depth..rows.end * self.depth) }
    }
}

/// How many of so many rows go in blocks of three and how many in blocks of two; only a single row is left alone.
#[inline(always)]
fn blocks(rows: usize) -> (usize, usize) {
    if rows < 2 {
        return (0, 0);
    }
    let twos = (BLOCK - rows % BLOCK) % BLOCK * 2;
    (rows - twos, twos)
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
    let (threes, twos) = blocks(a.rows);
    // SAFETY: the caller's promise.
    unsafe {
        for j in (0..threes).step_by(BLOCK) {
            convolve_block::<S, E, SINGLE, BLOCK, N>(simd, a.block(j..j + BLOCK), j, b, at, epilogue);
        }
        for j in (threes..threes + twos).step_by(2) {
            convolve_block::<S, E, SINGLE, 2, N>(simd, a.block(j..j + 2), j, b, at, epilogue);
        }
        for j in threes + twos..a.rows {
            convolve_block::<S, E, SINGLE, 1, N>(simd, a.block(j..j + 1), j, b, at, epilogue);
        }
    }
}

/// `epilogue(start + L x)` of both rows of the pairs' numbers in `range`, both ends multiples of [`LANES`], a stretch at
/// most, with which the planes of `b` begin.
#[inline(always)]
pub(super) fn convolve<S: Simd, E: Epilogue, const N: usize>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    let planes: usize = b.planes.iter().sum();
    assert!(range.start.is_multiple_of(LANES) && range.end.is_multiple_of(LANES));
    assert!(range.len() <= STRETCH && b.kernel / 2 <= SIDE && planes * PLANE <= b.data.len());
    assert!(planes * b.kernel == a.depth && a.data.len() == a.rows * a.depth);
    assert!(b.planes[MINUS] <= b.planes[ONE] && b.planes[ZERO] == b.planes[INFINITY] && b.kernel > 0);
    assert!(2 * a.rows * range.end.next_multiple_of(UNIT) <= epilogue.len() && a.rows <= epilogue.rows());
    if (b.planes, b.kernel) == ([1; 4], 3) {
        // SAFETY: asserted above.
        unsafe { convolve_range::<S, E, true, N>(simd, a, b, range, epilogue) };
    } else {
        // SAFETY: asserted above.
        unsafe { convolve_range::<S, E, false, N>(simd, a, b, range, epilogue) };
    }
}

/// # Safety
/// Everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_range<S: Simd, E: Epilogue, const SINGLE: bool, const N: usize>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    let mut p = range.start;
    while p < range.end {
        let (base, together) = unit(2 * a.rows, p);
        let (at, left) = ((p - range.start, base), together.min(range.end - p));
        // SAFETY: the caller's promise.
        unsafe {
            if left >= N * S::f32s::LEN {
                convolve_columns::<S, E, SINGLE, N>(simd, a, b, at, epilogue);
                p += N * S::f32s::LEN;
            } else {
                convolve_columns::<S, E, SINGLE, 1>(simd, a, b, at, epilogue);
                p += S::f32s::LEN;
            }
        }
    }
}

/// `M` taps by `N` vectors of the products at a point, of features that lie from `base` on.
///
/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_block<S: Simd, const POINT: usize, const M: usize, const N: usize>(
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
    let mut even = base;
    for a in a.as_chunks::<M>().0 {
        let mut values = [zero; N];
        for (n, value) in values.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let even = even + n * lanes;
                *value = match POINT {
                    ONE => load(simd, u, even) + load(simd, u, even + UNIT),
                    MINUS => load(simd, u, even) - load(simd, u, even + UNIT),
                    ZERO => load(simd, u, even),
                    _ => load(simd, u, even + UNIT),
                };
            }
        }
        for m in 0..M {
            let weight = S::f32s::splat(simd, a[m]);
            for n in 0..N {
                sums[m][n] = weight.mul_add(values[n], sums[m][n]);
            }
        }
        even += 2 * UNIT;
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

/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_columns<S: Simd, const POINT: usize, const N: usize>(
    simd: S,
    a: &Panels,
    u: (&[f32], usize),
    p: usize,
    (planes, at): (&mut [f32], Place),
    before: usize,
) -> usize {
    let (threes, twos) = blocks(a.rows);
    // SAFETY: the caller's promise.
    unsafe {
        for t in (0..threes).step_by(BLOCK) {
            adjoint_block::<S, POINT, BLOCK, N>(simd, a.block(t..t + BLOCK), u, p, (planes, at), before + t);
        }
        for t in (threes..threes + twos).step_by(2) {
            adjoint_block::<S, POINT, 2, N>(simd, a.block(t..t + 2), u, p, (planes, at), before + t);
        }
        for t in threes + twos..a.rows {
            adjoint_block::<S, POINT, 1, N>(simd, a.block(t..t + 1), u, p, (planes, at), before + t);
        }
    }
    before + a.rows
}

/// All points of some vectors.
///
/// # Safety
/// Everything that [`adjoint`] asserts.
#[inline(always)]
unsafe fn adjoint_points<S: Simd, const N: usize>(
    simd: S,
    a: &[Panels; 4],
    u: (&[f32], usize),
    p: usize,
    (planes, at): (&mut [f32], Place),
) {
    // SAFETY: the caller's promise.
    unsafe {
        let rows = adjoint_columns::<S, ONE, N>(simd, &a[ONE], u, p, (planes, at), 0);
        let rows = adjoint_columns::<S, MINUS, N>(simd, &a[MINUS], u, p, (planes, at), rows);
        let rows = adjoint_columns::<S, ZERO, N>(simd, &a[ZERO], u, p, (planes, at), rows);
        adjoint_columns::<S, INFINITY, N>(simd, &a[INFINITY], u, p, (planes, at), rows);
    }
}

/// The products of every tap of every term, summed over the features, for the pairs' numbers in `range`, both ends
/// multiples of [`LANES`]; the planes of the products lie `at`.
#[inline(always)]
pub(super) fn adjoint<S: Simd, const N: usize>(
    simd: S,
    a: &[Panels; 4],
    u: &[f32],
    range: Range<usize>,
    (planes, at): (&mut [f32], Place),
) {
    let (rows, features) = (a.iter().map(|a| a.rows).sum::<usize>(), a[ZERO].depth);
    assert!(range.start.is_multiple_of(LANES) && range.end.is_multiple_of(LANES));
    assert!(2 * features * range.end.next_multiple_of(UNIT) <= u.len());
    assert!(a.iter().all(|a| a.depth == features && a.data.len() == a.rows * a.depth));
    assert!(at.at(0, range.start) <= at.at(rows - 1, range.end));
    assert!(at.at(rows - 1, range.end) <= planes.len());
    let mut p = range.start;
    while p < range.end {
        let (base, together) = unit(2 * features, p);
        let left = together.min(range.end - p);
        // SAFETY: asserted above.
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
