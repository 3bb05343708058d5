//! Symmetric positive definite systems, by Cholesky's factors, `A = L L^T`, and the normal equations of least squares.

use crate::engine::cpu::dense::{self, vectorised};
use crate::matrix::{Matrix, multiply};
use crate::real::dot;
use rayon::prelude::*;

/// Rows that are computed together.
const BLOCK: usize = 32;

/// `A = L L^T`.
pub(super) struct Cholesky {
    l: Vec<f64>,
    n: usize,
}

impl Cholesky {
    /// The factor of `a`, of which the lower triangle is read; none if it is not positive definite to rounding.
    pub(super) fn new(mut a: Vec<f64>, n: usize) -> Option<Self> {
        let found = vectorised(
            dense::level(),
            #[inline(always)]
            || factorise(&mut a, n),
        );
        found.map(|()| Self { l: a, n })
    }

    /// Every row `b` of so many right-hand sides becomes `A^{-1} b`.
    pub(super) fn solve(&self, rows: &mut [f64]) {
        let (l, n) = (&self.l, self.n);
        rows.par_chunks_exact_mut(n).for_each(|b| {
            vectorised(
                dense::level(),
                #[inline(always)]
                || substitute(l, n, b),
            );
        });
    }
}

/// The lower triangle of `a` becomes that of `L`, unless it is not positive definite to rounding.
#[inline(always)]
fn factorise(a: &mut [f64], n: usize) -> Option<()> {
    // Rows by blocks: those above are read once for all rows of a block.
    for first in (0..n).step_by(BLOCK) {
        let (above, rows) = a.split_at_mut(first * n);
        for (j, other) in above.chunks_exact(n).enumerate() {
            for row in rows.chunks_exact_mut(n).take(BLOCK) {
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
        }
        for i in first..n.min(first + BLOCK) {
            let (above, row) = rows.split_at_mut((i - first) * n);
            for j in first..i {
                let other = &above[(j - first) * n..][..=j];
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
            let square = row[i] - dot(&row[..i], &row[..i]);
            row[i] = (square > 0.0).then(|| square.sqrt())?;
        }
    }
    Some(())
}

/// `b` becomes `(L L^T)^{-1} b`.
#[inline(always)]
fn substitute(l: &[f64], n: usize, b: &mut [f64]) {
    for i in 0..n {
        b[i] = (b[i] - dot(&l[i * n..][..i], &b[..i])) / l[i * n + i];
    }
    for i in (0..n).rev() {
        b[i] /= l[i * n + i];
        let (before, at) = b.split_at_mut(i);
        before.iter_mut().zip(&l[i * n..]).for_each(|(b, l)| *b -= l * at[0]);
    }
}

/// The normal equations of a least-squares fit of `t` by `W u + b`, summed over samples: `sum [u 1]^T [u 1]` and
/// `sum t^T [u 1]`.
#[derive(Clone)]
pub(super) struct Normal {
    a: Vec<f64>,
    b: Vec<f64>,
    n: usize,
}

impl Normal {
    /// No samples yet.
    pub(super) fn new(inputs: usize, outputs: usize) -> Self {
        let n = inputs + 1;
        Self { a: vec![0.0; n * n], b: vec![0.0; n * outputs], n }
    }

    /// Keeps a share of the sums and adds samples, row by row.
    pub(super) fn observe(&mut self, keep: f64, u: &[f64], t: &[f64]) {
        let inputs = self.n - 1;
        let ones: Vec<f64> = u.chunks_exact(inputs).flat_map(|u| u.iter().copied().chain([1.0])).collect();
        let samples = ones.len() / self.n;
        let (u, t) = (Matrix::new(&ones, samples, self.n), Matrix::new(t, samples, self.b.len() / self.n));
        multiply((1.0, keep), u.transposed(), u, &mut self.a);
        multiply((1.0, keep), t.transposed(), u, &mut self.b);
    }

    /// `argmin 1/2 sum ||t - W u - b||^2 + delta/2 ||[W b] - before||^2`, row by row; `before` where that has no solution.
    pub(super) fn solve(&self, delta: f64, before: Vec<f64>) -> Vec<f64> {
        let mut a = self.a.clone();
        a.iter_mut().step_by(self.n + 1).for_each(|a| *a += delta);
        let Some(factor) = Cholesky::new(a, self.n) else { return before };
        let mut rows: Vec<f64> = self.b.iter().zip(&before).map(|(b, w)| b + delta * w).collect();
        factor.solve(&mut rows);
        rows
    }
}
