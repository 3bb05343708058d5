//! The product.

use super::super::level::{dispatch, wide};
use super::super::vectors::{load, prefetch_to_write, store};
use super::{ByRows, VECTORS, panel_width};
use fearless_simd::{Level, Simd, prelude::*};

/// A matrix with entry `(i, j)` at `i row + j column`.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a> {
    pub values: &'a [f32],
    pub row: usize,
    pub column: usize,
}

/// What a product is added to.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Zero,
    /// The same numbers for every row, from the first column of the panel on.
    Row(*const f32),
    /// What is there.
    There,
}

/// `c = a b` for matrices of `m x k`, `k x n` and `m x n` numbers; `n` is a multiple of the lanes of a vector,
/// and the rows of `c` are so many numbers apart.
#[inline(never)]
pub(crate) fn product(
    level: Level,
    [m, k, n]: [usize; 3],
    a: Strided<'_>,
    b: ByRows<'_>,
    (c, apart): (&mut [f32], usize),
) {
    let width = panel_width(level);
    if m == 0 || n == 0 {
        return;
    }
    assert!(n.is_multiple_of(width / VECTORS) && (m - 1) * apart + n <= c.len());
    if k > 0 {
        assert!((m - 1) * a.row + (k - 1) * a.column < a.values.len());
        assert!((k - 1) * b.row + n <= b.values.len());
    }
    dispatch!(level, simd => {
        // SAFETY: asserted above.
        unsafe { all(simd, [m, k, n], a, b, (c, apart)) }
    });
}

/// Safety: everything that [`product`] asserts.
#[inline(always)]
unsafe fn all<S: Simd>(
    simd: S,
    [m, k, n]: [usize; 3],
    a: Strided<'_>,
    b: ByRows<'_>,
    c: (&mut [f32], usize),
) {
    let (lanes, width, (c, apart)) = (S::f32s::LEN, VECTORS * S::f32s::LEN, c);
    for column in (0..n).step_by(width) {
        // SAFETY: the caller's promise.
        unsafe {
            let b = (b.values.as_ptr().add(column), b.row);
            let c = (&mut c[column..], apart);
            if n - column >= width {
                rows::<S, VECTORS>(simd, (m, k), a, b, Start::Zero, c);
            } else {
                debug_assert!(n - column == lanes);
                rows::<S, 1>(simd, (m, k), a, b, Start::Zero, c);
            }
        }
    }
}

/// Writes the product, added to `start`, to all rows of a panel, in blocks whose sums fit the registers.
/// Safety: everything that [`product`] asserts; `start` has the columns of the panel.
#[inline(always)]
pub(super) unsafe fn rows<S: Simd, const N: usize>(
    simd: S,
    (m, k): (usize, usize),
    a: Strided<'_>,
    b: (*const f32, usize),
    start: Start,
    (c, apart): (&mut [f32], usize),
) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        if const { wide::<S>() } {
            while i + 10 <= m {
                tile::<S, 10, N>(simd, k, a, i, b, start, (c, apart));
                i += 10;
            }
        }
        while i + 4 <= m {
            tile::<S, 4, N>(simd, k, a, i, b, start, (c, apart));
            i += 4;
        }
        if i + 2 <= m {
            tile::<S, 2, N>(simd, k, a, i, b, start, (c, apart));
            i += 2;
        }
        if i < m {
            tile::<S, 1, N>(simd, k, a, i, b, start, (c, apart));
        }
    }
}

/// Writes the product, added to `start`, to `M` rows from `first` on of `N` vectors.
/// Safety: everything that [`product`] asserts; `start` has `N` vectors.
#[inline(always)]
unsafe fn tile<S: Simd, const M: usize, const N: usize>(
    simd: S,
    k: usize,
    a: Strided<'_>,
    first: usize,
    (b, b_row): (*const f32, usize),
    start: Start,
    (c, apart): (&mut [f32], usize),
) {
    let lanes = S::f32s::LEN;
    let mut sums = [[S::f32s::splat(simd, 0.0); N]; M];
    // SAFETY: the caller's promise.
    unsafe {
        for (m, sums) in sums.iter_mut().enumerate() {
            for (n, sum) in sums.iter_mut().enumerate() {
                let at = (first + m) * apart + n * lanes;
                match start {
                    Start::Zero => {}
                    Start::Row(row) => {
                        *sum =
                            S::f32s::from_slice(simd, std::slice::from_raw_parts(row.add(n * lanes), lanes));
                    }
                    Start::There => *sum = load(simd, c, at),
                }
                prefetch_to_write(c.as_ptr().wrapping_add(at));
            }
        }
        let (mut a_at, mut b_at) = (a.values.as_ptr().add(first * a.row), b);
        for _ in 0..k {
            let mut vectors = [S::f32s::splat(simd, 0.0); N];
            for (n, vector) in vectors.iter_mut().enumerate() {
                *vector = S::f32s::from_slice(simd, std::slice::from_raw_parts(b_at.add(n * lanes), lanes));
            }
            for (m, sums) in sums.iter_mut().enumerate() {
                let factor = S::f32s::splat(simd, *a_at.add(m * a.row));
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = factor.mul_add(vector, *sum);
                }
            }
            (a_at, b_at) = (a_at.wrapping_add(a.column), b_at.wrapping_add(b_row));
        }
        for (m, sums) in sums.iter().enumerate() {
            for (n, sum) in sums.iter().enumerate() {
                store::<S>(*sum, c, (first + m) * apart + n * lanes);
            }
        }
    }
}
