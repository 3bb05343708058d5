//! Convolutions with a stride and padding, as products with a matrix of shifted pixels.

use super::kind::{Kind, Shape};
use super::{Affine, add_bias, bias_gradient};
use crate::lifting::Rows;
use crate::matrix::{Matrix, multiply, product};
use crate::operator::Filters;
use crate::{Real, Result};
use rayon::prelude::*;

/// `F(u)_j(p) = sum_{c,t} w[j,c,t] u_c(stride p + t - padding) + b_j`, with zeros outside the image.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolutional<T> {
    filters: Filters<T>,
    bias: Vec<T>,
    /// Rows and columns of the input.
    size: (usize, usize),
    stride: usize,
    padding: usize,
}

impl<T: Real> Convolutional<T> {
    /// The map on images of `height x width` pixels that keeps their size, with a stride of 1.
    pub fn new(filters: Filters<T>, bias: Vec<T>, height: usize, width: usize) -> Result<Self> {
        let padding = filters.radius();
        Self::strided(filters, bias, (height, width), 1, padding)
    }

    /// The map with any stride and padding.
    /// Fails when the biases do not fit the features, the stride is 0, or the kernel is larger than the padded image.
    pub fn strided(
        filters: Filters<T>,
        bias: Vec<T>,
        size: (usize, usize),
        stride: usize,
        padding: usize,
    ) -> Result<Self> {
        refuse!(bias.len() != filters.features() =>
            "{} biases given for {} features", bias.len(), filters.features());
        refuse!(stride == 0 => "the stride of a convolution is 0, but it must be 1 or more");
        let least = size.0.min(size.1);
        refuse!(least == 0 || least + 2 * padding < filters.size() =>
            "an image of {} x {} pixels with a padding of {padding} is smaller than the kernel", size.1, size.0);
        Ok(Self { filters, bias, size, stride, padding })
    }

    /// Rows and columns of the output.
    pub fn output_size(&self) -> (usize, usize) {
        let length = |n: usize| (n + 2 * self.padding - self.filters.size()) / self.stride + 1;
        (length(self.size.0), length(self.size.1))
    }

    /// Numbers of a pixel's neighbourhood in all channels.
    fn taps(&self) -> usize {
        self.filters.channels() * self.filters.size() * self.filters.size()
    }

    fn matrix(&self) -> Matrix<'_, T> {
        Matrix::new(self.filters.weights(), self.filters.features(), self.taps())
    }

    fn places(&self) -> usize {
        let (height, width) = self.output_size();
        height * width
    }

    /// Calls `f` for every tap and place whose pixel is inside the image: its index in the matrix `[tap][place]`, and that of
    /// the pixel.
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        let ((height, width), (rows, columns), k) = (self.size, self.output_size(), self.filters.size());
        let inside = |place: usize, tap: usize, length: usize| {
            (place * self.stride + tap).checked_sub(self.padding).filter(|&at| at < length)
        };
        for (tap, (c, ty, tx)) in
            (0..self.filters.channels()).flat_map(|c| (0..k * k).map(move |t| (c, t / k, t % k))).enumerate()
        {
            for row in 0..rows {
                let Some(y) = inside(row, ty, height) else { continue };
                for column in 0..columns {
                    let Some(x) = inside(column, tx, width) else { continue };
                    f((tap * rows + row) * columns + column, (c * height + y) * width + x);
                }
            }
        }
    }

    /// The matrix `[tap][place]` of a sample.
    fn shifted(&self, u: &[T]) -> Vec<T> {
        let mut shifted = vec![T::zero(); self.taps() * self.places()];
        self.each(|at, pixel| shifted[at] = u[pixel]);
        shifted
    }
}

impl<T: Real> Affine<T> for Convolutional<T> {
    fn describe(&self) -> String {
        let (c, j, k) = (self.filters.channels(), self.filters.features(), self.filters.size());
        let ((h, w), (y, x)) = (self.size, self.output_size());
        format!("convolution {k}x{k}, {c} x {w} x {h} to {j} x {x} x {y}, stride {}", self.stride)
    }

    fn kind(&self) -> Option<Kind> {
        let Self { size, stride, padding, .. } = *self;
        Some(Kind::Convolution { filters: Shape::of(&self.filters), size, stride, padding })
    }

    fn inputs(&self) -> usize {
        self.filters.channels() * self.size.0 * self.size.1
    }

    fn outputs(&self) -> usize {
        self.filters.features() * self.places()
    }

    fn rows(&self) -> usize {
        self.filters.features()
    }

    fn parameters(&self) -> Vec<&[T]> {
        vec![self.filters.weights(), &self.bias]
    }

    fn parameters_mut(&mut self) -> Vec<&mut [T]> {
        vec![self.filters.weights_mut(), &mut self.bias]
    }

    fn apply(&self, u: &Rows<T>, _: &Rows<T>, v: &mut Rows<T>) {
        v.par_rows_mut().zip(u.par_rows()).for_each(|(v, u)| {
            let shifted = self.shifted(u);
            multiply(product(), self.matrix(), Matrix::new(&shifted, self.taps(), self.places()), v);
            add_bias(v, &self.bias);
        });
    }

    fn adjoint(&self, d: &Rows<T>, back: &mut Rows<T>) {
        back.par_rows_mut().zip(d.par_rows()).for_each(|(back, d)| {
            let mut shifted = vec![T::zero(); self.taps() * self.places()];
            let d = Matrix::new(d, self.filters.features(), self.places());
            multiply(product(), self.matrix().transposed(), d, &mut shifted);
            back.fill(T::zero());
            self.each(|at, pixel| back[pixel] += shifted[at]);
        });
    }

    fn gradient(&self, u: &Rows<T>, _: &Rows<T>, d: &Rows<T>) -> Vec<Vec<T>> {
        let of_samples: Vec<Vec<T>> = u
            .par_rows()
            .zip(d.par_rows())
            .map(|(u, d)| {
                let (shifted, mut gradient) =
                    (self.shifted(u), vec![T::zero(); self.filters.weights().len()]);
                let places = Matrix::new(&shifted, self.taps(), self.places()).transposed();
                let d = Matrix::new(d, self.filters.features(), self.places());
                multiply(product(), d, places, &mut gradient);
                gradient
            })
            .collect();
        let mut weights = vec![T::zero(); self.filters.weights().len()];
        for gradient in &of_samples {
            weights.iter_mut().zip(gradient).for_each(|(sum, &g)| *sum += g);
        }
        vec![weights, bias_gradient(d, self.filters.features())]
    }
}
