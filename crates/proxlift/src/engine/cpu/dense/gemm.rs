//! Products whose shapes suit the kernels, for those who have strides.

use super::{ByRows, PADDING, Strided, level, product, product_of_rows};
use std::slice::from_raw_parts;

/// A matrix by its first number and the strides of its rows and columns.
pub(crate) type Matrix = (*const f32, isize, isize);

/// `c = a b` for matrices of `m x k`, `k x n` and `m x n` numbers, if they lie as the kernels need it; else nothing, and `false`.
///
/// # Safety
/// All numbers of the matrices are there, and nobody else touches those of `c`.
pub(crate) unsafe fn gemm([m, k, n]: [usize; 3], a: Matrix, b: Matrix, c: (*mut f32, isize, isize)) -> bool {
    if m == 0 || k == 0 || n == 0 || c.2 != 1 || [a.1, a.2, b.1, b.2, c.1].iter().any(|&stride| stride < 0) {
        return false;
    }
    let stride = |stride: isize| stride as usize;
    let span = |rows: usize, (_, row, column): Matrix, columns: usize| {
        (rows - 1) * stride(row) + (columns - 1) * stride(column) + 1
    };
    let straight = b.2 == 1 && n.is_multiple_of(PADDING) && n <= stride(c.1);
    let transposed = b.1 == 1 && a.2 == 1 && k.is_multiple_of(PADDING) && n <= stride(c.1);
    if !straight && !transposed {
        return false;
    }
    // SAFETY: the caller's promise; a slice ends with the last number of its matrix.
    let (values, others, c, apart) = unsafe {
        let c_len = span(m, (c.0, c.1, c.2), n);
        (
            from_raw_parts(a.0, span(m, a, k)),
            from_raw_parts(b.0, span(k, b, n)),
            std::slice::from_raw_parts_mut(c.0, c_len),
            stride(c.1),
        )
    };
    if straight {
        let a = Strided { values, row: stride(a.1), column: stride(a.2) };
        product(level(), [m, k, n], a, ByRows { values: others, row: stride(b.1) }, (c, apart));
    } else {
        let (a, b) = (ByRows { values, row: stride(a.1) }, ByRows { values: others, row: stride(b.2) });
        product_of_rows(level(), [m, k, n], a, b, &[], (c, apart));
    }
    true
}
