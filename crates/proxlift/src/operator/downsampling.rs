//! Blur, then every `s`-th pixel of every `s`-th row.

use super::fourier::Fourier;
use super::{Blur, LinearOperator, Resolvent};
use crate::{Real, Result, memory};

/// `A = S K`: a blur `K`, of which the pixels `(s i, s j)` are kept.
///
/// `A A*` is a circular convolution of small pictures: its multiplier is the mean of `|k^|^2` over the `s^2` frequencies that
/// alias to the same one. Hence a closed form, by the identity of Woodbury (N. Zhao et al., "Fast single image
/// super-resolution using a new analytical solution", 2016):
///
/// ```text
/// (I + tau A* A)^-1 b = b - tau A* (I + tau A A*)^-1 A b
/// ```
#[derive(Clone, Debug)]
pub struct Downsampling {
    blur: Blur,
    channels: usize,
    factor: usize,
    /// Of the large picture.
    width: usize,
    /// That of small pictures.
    fourier: Fourier,
    /// The multiplier of `A A*`.
    power: Vec<f64>,
}

impl Downsampling {
    /// By a kernel as [`Blur::new`] takes it, of pictures of `(height, width)` pixels.
    /// Fails where that does, and when the factor does not divide the sides.
    pub fn new(
        factor: usize,
        kernel: &[f64],
        shape: (usize, usize),
        channels: usize,
        (height, width): (usize, usize),
    ) -> Result<Self> {
        refuse!(factor == 0 || height % factor != 0 || width % factor != 0 =>
            "the factor {factor} does not divide the {width} x {height} pixels of the picture");
        let blur = Blur::new(kernel, shape, channels, (height, width))?;
        let (low, wide) = (height / factor, width / factor);
        let fourier = Fourier::new(low, wide);
        let mean = |i: usize| {
            let (ky, kx) = fourier.frequency(i);
            let aliases = (0..factor * factor).map(|a| (ky + a / factor * low, kx + a % factor * wide));
            let powers = aliases.map(|(y, x)| blur.fourier.at(&blur.spectrum, y, x).norm_sqr());
            powers.sum::<f64>() / (factor * factor) as f64
        };
        let power = (0..low * (wide / 2 + 1)).map(mean).collect();
        Ok(Self { blur, channels, factor, width, fourier, power })
    }

    /// `||A||`, exactly.
    pub fn norm(&self) -> f64 {
        self.power.iter().fold(0.0f64, |most, p| most.max(*p)).sqrt()
    }

    /// The pixels that are kept, as rows of the large picture.
    fn kept<T: Real>(&self, large: &[T], small: &mut [T]) {
        let rows = large.chunks_exact(self.width).step_by(self.factor);
        for (row, to) in rows.zip(small.chunks_exact_mut(self.width / self.factor)) {
            to.iter_mut().zip(row.iter().step_by(self.factor)).for_each(|(to, from)| *to = *from);
        }
    }
}

impl<T: Real> LinearOperator<T> for Downsampling {
    fn domain_len(&self) -> usize {
        self.channels * self.blur.fourier.pixels()
    }

    fn range_len(&self) -> usize {
        self.channels * self.fourier.pixels()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let mut blurred: Vec<T> = memory::zeros(x.len());
        self.blur.apply(x, &mut blurred);
        self.kept(&blurred, y);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        let mut large: Vec<T> = memory::zeros(x.len());
        let rows = large.chunks_exact_mut(self.width).step_by(self.factor);
        for (row, from) in rows.zip(y.chunks_exact(self.width / self.factor)) {
            row.iter_mut().step_by(self.factor).zip(from).for_each(|(to, from)| *to = *from);
        }
        self.blur.adjoint(&large, x);
    }
}

impl<T: Real> Resolvent<T> for Downsampling {
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]) {
        let mut small: Vec<T> = memory::zeros(LinearOperator::<T>::range_len(self));
        let mut solved: Vec<T> = memory::zeros(small.len());
        self.apply(b, &mut small);
        let t = tau.to_double();
        self.fourier.multiply(&small, &mut solved, |i| (1.0 / (1.0 + t * self.power[i])).into());
        self.adjoint(&solved, x);
        x.iter_mut().zip(b).for_each(|(x, &b)| *x = b - tau * *x);
    }
}
