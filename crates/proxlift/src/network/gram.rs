//! `L* L` of a layer on the plane, cut to a square of pixels: what the norm of its operator is taken of.

use crate::operator::{Filters, LinearOperator};
use crate::{Real, real::product};

/// The side of the square in pixels of the image.
const SIDE: usize = 32;
/// Numbers of a row that are summed at once: half a row of phases.
const PART: usize = 16;

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
        // With zeros around the square. A row of the result stays in registers while all taps are added to it: as a product of
        // matrices, which has few rows here, this took ten times as long.
        let (radius, width) = (size / 2, side + size - 1);
        let mut padded = vec![T::zero(); channels * width * width];
        for (row, values) in x.chunks_exact(side).enumerate() {
            let (c, y) = (row / side, row % side);
            padded[(c * width + y + radius) * width + radius..][..side].copy_from_slice(values);
        }
        let weights = filters.weights().chunks_exact(channels * size * size);
        for (weights, plane) in weights.zip(y.chunks_exact_mut(side * side)) {
            for (y, out) in plane.chunks_exact_mut(side).enumerate() {
                for (part, out) in out.as_chunks_mut::<PART>().0.iter_mut().enumerate() {
                    let mut sums = [T::zero(); PART];
                    for (row, weights) in weights.chunks_exact(size).enumerate() {
                        let (c, ty) = (row / size, row % size);
                        let seen = &padded[(c * width + y + ty) * width + part * PART..][..PART + size - 1];
                        for (seen, &weight) in seen.windows(PART).zip(weights) {
                            sums.iter_mut().zip(seen).for_each(|(sum, &seen)| *sum += weight * seen);
                        }
                    }
                    *out = sums;
                }
            }
        }
    }

    /// It is its own adjoint.
    fn adjoint(&self, y: &[T], x: &mut [T]) {
        self.apply(y, x);
    }
}
