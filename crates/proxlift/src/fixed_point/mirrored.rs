//! The convolution `L` on whole pictures, which are mirrored beyond their edges.
//!
//! `L = C P`: `P` cuts a picture into strips, each with as many rows and columns around it as the kernels reach, those of the
//! mirror image at the edges of the picture; `C` convolves the strips, side by side. Features are those at the pixels of the
//! picture, each in one strip.

use crate::engine::Engine;
use crate::field::{Field, Grid};
use crate::operator::{Filters, LinearOperator, convolution_norm_bound};
use crate::{Real, Result, solver::safe_norm};
use rayon::prelude::*;

/// Rows of a strip, at most: many beside those around it, and few enough for all threads to have some.
const ROWS: usize = 64;

/// Frequencies on each axis at which the norm is bounded, and the side of the picture at whose edges it is looked for.
const FREQUENCIES: usize = 64;
const SIDE: usize = 40;

/// The norm at the edges is found by an iteration, which ends below it.
const SAFE: f64 = 1.01;

/// `L` for pictures of one size. Fields of features have the layout of the engine: strip by strip, with gaps that stay zero.
pub struct Mirrored<'e, T: Real> {
    engine: &'e dyn Engine<T>,
    theta: Filters<T>,
    height: usize,
    width: usize,
    /// Strips, and rows of each but the last.
    strips: usize,
    strip: usize,
    /// Of a strip and what is around it.
    grid: Grid,
}

impl<'e, T: Real> Mirrored<'e, T> {
    /// `L` of a network at its fixed point, for pictures of this height and width.
    /// Fails when they are empty, or the network has a stride.
    pub fn new(
        engine: &'e dyn Engine<T>,
        theta: Filters<T>,
        (height, width): (usize, usize),
    ) -> Result<Self> {
        refuse!(theta.phases() > 1 => "the regulariser of a whole picture is not written for networks with a stride");
        let radius = theta.radius();
        let strip = height.div_ceil(height.div_ceil(ROWS).max(1));
        let grid = Grid::new(strip + 2 * radius, width + 2 * radius, radius)?;
        refuse!(height == 0 || width == 0 => "a picture needs at least one pixel");
        Ok(Self { engine, theta, height, width, strips: height.div_ceil(strip), strip, grid })
    }

    /// A bound on `||L||`: inside the picture, and at its edges.
    pub fn norm(&self) -> Result<f64> {
        let inside = convolution_norm_bound(&self.theta, FREQUENCIES.max(4 * self.theta.size()))?.upper;
        let size = (self.height.min(SIDE), self.width.min(SIDE));
        let small = Self::new(self.engine, self.theta.clone(), size)?;
        Ok(inside.max(SAFE * safe_norm::<T>(&small)))
    }

    /// Numbers of a plane of features.
    pub fn plane(&self) -> usize {
        self.grid.len()
    }

    /// Strips of the picture and what is around them, all zero.
    pub(super) fn images(&self) -> Field<T> {
        Field::zeros(self.strips, self.theta.channels(), self.grid)
    }

    /// Features of all strips, all zero.
    pub(super) fn features(&self) -> Field<T> {
        Field::zeros(self.strips, self.theta.features(), self.grid)
    }

    /// The filters and the engine.
    pub(super) fn parts(&self) -> (&Filters<T>, &'e dyn Engine<T>) {
        (&self.theta, self.engine)
    }

    /// The row of the picture that is seen at a row of a strip.
    fn row(&self, strip: usize, y: usize) -> usize {
        mirrored(strip * self.strip + y, self.theta.radius(), self.height)
    }

    /// Rows of a strip that the picture has.
    fn rows(&self, strip: usize) -> usize {
        (self.height - strip * self.strip).min(self.strip)
    }

    /// Features that are not at pixels of the picture are none.
    pub(super) fn clear_around(&self, features: &mut [T]) {
        let (radius, sample) = (self.theta.radius(), self.theta.features() * self.grid.len());
        features.par_chunks_mut(self.grid.len()).enumerate().for_each(|(i, plane)| {
            self.grid.clear_border(radius, plane);
            let end = (radius + self.rows(i * self.grid.len() / sample)) * self.grid.stride();
            plane[end..].fill(T::zero());
        });
    }
}

impl<T: Real> Mirrored<'_, T> {
    /// `P`: the strips of a picture, with what is around them.
    pub(super) fn unfold(&self, x: &[T], images: &mut Field<T>) {
        let (channels, radius, pixels) =
            (self.theta.channels(), self.theta.radius(), self.height * self.width);
        let planes = images.data_mut().par_chunks_mut(self.grid.len()).enumerate();
        planes.for_each(|(i, plane)| {
            let from = &x[i % channels * pixels..][..pixels];
            for (y, row) in plane.chunks_exact_mut(self.grid.stride()).take(self.grid.height()).enumerate() {
                let from = &from[self.row(i / channels, y) * self.width..][..self.width];
                row[radius..radius + self.width].copy_from_slice(from);
                for x in (0..radius).chain(radius + self.width..self.grid.width()) {
                    row[x] = from[mirrored(x, radius, self.width)];
                }
            }
        });
    }

    /// `P*`.
    pub(super) fn fold(&self, images: &Field<T>, x: &mut [T]) {
        let (channels, radius, pixels) =
            (self.theta.channels(), self.theta.radius(), self.height * self.width);
        x.par_chunks_mut(pixels).enumerate().for_each(|(c, x)| {
            x.fill(T::zero());
            let planes = images.data().chunks_exact(self.grid.len()).skip(c).step_by(channels);
            for (strip, plane) in planes.enumerate() {
                for (y, row) in plane.chunks_exact(self.grid.stride()).take(self.grid.height()).enumerate() {
                    let to = &mut x[self.row(strip, y) * self.width..][..self.width];
                    to.iter_mut().zip(&row[radius..]).for_each(|(to, &from)| *to += from);
                    for x in (0..radius).chain(radius + self.width..self.grid.width()) {
                        to[mirrored(x, radius, self.width)] += row[x];
                    }
                }
            }
        });
    }
}

/// The pixel that is seen `by` pixels before number `i`, of `length`: beyond the ends, again and again, the mirror image.
fn mirrored(i: usize, by: usize, length: usize) -> usize {
    let period = 2 * length;
    let i = (i + period * by.div_ceil(period) - by) % period;
    i.min(period - 1 - i)
}

impl<T: Real> LinearOperator<T> for Mirrored<'_, T> {
    fn domain_len(&self) -> usize {
        self.theta.channels() * self.height * self.width
    }

    fn range_len(&self) -> usize {
        self.strips * self.theta.features() * self.grid.len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let (mut images, mut features) = (self.images(), self.features());
        self.unfold(x, &mut images);
        self.engine.analyse(&self.theta, &images, &mut features);
        self.clear_around(features.data_mut());
        y.copy_from_slice(features.data());
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        let (mut images, mut features) = (self.images(), self.features());
        features.data_mut().copy_from_slice(y);
        self.clear_around(features.data_mut());
        self.engine.adjoint(&self.theta, &features, &mut images);
        self.fold(&images, x);
    }
}
