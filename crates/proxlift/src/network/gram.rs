//! `L* L` of a layer on the plane, cut to a square of pixels: what the norm of its operator is taken of.

use crate::operator::{Filters, LinearOperator};
use crate::{Real, real::product};

/// The side of the square in pixels of the image.
const SIDE: usize = 32;

/// The autocorrelation of a layer's filters, `a[c,c'](t) = sum_{j,s} w[j,c,s] w[j,c',s+t]`, on a square.
pub(super) struct Gram<T> {
    filters: Filters<T>,
    side: usize,
}

impl<T: Real> Gram<T> {
    pub fn new(theta: &Filters<T>) -> Self {
        let (channels, size) = (theta.channels(), theta.size());
        let reach = 2 * size - 1;
        let mut gram = vec![T::zero(); channels * channels * reach * reach];
        // What is added for the weights `a` and `b` of a feature, counted by channel, row and column.
        let taps = size * size;
        let mut add = |a: usize, b: usize, value: T| {
            let (c, y, x) = (a / taps, a % taps / size, a % size);
            let (d, v, u) = (b / taps, b % taps / size, b % size);
            gram[((c * channels + d) * reach + v + size - 1 - y) * reach + u + size - 1 - x] += value;
        };
        let all = channels * taps;
        let mut sums = vec![T::zero(); all * all];
        product([all, theta.features(), all], (theta.weights(), true), theta.weights(), &mut sums);
        sums.iter().enumerate().for_each(|(i, &sum)| add(i / all, i % all, sum));
        let filters = Filters::new(channels, channels, reach, gram).expect("an odd side");
        Self { filters, side: if theta.phases() > 1 { SIDE / 2 } else { SIDE } }
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
        let Self { filters, side } = self;
        let (channels, size, side) = (filters.channels(), filters.size(), *side);
        // What each tap sees, a row each: with zeros around the square, rows of it shifted.
        let (radius, width) = (size / 2, side + size - 1);
        let mut padded = vec![T::zero(); channels * width * width];
        for (row, values) in x.chunks_exact(side).enumerate() {
            let (c, y) = (row / side, row % side);
            padded[(c * width + y + radius) * width + radius..][..side].copy_from_slice(values);
        }
        let taps = channels * size * size;
        let mut seen = Vec::with_capacity(taps * side * side);
        for (c, ty, tx) in (0..taps).map(|t| (t / (size * size), t / size % size, t % size)) {
            for y in 0..side {
                seen.extend_from_slice(&padded[(c * width + y + ty) * width + tx..][..side]);
            }
        }
        product([channels, taps, side * side], (filters.weights(), false), &seen, y);
    }

    /// It is its own adjoint.
    fn adjoint(&self, y: &[T], x: &mut [T]) {
        self.apply(y, x);
    }
}
