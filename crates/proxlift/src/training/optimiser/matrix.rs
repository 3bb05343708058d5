//! Products of small dense matrices, kept row by row.

/// The scales of a plain product, `c <- a b`.
pub(super) const PRODUCT: (f32, f32) = (1.0, 0.0);

/// `c <- scale a b + keep c` for `a` of `m x k` and `b` of `k x n` numbers, either of them stored transposed.
pub(super) fn multiply(
    [m, k, n]: [usize; 3],
    (scale, keep): (f32, f32),
    (a, a_transposed): (&[f32], bool),
    (b, b_transposed): (&[f32], bool),
    c: &mut [f32],
) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "the matrices do not fit");
    let strides = |rows: usize, columns: usize, transposed: bool| {
        if transposed { (1, rows as isize) } else { (columns as isize, 1) }
    };
    let ((a_row, a_column), (b_row, b_column)) = (strides(m, k, a_transposed), strides(k, n, b_transposed));
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: the lengths were checked, and the strides are those of matrices of that size.
    unsafe {
        matrixmultiply::sgemm(m, k, n, scale, a, a_row, a_column, b, b_row, b_column, keep, c, n as isize, 1);
    }
}
