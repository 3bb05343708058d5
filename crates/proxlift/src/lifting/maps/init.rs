//! Where a training starts: random weights whose scale suits the activation, zero biases.
//!
//! Weights are normal with the standard deviation `gain / sqrt(n)`, `n` the numbers that an output is a sum of. A gain of
//! `sqrt(2)` suits relu (He, Zhang, Ren and Sun 2015), 1 what moves most of its inputs (Glorot and Bengio 2010).

use super::{Convolutional, Dense};
use crate::operator::Filters;
use crate::{Real, Result};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

fn normal<T: Real>(count: usize, gain: f64, fan_in: usize, rng: &mut impl Rng) -> Result<Vec<T>> {
    refuse!(!(gain.is_finite() && gain > 0.0) => "the gain of random weights is {gain}, but it must be above zero");
    let scale = gain / (fan_in.max(1) as f64).sqrt();
    let mut draw = || -> f64 { StandardNormal.sample(rng) };
    Ok((0..count).map(|_| T::of(scale * draw())).collect())
}

impl<T: Real> Dense<T> {
    /// Random weights and no bias, drawn from `rng`, which [`crate::random::seeded`] makes.
    /// Fails when a size is zero or the gain is not above zero.
    pub fn random(inputs: usize, outputs: usize, gain: f64, rng: &mut impl Rng) -> Result<Self> {
        Self::new(inputs, normal(inputs * outputs, gain, inputs, rng)?, vec![T::zero(); outputs])
    }
}

impl<T: Real> Convolutional<T> {
    /// `features` random filters of `kernel x kernel` taps for `channels` planes of `size.0` rows and `size.1` columns, and no
    /// bias; with zeros around the image, so that a stride of 1 keeps its size.
    /// Fails when a size does not make a convolution or the gain is not above zero.
    pub fn random(
        features: usize,
        channels: usize,
        kernel: usize,
        size: (usize, usize),
        stride: usize,
        gain: f64,
        rng: &mut impl Rng,
    ) -> Result<Self> {
        let taps = channels * kernel * kernel;
        let filters = Filters::new(features, channels, kernel, normal(features * taps, gain, taps, rng)?)?;
        let padding = filters.radius();
        Self::strided(filters, vec![T::zero(); features], size, stride, padding)
    }
}
