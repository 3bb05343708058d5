//! Batches of vectors.

use crate::{Real, Result};
use rayon::prelude::*;

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

    /// `a <- f(a, b)`, entry by entry.
    pub fn zip(&mut self, b: &Self, f: impl Fn(T, T) -> T + Sync) {
        assert_eq!(self.data.len(), b.data.len(), "batches of different sizes");
        self.data.iter_mut().zip(&b.data).for_each(|(a, &b)| *a = f(*a, b));
    }
}
