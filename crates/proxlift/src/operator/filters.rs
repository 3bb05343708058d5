//! The weights of one layer: `J x C` filters of `k x k` taps.

use crate::image::symmetry::Symmetry;
use crate::{Real, Result, field::phases::stride_of};

/// The parameter `theta_k` of a layer: the filters of a bias-free convolution `L : C -> J`,
/// `(L x)_j(p) = sum_{c,t} w[j,c,t] x_c(p + t)` with `t` in `[-r, r]^2`, `r = (k - 1) / 2`, and zeros outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Filters<T> {
    features: usize,
    channels: usize,
    size: usize,
    weights: Vec<T>,
}

impl<T: Real> Filters<T> {
    /// Filters from their weights in the order `[j][c][ky][kx]`.
    /// Fails when the kernel size is even or zero, a count is zero, or the number of weights does not fit.
    pub fn new(features: usize, channels: usize, size: usize, weights: Vec<T>) -> Result<Self> {
        refuse!(size.is_multiple_of(2) => "the kernel size is {size}, but it must be odd (3, 5 or 7)");
        refuse!(features == 0 || channels == 0 => "a layer needs at least one feature and one channel");
        let expected = features * channels * size * size;
        refuse!(weights.len() != expected => "{} weights given, but {expected} needed", weights.len());
        Ok(Self { features, channels, size, weights })
    }

    /// All weights zero.
    pub fn zeros(features: usize, channels: usize, size: usize) -> Result<Self> {
        Self::new(features, channels, size, vec![T::zero(); features * channels * size * size])
    }

    /// Projects onto filters of zero mean, `sum_t w[j,c,t] = 0`: then `L` does not see a constant.
    pub fn center(&mut self) {
        let numbers = self.phases() * self.size * self.size;
        let taps = T::of(numbers as f64);
        for filter in self.weights.chunks_exact_mut(numbers) {
            let mean = filter.iter().fold(T::zero(), |sum, &w| sum + w) / taps;
            filter.iter_mut().for_each(|w| *w -= mean);
        }
    }

    /// The filters that see a turned picture as these see the picture itself.
    #[must_use]
    pub fn turned(&self, symmetry: Symmetry) -> Self {
        let (size, stride) = (self.size, stride_of(self.channels));
        let phases: Vec<usize> = (0..stride * stride).collect();
        let mut origin = phases.clone();
        symmetry.copy(&phases, stride, &mut origin, stride);
        let mut weights = self.weights.clone();
        let taps = size * size;
        for (channel, turned) in weights.chunks_exact_mut(taps).enumerate() {
            let (first, phase) = (channel / phases.len() * phases.len(), channel % phases.len());
            symmetry.copy(&self.weights[(first + origin[phase]) * taps..], size, turned, size);
        }
        Self { weights, ..*self }
    }

    /// The same operator with kernels of `size` taps a side, zero around the ones it had.
    /// Fails when that is smaller than they are, or even.
    pub fn widened(&self, size: usize) -> Result<Self> {
        refuse!(size < self.size =>
            "kernels of {0}x{0} taps cannot be cut to {size}x{size}", self.size);
        let mut wide = Self::zeros(self.features, self.channels, size)?;
        let margin = (size - self.size) / 2;
        let kernels = wide.weights.chunks_exact_mut(size * size);
        for (wide, kernel) in kernels.zip(self.weights.chunks_exact(self.size * self.size)) {
            for (row, taps) in kernel.chunks_exact(self.size).enumerate() {
                wide[(margin + row) * size + margin..][..self.size].copy_from_slice(taps);
            }
        }
        Ok(wide)
    }

    /// `J`, the number of features.
    pub fn features(&self) -> usize {
        self.features
    }

    /// `C`, the number of image channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// How many of the channels are phases of the same one: 4 for convolutions of stride 2, else 1.
    pub fn phases(&self) -> usize {
        stride_of(self.channels).pow(2)
    }

    /// `k`, the side of the square kernel.
    pub fn size(&self) -> usize {
        self.size
    }

    /// `r = (k - 1) / 2`.
    pub fn radius(&self) -> usize {
        self.size / 2
    }

    /// The weights in the order `[j][c][ky][kx]`.
    pub fn weights(&self) -> &[T] {
        &self.weights
    }

    /// The weights, to be changed in place.
    pub fn weights_mut(&mut self) -> &mut [T] {
        &mut self.weights
    }

    /// The same filters in another precision.
    pub fn cast<U: Real>(&self) -> Filters<U> {
        Filters {
            features: self.features,
            channels: self.channels,
            size: self.size,
            weights: self.weights.iter().map(|w| U::of(w.to_double())).collect(),
        }
    }
}
