//! The product with a transpose, both of whose factors lie row by row: the forward pass of a dense layer, from its weights as
//! they are.

use super::super::level::{dispatch, wide};
use super::PADDING;
use fearless_simd::{Level, Simd, prelude::*};

/// A matrix whose rows begin so many numbers apart.
#[derive(Clone, Copy)]
pub(crate) struct ByRows<'a> {
    pub values: &'a [f32],
    pub row: usize,
}

/// Rows of `b` that are taken together.
const TOGETHER: usize = 4;

/// The most sums that are held at once.
const SUMS: usize = 4 * TOGETHER;

/// `c[i][j] = start[j] + <a_i, b_j>` for `m` rows `a` and `n` rows `b` of `k` numbers, a multiple of [`PADDING`]; the rows of `c`
/// are so many numbers apart. Without a `start`, it is zero.
#[inline(never)]
pub(crate) fn product_of_rows(
    level: Level,
    [m, k, n]: [usize; 3],
    a: ByRows<'_>,
    b: ByRows<'_>,
    start: &[f32],
    c: (&mut [f32], usize),
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(
        k.is_multiple_of(PADDING) && (start.is_empty() || start.len() == n) && (m - 1) * c.1 + n <= c.0.len()
    );
    assert!((m - 1) * a.row + k <= a.values.len() && (n - 1) * b.row + k <= b.values.len());
    dispatch!(level, simd => {
        // SAFETY: asserted above.
        unsafe { all(simd, [m, k, n], a, b, start, c) }
    });
}

/// Safety: everything that [`product_of_rows`] asserts.
#[inline(always)]
unsafe fn all<S: Simd>(
    simd: S,
    [m, k, n]: [usize; 3],
    a: ByRows<'_>,
    b: ByRows<'_>,
    start: &[f32],
    (c, apart): (&mut [f32], usize),
) {
    for j in (0..n).step_by(TOGETHER) {
        let wanted = TOGETHER.min(n - j);
        // At the edge, the last row is computed more than once.
        let rows: [_; TOGETHER] =
            std::array::from_fn(|i| b.values.as_ptr().wrapping_add((j + i).min(n - 1) * b.row));
        let biases: [f32; TOGETHER] = std::array::from_fn(|i| start.get(j + i).copied().unwrap_or(0.0));
        let mut put = |i: usize, sums: &[f32]| {
            let sums: [f32; TOGETHER] = std::array::from_fn(|r| biases[r] + sums[r]);
            let c = &mut c[i * apart + j..][..wanted];
            // Four numbers at once: copying one by one, or by their count, took a twentieth of a step.
            if let Ok(c) = <&mut [f32; TOGETHER]>::try_from(&mut *c) {
                *c = sums;
            } else {
                c.iter_mut().zip(sums).for_each(|(c, sum)| *c = sum);
            }
        };
        let mut i = 0;
        // SAFETY: the caller's promise.
        unsafe {
            if const { wide::<S>() } {
                while i + 4 <= m {
                    let sums = tile::<S, 4>(simd, k, a, i, rows);
                    sums.chunks_exact(TOGETHER).enumerate().for_each(|(r, sums)| put(i + r, sums));
                    i += 4;
                }
            }
            while i + 2 <= m {
                let sums = tile::<S, 2>(simd, k, a, i, rows);
                sums.chunks_exact(TOGETHER).take(2).enumerate().for_each(|(r, sums)| put(i + r, sums));
                i += 2;
            }
            if i < m {
                put(i, &tile::<S, 1>(simd, k, a, i, rows));
            }
        }
    }
}

/// The products of `M` rows of `a` from `first` on with those of `b`.
/// Safety: the rows have `k` numbers.
#[inline(always)]
unsafe fn tile<S: Simd, const M: usize>(
    simd: S,
    k: usize,
    a: ByRows<'_>,
    first: usize,
    b: [*const f32; TOGETHER],
) -> [f32; SUMS] {
    let lanes = S::f32s::LEN;
    // SAFETY: the caller's promise.
    let load = |at: *const f32, p: usize| unsafe {
        S::f32s::from_slice(simd, std::slice::from_raw_parts(at.add(p), lanes))
    };
    let a: [_; M] = std::array::from_fn(|m| a.values.as_ptr().wrapping_add((first + m) * a.row));
    let mut sums = [[S::f32s::splat(simd, 0.0); TOGETHER]; M];
    for p in (0..k).step_by(lanes) {
        let mut columns = [S::f32s::splat(simd, 0.0); TOGETHER];
        for (column, b) in columns.iter_mut().zip(b) {
            *column = load(b, p);
        }
        for (sums, a) in sums.iter_mut().zip(a) {
            let a = load(a, p);
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = a.mul_add(column, *sum);
            }
        }
    }
    let mut totals = [0.0; SUMS];
    for (g, totals) in totals.chunks_exact_mut(lanes).enumerate().take((M * TOGETHER).div_ceil(lanes)) {
        let mut group = [S::f32s::splat(simd, 0.0); SUMS];
        for (i, vector) in group.iter_mut().enumerate().take(lanes) {
            let at = g * lanes + i;
            if at < M * TOGETHER {
                *vector = sums[at / TOGETHER][at % TOGETHER];
            }
        }
        lanes_summed::<S>(group).store_slice(totals);
    }
    totals
}

/// The vector of the sums over the lanes of as many vectors. Halves are added in the same order for all of them.
#[inline(always)]
fn lanes_summed<S: Simd>(mut vectors: [S::f32s; SUMS]) -> S::f32s {
    let mut half = S::f32s::LEN / 2;
    while half > 0 {
        for i in 0..half {
            let (a, b) = (vectors[i], vectors[i + half]);
            vectors[i] = a.zip_low(b) + a.zip_high(b);
        }
        half /= 2;
    }
    vectors[0]
}
