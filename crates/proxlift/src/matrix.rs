//! Products of dense matrices, kept row by row.

use crate::{Real, engine::cpu::dense};
use rayon::prelude::*;
use std::any::TypeId;

/// The scales of a plain product, `c <- a b`.
pub(crate) fn product<T: Real>() -> (T, T) {
    (T::one(), T::zero())
}

/// Threads take a multiple of so many rows of a result. Each row is a sum in the same order however they are dealt out, so bits
/// do not depend on the threads.
const ROWS: usize = 16;

/// Multiply-adds below which one thread is faster.
const SMALL: usize = 1 << 17;

/// A matrix of so many rows and columns, or the transpose of one that is stored.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a, T: Real> Matrix<'a, T> {
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(values.len(), rows * columns, "the numbers do not fit the matrix");
        Self { values, rows, columns, transposed: false }
    }

    pub fn transposed(self) -> Self {
        Self { rows: self.columns, columns: self.rows, transposed: !self.transposed, ..self }
    }

    fn strides(&self) -> (isize, isize) {
        if self.transposed { (1, self.rows as isize) } else { (self.columns as isize, 1) }
    }

    /// Where the numbers from row `first` on begin, and the strides.
    fn at_row(&self, first: usize) -> (*const T, isize, isize) {
        let (row, column) = self.strides();
        // SAFETY: the row is in the matrix.
        (unsafe { self.values.as_ptr().offset(first as isize * row) }, row, column)
    }
}

/// `c <- scale a b + keep c`, in parallel where it pays.
pub(crate) fn multiply<T: Real>((scale, keep): (T, T), a: Matrix<'_, T>, b: Matrix<'_, T>, c: &mut [T]) {
    assert!(a.columns == b.rows && c.len() == a.rows * b.columns, "the matrices do not fit");
    let n = b.columns;
    let small = a.rows * a.columns * n <= SMALL;
    let rows =
        if small { a.rows } else { a.rows.div_ceil(rayon::current_num_threads()).next_multiple_of(ROWS) };
    let part = |(i, c): (usize, &mut [T])| {
        let (shape, a) = ([c.len() / n, b.rows, n], a.at_row(i * rows));
        // SAFETY: these rows of `a`, all of `b`, and the rows of `c` that were cut out, with the strides of the matrices.
        unsafe { gemm(shape, (scale, keep), a, b.at_row(0), (c.as_mut_ptr(), n as isize, 1)) };
    };
    if c.is_empty() {
        return;
    }
    if small {
        part((0, c));
    } else {
        c.par_chunks_mut(rows * n).enumerate().for_each(part);
    }
}

/// [`Real::gemm`], by the engine's own kernels where they fit: in single precision, shapes permitting.
///
/// # Safety
/// That of [`Real::gemm`].
unsafe fn gemm<T: Real>(
    shape: [usize; 3],
    scales: (T, T),
    a: (*const T, isize, isize),
    b: (*const T, isize, isize),
    c: (*mut T, isize, isize),
) {
    let single = TypeId::of::<T>() == TypeId::of::<f32>() && scales == product();
    // SAFETY: the caller's promise; the numbers are `f32` where pointers to them become so.
    unsafe {
        let done = single
            && dense::gemm(shape, (a.0.cast(), a.1, a.2), (b.0.cast(), b.1, b.2), (c.0.cast(), c.1, c.2));
        if !done {
            T::gemm(shape, scales, a, b, c);
        }
    }
}
