//! `L* L` of a layer on the plane, cut to a square of pixels: what the norm of its operator is taken of.

use crate::matrix::{Matrix, multiply, product};
use crate::operator::{Convolution, Filters, LinearOperator};
use crate::{Real, Result};

/// The side of the square in pixels of the image.
const SIDE: usize = 32;
/// From so many channels on a matrix product is faster than plain loops.
const MANY: usize = 4;

/// The autocorrelation of a layer's filters, `a[c,c'](t) = sum_{j,s} w[j,c,s] w[j,c',s+t]`, on a square.
pub(super) struct Gram<T> {
    filters: Filters<T>,
    side: usize,
}

impl<T: Real> Gram<T> {
    pub fn new(theta: &Filters<T>) -> Self {
        let (features, channels, size) = (theta.features(), theta.channels(), theta.size());
        let taps = size * size;
        let all = channels * taps;
        // Every weight times every other, summed over the features.
        let mut products = vec![T::zero(); all * all];
        let weights = Matrix::new(theta.weights(), features, all);
        multiply(product(), weights.transposed(), weights, &mut products);
        let reach = 2 * size - 1;
        let mut gram = vec![T::zero(); channels * channels * reach * reach];
        for (a, row) in products.chunks_exact(all).enumerate() {
            let (c, y, x) = (a / taps, a % taps / size, a % size);
            for (b, value) in row.iter().enumerate() {
                let (d, v, u) = (b / taps, b % taps / size, b % size);
                gram[((c * channels + d) * reach + v + size - 1 - y) * reach + u + size - 1 - x] += *value;
            }
        }
        let filters = Filters::new(channels, channels, reach, gram).expect("an odd side");
        Self { filters, side: if theta.phases() > 1 { SIDE / 2 } else { SIDE } }
    }

    fn convolution(&self) -> Result<Convolution<'_, T>> {
        Convolution::new(&self.filters, self.side, self.side)
    }
}

impl<T: Real> LinearOperator<T> for Gram<T> {
    fn domain_len(&self) -> usize {
        self.filters.channels() * self.side * self.side
    }

    fn range_len(&self) -> usize {
        self.domain_len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let (channels, side, radius) = (self.filters.channels(), self.side, self.filters.radius());
        if channels < MANY {
            return self.convolution().expect("a square of pixels").apply(x, y);
        }
        // What each tap sees, a row each: with zeros around the square, rows of it shifted.
        let width = side + 2 * radius;
        let mut padded = vec![T::zero(); channels * width * width];
        for (row, values) in x.chunks_exact(side).enumerate() {
            let (c, y) = (row / side, row % side);
            padded[(c * width + y + radius) * width + radius..][..side].copy_from_slice(values);
        }
        let mut seen = Vec::with_capacity(self.filters.weights().len() / channels * side * side);
        for (c, ty, tx) in self.taps() {
            for y in 0..side {
                seen.extend_from_slice(&padded[(c * width + y + ty) * width + tx..][..side]);
            }
        }
        let taps = self.filters.weights().len() / channels;
        let weights = Matrix::new(self.filters.weights(), channels, taps);
        multiply(product(), weights, Matrix::new(&seen, taps, side * side), y);
    }

    /// It is its own adjoint.
    fn adjoint(&self, y: &[T], x: &mut [T]) {
        self.apply(y, x);
    }
}

impl<T: Real> Gram<T> {
    fn taps(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (channels, size) = (self.filters.channels(), self.filters.size());
        (0..channels * size * size).map(move |t| (t / (size * size), t / size % size, t % size))
    }
}
