//! Gradients of weights, and the step along them, in one kernel.
//!
//! A root and a quotient for every weight take longer than they need to, because nothing else is done meanwhile; so the step
//! of a tile is taken between the products of the next one, whose weights and means are asked for in time.

use super::super::level::{dispatch, wide};
use super::super::vectors::prefetch_at;
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

/// Moves all rows along `d^T u`, a sum over so many samples: `d` has a row for each row of the weights and a column for each
/// sample, `u` a row for each sample. The columns of `u` up to a whole vector can be read.
#[inline(never)]
pub(crate) fn descend(
    level: Level,
    samples: usize,
    d: Strided<'_>,
    u: ByRows<'_>,
    to: Weights<'_>,
    update: &Update,
) {
    let Weights { weights, mean, square, columns } = to;
    let (rows, width) = (weights.len() / columns, panel_width(level));
    assert!(weights.len() == rows * columns && mean.len() == weights.len() && square.len() == weights.len());
    let (tall, whole) = (rows / 8 * 8, columns / width * width);
    if samples > 0 && tall > 0 && whole > 0 {
        assert!((tall - 1) * d.row + (samples - 1) * d.column < d.values.len());
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
            let d = Strided { values: &d.values[(row * d.row).min(d.values.len())..], ..d };
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
    d: Strided<'_>,
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
    d: Strided<'_>,
    u: ByRows<'_>,
    (numbers, apart): ([*mut f32; 3], usize),
    update: &Update,
) {
    let (lanes, width) = (S::f32s::LEN, VECTORS * S::f32s::LEN);
    let zero = S::f32s::splat(simd, 0.0);
    // The gradient of the tile before, and where it stands.
    let (mut before, mut stands) = ([[zero; VECTORS]; M], None);
    let place = |first: usize, i: usize| {
        let at = first + i / VECTORS * apart + i % VECTORS * lanes;
        numbers.map(|numbers| numbers.wrapping_add(at))
    };
    // SAFETY: the caller's promise.
    unsafe {
        for row in (0..rows).step_by(M) {
            for column in (0..columns).step_by(width) {
                let (mut a, mut b) = (d.values.as_ptr().add(row * d.row), u.values.as_ptr().add(column));
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
                        for (m, sums) in sums.iter_mut().enumerate() {
                            let factor = S::f32s::splat(simd, *a.add(m * d.row));
                            for (sum, vector) in sums.iter_mut().zip(vectors) {
                                *sum = factor.mul_add(vector, *sum);
                            }
                        }
                        (a, b) = (a.wrapping_add(d.column), b.wrapping_add(u.row));
                    }
                };
                let steps = M * VECTORS;
                for i in 0..steps {
                    place(first, i).into_iter().for_each(|at| prefetch_at(at));
                    add(samples / steps);
                    if let Some(stands) = stands {
                        update.apply_vector(simd, before[i / VECTORS][i % VECTORS], place(stands, i));
                    }
                }
                add(samples % steps);
                (before, stands) = (sums, Some(first));
            }
        }
        if let Some(stands) = stands {
            for i in 0..M * VECTORS {
                update.apply_vector(simd, before[i / VECTORS][i % VECTORS], place(stands, i));
            }
        }
    }
}
