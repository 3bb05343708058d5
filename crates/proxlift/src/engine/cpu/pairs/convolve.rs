//! The vector kernel of a convolution in pairs of rows: the sums of the four points.

use super::{PLANE, POINTS, Panels, SIDE, SMALLER, STRETCH, UNIT, WHOLE, unit};
use crate::engine::cpu::epilogue::Epilogue;
use crate::engine::cpu::level::{dispatch, wide};
use crate::engine::cpu::vectors::load;
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};
use std::ops::Range;

/// One point after the other, where registers are few.
const APART: bool = cfg!(target_family = "wasm");

/// Browsers that multiply and add in one go: they need no register in between, and more sums at once to be kept busy.
const FUSED: bool = cfg!(target_feature = "relaxed-simd");

/// Combined image rows, a plane a term and channel.
#[derive(Clone, Copy)]
pub struct Combined<'a> {
    pub data: &'a [f32],
    /// Planes of each point.
    pub planes: [usize; POINTS.len()],
    /// Taps along a row.
    pub kernel: usize,
}

/// `sums_m(p) += A[m,k] b(p)` for `M` rows by `N` vectors: one tap, perhaps the first.
/// Safety: the lanes of `b` and the column of `A` are inside.
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
        *vector = unsafe { load(simd, b.get_unchecked(at..), n * S::f32s::LEN) };
    }
    for (m, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let weight = S::f32s::splat(simd, unsafe { *a.get_unchecked(column * M..).get_unchecked(m) });
        for n in 0..N {
            sums[n] = if FIRST { weight * vectors[n] } else { weight.mul_add(vectors[n], sums[n]) };
        }
    }
}

/// Both rows of a pair of `M` features, `N` vectors of each. Two points at a time, because the compiler would put off
/// what is needed last, and there are just enough registers for what is needed now.
///
/// With a `KERNEL` other than 0, the taps along a row are known to be so many; with 3, a point has one plane of them.
/// Safety: everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_block<S: Simd, E: Epilogue, const KERNEL: usize, const M: usize, const N: usize>(
    simd: S,
    a: &[f32],
    first: usize,
    Combined { data, planes, kernel }: Combined<'_>,
    (from, base): (usize, usize),
    epilogue: &mut E,
) {
    let [ones, minuses, zeros, _] = if KERNEL == 3 { [1; 4] } else { planes };
    let kernel = if KERNEL > 0 { KERNEL } else { kernel };
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
        if APART {
            for plane in 0..ones {
                for tap in usize::from(plane == 0)..kernel {
                    let (column, at) = (plane * kernel + tap, plane * PLANE + from + tap);
                    add_tap::<S, false, M, N>(simd, &mut even, (a, column), (data, at));
                }
            }
            for plane in ones..ones + minuses {
                for tap in usize::from(plane == ones)..kernel {
                    let (column, at) = (plane * kernel + tap, plane * PLANE + from + tap);
                    add_tap::<S, false, M, N>(simd, &mut odd, (a, column), (data, at));
                }
            }
        } else {
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
        }
        for m in 0..M {
            for n in 0..N {
                let (one, minus) = (even[m][n], odd[m][n]);
                even[m][n] = (one + minus) + epilogue.start(simd, at(m, n));
                odd[m][n] = (one - minus) + epilogue.start(simd, at(m, n) + UNIT);
            }
        }
        let first_zero = ones + minuses;
        if APART {
            for (points, sums) in [(0, &mut even), (zeros, &mut odd)] {
                for plane in first_zero + points..first_zero + points + zeros {
                    for tap in 0..kernel {
                        let (column, at) = (plane * kernel + tap, plane * PLANE + from + tap);
                        add_tap::<S, false, M, N>(simd, sums, (a, column), (data, at));
                    }
                }
            }
        } else {
            for plane in first_zero..first_zero + zeros {
                for tap in 0..kernel {
                    let (column, at) = (plane * kernel + tap, plane * PLANE + from + tap);
                    add_tap::<S, false, M, N>(simd, &mut even, (a, column), (data, at));
                    let (column, at) = (column + zeros * kernel, at + zeros * PLANE);
                    add_tap::<S, false, M, N>(simd, &mut odd, (a, column), (data, at));
                }
            }
        }
        for m in 0..M {
            epilogue.finish(simd, first + m, [at(m, 0), at(m, 0) + UNIT], [even[m], odd[m]]);
        }
    }
}

/// All features of `N` vectors.
/// Safety: everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_columns<S: Simd, E: Epilogue, const KERNEL: usize, const N: usize>(
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
            convolve_block::<S, E, KERNEL, WHOLE, N>(simd, a.block(j..j + WHOLE), j, b, at, epilogue);
        }
        for j in (whole..smaller).step_by(SMALLER) {
            convolve_block::<S, E, KERNEL, SMALLER, N>(simd, a.block(j..j + SMALLER), j, b, at, epilogue);
        }
        for j in smaller..a.rows() {
            convolve_block::<S, E, KERNEL, 1, N>(simd, a.block(j..j + 1), j, b, at, epilogue);
        }
    }
}

/// `epilogue(start + L x)` of both rows of the pairs' numbers in `range`, both ends multiples of [`LANES`], a stretch at
/// most, with which the planes of `b` begin.
#[inline(never)]
pub fn convolve<E: Epilogue>(
    level: Level,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    let planes: usize = b.planes.iter().sum();
    let [ones, minuses, zeros, infinities] = b.planes;
    assert!(range.start.is_multiple_of(LANES) && range.end.is_multiple_of(LANES));
    assert!(range.len() <= STRETCH && b.kernel / 2 <= SIDE && planes * PLANE <= b.data.len());
    assert!(planes * b.kernel == a.depth());
    assert!(minuses <= ones && zeros == infinities && b.kernel > 0);
    assert!(2 * a.rows() * range.end.next_multiple_of(UNIT) <= epilogue.len() && a.rows() <= epilogue.rows());
    // SAFETY: asserted above.
    dispatch!(level, simd => unsafe { convolve_at(simd, a, b, range, epilogue) });
}

/// Safety: everything that [`convolve`] asserts.
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
        if const { wide::<S>() || FUSED } {
            convolve_range::<S, E, 3>(simd, a, b, range, epilogue);
        } else {
            convolve_range::<S, E, 2>(simd, a, b, range, epilogue);
        }
    }
}

/// Safety: everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_range<S: Simd, E: Epilogue, const N: usize>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    range: Range<usize>,
    epilogue: &mut E,
) {
    let known = match (b.planes, b.kernel) {
        ([1, 1, 1, 1], 3) => 3,
        (_, 5) if APART => 5,
        _ => 0,
    };
    let mut p = range.start;
    while p < range.end {
        let (base, together) = unit(2 * a.rows(), p);
        let (at, left) = ((p - range.start, base), together.min(range.end - p));
        // SAFETY: the caller's promise.
        unsafe {
            if const { !LANES.is_multiple_of(N * S::f32s::LEN) } && left < N * S::f32s::LEN {
                convolve_vectors::<S, E, 1>(simd, a, b, known, at, epilogue);
                p += S::f32s::LEN;
            } else {
                convolve_vectors::<S, E, N>(simd, a, b, known, at, epilogue);
                p += N * S::f32s::LEN;
            }
        }
    }
}

/// `N` vectors of all features, and what is left to do with them.
/// Safety: everything that [`convolve`] asserts.
#[inline(always)]
unsafe fn convolve_vectors<S: Simd, E: Epilogue, const N: usize>(
    simd: S,
    a: &Panels,
    b: Combined<'_>,
    known: usize,
    at: (usize, usize),
    epilogue: &mut E,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match known {
            3 => convolve_columns::<S, E, 3, N>(simd, a, b, at, epilogue),
            5 if APART => convolve_columns::<S, E, 5, N>(simd, a, b, at, epilogue),
            _ => convolve_columns::<S, E, 0, N>(simd, a, b, at, epilogue),
        }
        for j in 0..a.rows() {
            let even = at.1 + 2 * j * UNIT;
            epilogue.after::<S, 2, N>(simd, j, [even, even + UNIT]);
        }
    }
}
