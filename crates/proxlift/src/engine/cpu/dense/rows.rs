//! The product with a transpose, both of whose factors lie row by row: the forward pass of a dense layer, from its weights as
//! they are.
//!
//! Columns of the result are sums over rows of the second factor, so a few of these rows are turned into columns, on the
//! stack and not deeper than the first cache, before the rows of the first factor go over them.

use super::super::level::dispatch;
use super::super::vectors::{prefetch_at, store};
use super::product::{Start, rows};
use super::{PADDING, Strided, VECTORS};
use fearless_simd::{Level, Simd, prelude::*};

/// A matrix whose rows begin so many numbers apart.
#[derive(Clone, Copy)]
pub(crate) struct ByRows<'a> {
    pub values: &'a [f32],
    pub row: usize,
}

/// The most rows of a panel.
const DEPTH: usize = 128;

/// The most columns of a panel.
const WIDTH: usize = VECTORS * PADDING;

/// Rows at an edge that are computed together.
const EDGE: usize = 10;

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
    let width = VECTORS * S::f32s::LEN;
    if k == 0 {
        for i in 0..m {
            let c = &mut c[i * apart..][..n];
            if start.is_empty() { c.fill(0.0) } else { c.copy_from_slice(start) }
        }
    }
    // Panels of much the same depth.
    let depth = (k / PADDING).div_ceil(k.div_ceil(DEPTH).max(1)) * PADDING;
    let mut panel = [0.0; DEPTH * WIDTH];
    for column in (0..n).step_by(width) {
        for first in (0..k).step_by(depth.max(1)) {
            let deep = depth.min(k - first);
            let start = match start.get(column..) {
                _ if first > 0 => Start::There,
                None | Some([]) => Start::Zero,
                Some(start) => Start::Row(start.as_ptr()),
            };
            // SAFETY: the caller's promise; a panel has room for these rows and columns.
            unsafe {
                turn(simd, b, (column, n), [first, deep, k], &mut panel);
                let (a, shape) = (Strided { values: &a.values[first..], row: a.row, column: 1 }, (m, deep));
                if n - column >= width {
                    rows::<S, VECTORS>(
                        simd,
                        shape,
                        a,
                        (panel.as_ptr(), width),
                        start,
                        (&mut c[column..], apart),
                    );
                } else {
                    edge(simd, shape, a, &panel, start, (&mut c[column..], apart), n - column);
                }
            }
        }
    }
}

/// The same for the columns that are left, fewer than a panel has.
/// Safety: everything that [`product_of_rows`] asserts.
#[inline(always)]
unsafe fn edge<S: Simd>(
    simd: S,
    (m, deep): (usize, usize),
    a: Strided<'_>,
    panel: &[f32],
    start: Start,
    (c, apart): (&mut [f32], usize),
    columns: usize,
) {
    let width = VECTORS * S::f32s::LEN;
    for i in (0..m).step_by(EDGE) {
        let (mut whole, many) = ([0.0; EDGE * WIDTH], EDGE.min(m - i));
        let a = Strided { values: &a.values[i * a.row..], ..a };
        for r in 0..many {
            let whole = &mut whole[r * width..][..columns];
            match start {
                Start::Zero => {}
                // SAFETY: the caller's promise.
                Start::Row(row) => whole.copy_from_slice(unsafe { std::slice::from_raw_parts(row, columns) }),
                Start::There => whole.copy_from_slice(&c[(i + r) * apart..][..columns]),
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            rows::<S, VECTORS>(
                simd,
                (many, deep),
                a,
                (panel.as_ptr(), width),
                Start::There,
                (&mut whole, width),
            );
        }
        for r in 0..many {
            c[(i + r) * apart..][..columns].copy_from_slice(&whole[r * width..][..columns]);
        }
    }
}

/// Writes the numbers from `first` on of the rows of `b` from `column` on as columns of `panel`: so many of a row, a multiple of
/// [`PADDING`]. After the last of `n` rows, it stands for those that are missing.
/// Safety: the rows have these numbers, and there are not more than [`DEPTH`].
#[inline(always)]
unsafe fn turn<S: Simd>(
    simd: S,
    b: ByRows<'_>,
    (column, n): (usize, usize),
    [first, deep, row_length]: [usize; 3],
    panel: &mut [f32],
) {
    let lanes = S::f32s::LEN;
    // From a number to that in its place in the panel after this one, which is asked for in time: another core may have it.
    let next = if first + deep < row_length { deep } else { (VECTORS * lanes * b.row).wrapping_sub(first) };
    for group in 0..VECTORS {
        let rows: [_; PADDING] = std::array::from_fn(|r| {
            b.values.as_ptr().wrapping_add((column + group * lanes + r).min(n - 1) * b.row + first)
        });
        for p in (0..deep).step_by(lanes) {
            let mut square = [S::f32s::splat(simd, 0.0); PADDING];
            // SAFETY: the caller's promise.
            unsafe {
                for (vector, row) in square.iter_mut().zip(rows).take(lanes) {
                    *vector = S::f32s::from_slice(simd, std::slice::from_raw_parts(row.add(p), lanes));
                    prefetch_at(row.wrapping_add(p).wrapping_add(next));
                }
                transpose::<S>(&mut square);
                for (r, vector) in square.iter().enumerate().take(lanes) {
                    store::<S>(*vector, panel, ((p + r) * VECTORS + group) * lanes);
                }
            }
        }
    }
}

/// Transposes a square matrix whose rows are as many vectors as they have lanes.
#[inline(always)]
fn transpose<S: Simd>(rows: &mut [S::f32s; PADDING]) {
    let (half, mut left) = (S::f32s::LEN / 2, S::f32s::LEN / 2);
    while left > 0 {
        let before = *rows;
        for i in 0..half {
            let (a, b) = (before[i], before[i + half]);
            (rows[2 * i], rows[2 * i + 1]) = (a.zip_low(b), a.zip_high(b));
        }
        left /= 2;
    }
}
