//! Batches of planes in the layout the kernels want: every row ends in a gap of zeros.
//!
//! A plane of `height x width` pixels is one long vector of rows of `width + gap` numbers. The gap, as wide as the
//! kernel's radius, is the zero padding of the row's right end and of the next row's left end at once, so a tap of
//! a convolution is nothing but an offset into that vector, and no kernel knows about borders.

pub mod phases;

use crate::{Real, Result, memory};
use rayon::prelude::*;
use std::ops::Range;

/// Planes are padded to a multiple of this many numbers, the widest vector register in use.
pub const LANES: usize = 16;

/// Numbers of a batch that a thread takes at once.
const GRAIN: usize = 1 << 14;

/// The shape of one plane and its gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    height: usize,
    width: usize,
    gap: usize,
}

impl Grid {
    /// A plane of `height x width` pixels for kernels of radius `gap`.
    pub fn new(height: usize, width: usize, gap: usize) -> Result<Self> {
        refuse!(height == 0 || width == 0 =>
            "the image is {width}x{height}, but it needs at least one pixel");
        Ok(Self { height, width, gap })
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Zeros after each row.
    pub fn gap(&self) -> usize {
        self.gap
    }

    /// The distance between two rows.
    pub fn stride(&self) -> usize {
        self.width + self.gap
    }

    /// Numbers in a plane, gaps included.
    pub fn len(&self) -> usize {
        (self.height * self.stride()).next_multiple_of(LANES)
    }

    /// Never: a grid has at least one pixel.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Pixels in a plane.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Pixels in a plane without its outermost `border` rows and columns.
    pub fn pixels_inside(&self, border: usize) -> usize {
        let inside = |side: usize| side - (2 * border).min(side);
        inside(self.height) * inside(self.width)
    }

    /// Zeroes the outermost `border` rows and columns of a plane.
    pub fn clear_border<T: Real>(&self, border: usize, plane: &mut [T]) {
        for (y, row) in plane.chunks_exact_mut(self.stride()).take(self.height).enumerate() {
            let row = &mut row[..self.width];
            let inside = border <= y && y + border < self.height && 2 * border < self.width;
            let side = if inside { border } else { self.width };
            row[..side].fill(T::zero());
            row[self.width - side..].fill(T::zero());
        }
    }

    /// Zeros that a plane needs before and after it so that every tap can be read.
    pub fn margin(&self) -> usize {
        (self.gap * self.stride() + self.gap).next_multiple_of(LANES)
    }
}

/// A vector that starts on a cache line.
#[derive(Debug)]
pub struct Aligned<T: Real> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Real> Aligned<T> {
    /// `len` zeros; without memory for them, the work ends with an error ([`memory::or_error`]).
    pub fn zeros(len: usize) -> Self {
        const LINE: usize = 64;
        let data: Vec<T> = memory::zeros(len.saturating_add(LINE / size_of::<T>()));
        let start = data.as_ptr().align_offset(LINE).min(LINE / size_of::<T>());
        Self { data, start, len }
    }
}

impl<T: Real> std::ops::Deref for Aligned<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T: Real> std::ops::DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}

impl<T: Real> Clone for Aligned<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

/// A batch: `samples x channels` planes on one grid. The gaps are zero, always.
#[derive(Clone, Debug)]
pub struct Field<T: Real> {
    samples: usize,
    channels: usize,
    grid: Grid,
    data: Aligned<T>,
}

impl<T: Real> Field<T> {
    /// A batch of zeros.
    pub fn zeros(samples: usize, channels: usize, grid: Grid) -> Self {
        Self { samples, channels, grid, data: Aligned::zeros(samples * channels * grid.len()) }
    }

    /// A batch from planar numbers `[sample][channel][y][x]` without gaps.
    pub fn from_planar(samples: usize, channels: usize, grid: Grid, planar: &[T]) -> Result<Self> {
        let mut field = Self::zeros(samples, channels, grid);
        field.load(planar)?;
        Ok(field)
    }

    /// Replaces the contents by planar numbers `[sample][channel][y][x]`.
    pub fn load(&mut self, planar: &[T]) -> Result<()> {
        let expected = self.samples * self.channels * self.grid.pixels();
        refuse!(planar.len() != expected =>
            "{} numbers given for a batch of {expected}: samples, channels or size do not match",
            planar.len());
        load_planes(self.grid, planar, &mut self.data);
        Ok(())
    }

    /// Replaces one sample by planar numbers `[channel][y][x]`.
    pub fn load_sample(&mut self, index: usize, planar: &[T]) {
        let (grid, len) = (self.grid, self.sample_len());
        assert_eq!(planar.len(), self.channels * grid.pixels(), "a sample of another size");
        load_planes(grid, planar, &mut self.data[index * len..][..len]);
    }

    /// Zeroes the outermost `border` rows and columns of every plane.
    pub fn clear_border(&mut self, border: usize) {
        let grid = self.grid;
        self.data.chunks_exact_mut(grid.len()).for_each(|plane| grid.clear_border(border, plane));
    }

    /// The numbers without gaps, `[sample][channel][y][x]`.
    pub fn to_planar(&self) -> Vec<T> {
        self.crop(0..self.grid.height, 0..self.grid.width)
    }

    /// The numbers in these rows and columns, `[sample][channel][y][x]`.
    pub fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Vec<T> {
        let mut planar = memory::room(self.samples * self.channels * rows.len() * columns.len());
        for plane in self.data.chunks_exact(self.grid.len()) {
            for y in rows.clone() {
                planar.extend_from_slice(&plane[y * self.grid.stride()..][columns.clone()]);
            }
        }
        planar
    }

    /// Samples in the batch.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Planes per sample.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The shape of each plane.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// All numbers with gaps, `[sample][channel][grid.len()]`.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// All numbers with gaps; whoever writes keeps the gaps zero.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// Numbers per sample, gaps included.
    pub fn sample_len(&self) -> usize {
        self.channels * self.grid.len()
    }

    /// The planes of one sample.
    pub fn sample(&self, index: usize) -> &[T] {
        &self.data[index * self.sample_len()..][..self.sample_len()]
    }

    /// The planes of one sample without gaps, `[channel][y][x]`.
    pub fn sample_to_planar(&self, index: usize) -> Vec<T> {
        let Grid { height, width, .. } = self.grid;
        let planes = self.sample(index).chunks_exact(self.grid.len());
        let rows = planes.flat_map(|plane| plane.chunks_exact(self.grid.stride()).take(height));
        rows.flat_map(|row| row[..width].iter().copied()).collect()
    }

    /// `a <- f(a)`, entry by entry; `f(0) = 0`, or the gaps would not stay zero.
    pub fn map(&mut self, f: impl Fn(T) -> T + Sync) {
        self.data.par_chunks_mut(GRAIN).for_each(|a| a.iter_mut().for_each(|a| *a = f(*a)));
    }

    /// `a <- f(a, b)`, entry by entry; `f(0, 0) = 0`.
    pub fn zip(&mut self, b: &Self, f: impl Fn(T, T) -> T + Sync) {
        assert_eq!(self.data.len(), b.data.len(), "batches of different sizes");
        let chunks = self.data.par_chunks_mut(GRAIN).zip(b.data.par_chunks(GRAIN));
        chunks.for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b)));
    }

    /// `(a, b) <- f(a, b, c)`, entry by entry; `f(0, 0, 0) = (0, 0)`.
    pub fn zip_both(&mut self, b: &mut Self, c: &Self, f: impl Fn(T, T, T) -> (T, T) + Sync) {
        let len = self.data.len();
        assert!(len == b.data.len() && len == c.data.len(), "batches of different sizes");
        let chunks = self.data.par_chunks_mut(GRAIN).zip(b.data.par_chunks_mut(GRAIN));
        chunks.zip(c.data.par_chunks(GRAIN)).for_each(|((a, b), c)| {
            a.iter_mut().zip(b).zip(c).for_each(|((a, b), &c)| (*a, *b) = f(*a, *b, c));
        });
    }

    /// The same numbers as `other`.
    pub fn copy_from(&mut self, other: &Self) {
        self.data.copy_from_slice(&other.data);
    }

    /// A batch of zeros of the same shape.
    pub fn zeros_like(&self) -> Self {
        Self::zeros(self.samples, self.channels, self.grid)
    }

    /// The pixel `(y, x)` of plane `channel` of `sample`, zero outside the image.
    pub fn at(&self, sample: usize, channel: usize, y: isize, x: isize) -> T {
        let Grid { height, width, .. } = self.grid;
        if y < 0 || x < 0 || y as usize >= height || x as usize >= width {
            return T::zero();
        }
        let plane = (sample * self.channels + channel) * self.grid.len();
        self.data[plane + y as usize * self.grid.stride() + x as usize]
    }

    /// The same batch in another precision.
    pub fn cast<U: Real>(&self) -> Field<U> {
        let mut field = Field::zeros(self.samples, self.channels, self.grid);
        field.data.iter_mut().zip(self.data.iter()).for_each(|(to, from)| *to = U::of(from.to_double()));
        field
    }
}

fn load_planes<T: Real>(grid: Grid, planar: &[T], data: &mut [T]) {
    for (plane, source) in data.chunks_exact_mut(grid.len()).zip(planar.chunks_exact(grid.pixels())) {
        let rows = plane.chunks_exact_mut(grid.stride());
        for (row, source) in rows.zip(source.chunks_exact(grid.width)) {
            row[..grid.width].copy_from_slice(source);
        }
    }
}
