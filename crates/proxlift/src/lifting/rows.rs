//! Batches of vectors.

use super::home::at_home;
use crate::engine::cpu::dense::prefetch_at;
use crate::{Real, Result};
use rayon::prelude::*;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// So many samples, one after the other; an image is its planes, `[channel][y][x]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    width: usize,
    data: Vec<T>,
}

impl<T: Real> Rows<T> {
    /// Samples of `width` numbers each. Fails when the numbers do not make whole samples.
    pub fn new(width: usize, data: Vec<T>) -> Result<Self> {
        refuse!(width == 0 || !data.len().is_multiple_of(width) =>
            "{} numbers are not whole samples of {width}", data.len());
        Ok(Self { width, data })
    }

    /// Zeros.
    pub fn zeros(samples: usize, width: usize) -> Self {
        Self { width, data: crate::memory::zeros(samples.saturating_mul(width)) }
    }

    /// The same shape, all zero.
    pub fn zeros_like(&self) -> Self {
        Self::zeros(self.samples(), self.width)
    }

    /// The batch itself, leaving no samples behind.
    pub(super) fn taken(&mut self) -> Self {
        Self { width: self.width, data: std::mem::take(&mut self.data) }
    }

    /// Samples.
    pub fn samples(&self) -> usize {
        self.data.len() / self.width
    }

    /// Numbers of a sample.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All numbers.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// All numbers, to be changed.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// One sample.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.width..][..self.width]
    }

    /// All samples.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.data.chunks_exact(self.width)
    }

    /// All samples, in parallel.
    pub fn par_rows(&self) -> impl IndexedParallelIterator<Item = &[T]> {
        self.data.par_chunks_exact(self.width)
    }

    /// All samples, in parallel, to be changed.
    pub fn par_rows_mut(&mut self) -> impl IndexedParallelIterator<Item = &mut [T]> {
        self.data.par_chunks_exact_mut(self.width)
    }

    /// Becomes the samples of `from` with these indices, so that a batch needs no memory of its own.
    /// Fails when their number or width is another, or an index is not of a sample.
    pub fn gather(&mut self, from: &Self, indices: &[usize]) -> Result<()> {
        refuse!(self.width != from.width || self.samples() != indices.len() =>
            "{} samples of {} numbers do not fit a batch of {} samples of {}",
            indices.len(), from.width, self.samples(), self.width);
        if let Some(i) = indices.iter().find(|i| **i >= from.samples()) {
            return Err(invalid!("sample {i} is asked for, but there are {}", from.samples()));
        }
        let (each, width) = (indices.len().div_ceil(rayon::current_num_threads()).max(1), self.width);
        let parts = self.data.chunks_mut(each * width).zip(indices.chunks(each)).collect();
        at_home(
            parts,
            |(_, indices)| indices.len(),
            |(rows, indices): (&mut [T], &[usize])| {
                for (n, (row, &i)) in rows.chunks_exact_mut(width).zip(indices).enumerate() {
                    // The processor does not foresee which one comes next.
                    if let Some(&next) = indices.get(n + 1) {
                        from.row(next)
                            .chunks(LINE / size_of::<T>())
                            .for_each(|line| prefetch_at(line.as_ptr()));
                    }
                    row.copy_from_slice(from.row(i));
                }
            },
        );
        Ok(())
    }

    /// `a <- f(a, b)`, entry by entry.
    pub fn zip(&mut self, b: &Self, f: impl Fn(T, T) -> T + Sync) {
        assert_eq!(self.data.len(), b.data.len(), "batches of different sizes");
        self.data.iter_mut().zip(&b.data).for_each(|(a, &b)| *a = f(*a, b));
    }
}
