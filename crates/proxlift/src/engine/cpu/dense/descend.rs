//! Gradients of weights, and the step along them, in one kernel.
//!
//! A root and a quotient for every weight take longer than they need to, because nothing else is done meanwhile; so the step
//! of a tile is taken between the products of the next one, whose weights and means are asked for in time. The quotient waits
//! for the next turn, for a processor does not look far enough ahead to fill the time of both.

use super::super::level::{dispatch, wide};
use super::super::vectors::prefetch_to_write;
use super::{ByRows, Strided, Update, VECTORS, panel_width, product};
use fearless_simd::{Level, Simd, prelude::*};

/// Columns at an edge that are computed together.
const EDGE: usize = 64;

/// Rows of weights with their means: row by row, with so many columns.
pub(crate) struct Weights<'a> {
    pub weights: &'a mut [f32],
    pub mean: &'a mut [f32],
    pub square: &'a mut [f32],
    pub columns: usize,
}

/// Moves all rows along `d^T u`, a sum over so many samples: `d` and `u` have a row for each, `d` a number for each row of the
/// weights. The columns of `u` up to a whole vector can be read.
#[inline(never)]
pub(crate) fn descend(
    level: Level,
    samples: usize,
    d: ByRows<'_>,
    u: ByRows<'_>,
    to: Weights<'_>,
    update: &Update,
) {
    let Weights { weights, mean, square, columns } = to;
    let (rows, width) = (weights.len() / columns, panel_width(level));
    assert!(weights.len() == rows * columns && mean.len() == weights.len() && square.len() == weights.len());
    let (tall, whole) = (rows / 8 * 8, columns / width * width);
    if samples > 0 && tall > 0 && whole > 0 {
        assert!((samples - 1) * d.row + tall <= d.values.len());
        assert!((samples - 1) * u.row + whole <= u.values.len());
        let numbers = [weights.as_mut_ptr(), mean.as_mut_ptr(), square.as_mut_ptr()];
        dispatch!(level, simd => {
            // SAFETY: asserted above.
            unsafe { tiles_of(simd, [tall, samples, whole], d, u, (numbers, columns), update) }
        });
    }
    for (row, first) in (0..rows).map(|row| (row, if row < tall { whole } else { 0 })) {
        // The rows of an edge go together.
        if row < tall && !row.is_multiple_of(8) {
            continue;
        }
        let together = if row < tall { 8 } else { 1 };
        for column in (first..columns).step_by(EDGE) {
            let many = EDGE.min(columns - column);
            let mut gradient = [0.0; 8 * EDGE];
            let d = Strided { values: &d.values[row.min(d.values.len())..], row: 1, column: d.row };
            let u = ByRows { values: &u.values[column..], ..u };
            let shape = [together, samples, many.next_multiple_of(width / VECTORS)];
            product(level, shape, d, u, (&mut gradient, EDGE));
            for (i, gradient) in gradient.chunks_exact(EDGE).take(together).enumerate() {
                let at = (row + i) * columns + column;
                let [w, m, s] = [&mut *weights, mean, square].map(|numbers| &mut numbers[at..at + many]);
                update.apply(w, &gradient[..many], m, s);
            }
        }
    }
}

/// Safety: everything that [`descend`] asserts.
#[inline(always)]
unsafe fn tiles_of<S: Simd>(
    simd: S,
    shape: [usize; 3],
    d: ByRows<'_>,
    u: ByRows<'_>,
    to: ([*mut f32; 3], usize),
    update: &Update,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if const { wide::<S>() } {
            tiles::<S, 8>(simd, shape, d, u, to, update);
        } else {
            tiles::<S, 4>(simd, shape, d, u, to, update);
        }
    }
}

/// All tiles of `M` rows and [`VECTORS`] vectors.
/// Safety: everything that [`descend`] asserts.
#[inline(always)]
unsafe fn tiles<S: Simd, const M: usize>(
    simd: S,
    [rows, samples, columns]: [usize; 3],
    d: ByRows<'_>,
    u: ByRows<'_>,
    (numbers, apart): ([*mut f32; 3], usize),
    update: &Update,
) {
    let (lanes, width, steps) = (S::f32s::LEN, VECTORS * S::f32s::LEN, M * VECTORS);
    let zero = S::f32s::splat(simd, 0.0);
    // The gradients of the tile before, then their roots, and where it stands.
    let (mut before, mut stands) = ([[zero; VECTORS]; M], None);
    let place = |first: usize, i: usize| {
        let at = first + i / VECTORS * apart + i % VECTORS * lanes;
        numbers.map(|numbers| numbers.wrapping_add(at))
    };
    // The errors of a tile, sample by sample: in `d` they lie so far apart that each is in a page of its own.
    let mut errors = vec![[0.0; M]; samples];
    // SAFETY: the caller's promise.
    unsafe {
        for row in (0..rows).step_by(M) {
            for (i, errors) in errors.iter_mut().enumerate() {
                errors.copy_from_slice(d.values.get_unchecked(i * d.row + row..).get_unchecked(..M));
            }
            for column in (0..columns).step_by(width) {
                let (mut a, mut b) = (errors.as_ptr(), u.values.as_ptr().add(column));
                let first = row * apart + column;
                let mut sums = [[zero; VECTORS]; M];
                let mut add = |samples: usize| {
                    for _ in 0..samples {
                        let mut vectors = [zero; VECTORS];
                        for (n, vector) in vectors.iter_mut().enumerate() {
                            *vector = S::f32s::from_slice(
                                simd,
                                std::slice::from_raw_parts(b.add(n * lanes), lanes),
                            );
                        }
                        for (factor, sums) in (*a).iter().zip(&mut sums) {
                            let factor = S::f32s::splat(simd, *factor);
                            for (sum, vector) in sums.iter_mut().zip(vectors) {
                                *sum = factor.mul_add(vector, *sum);
                            }
                        }
                        (a, b) = (a.wrapping_add(1), b.wrapping_add(u.row));
                    }
                };
                for i in 0..steps {
                    place(first, i).into_iter().for_each(|at| prefetch_to_write(at));
                    add(samples / steps);
                    if let Some(stands) = stands {
                        step(simd, update, i, before.as_flattened_mut(), |i| place(stands, i));
                    }
                }
                add(samples % steps);
                if let Some(stands) = stands {
                    step(simd, update, steps, before.as_flattened_mut(), |i| place(stands, i));
                }
                (before, stands) = (sums, Some(first));
            }
        }
        if let Some(stands) = stands {
            for i in 0..=steps {
                step(simd, update, i, before.as_flattened_mut(), |i| place(stands, i));
            }
        }
    }
}

/// The first half of the step of vector `i`, if there is one, whose gradient becomes its roots, and the second of the vector before.
/// Safety: the places are the caller's to change.
#[inline(always)]
unsafe fn step<S: Simd>(
    simd: S,
    update: &Update,
    i: usize,
    vectors: &mut [S::f32s],
    place: impl Fn(usize) -> [*mut f32; 3],
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(vector) = vectors.get_mut(i) {
            *vector = update.average(simd, *vector, place(i));
        }
        if i > 0 {
            update.advance(simd, vectors[i - 1], place(i - 1));
        }
    }
}
