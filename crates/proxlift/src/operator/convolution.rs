//! The convolution of a layer and its adjoint, in plain loops: the reference every fused kernel is held against.

use super::{Filters, LinearOperator};
use crate::{Real, Result, real::dot};

/// `L : C -> J` on images of `height x width` pixels, bias-free, with zeros outside the image:
///
/// ```text
/// (L x)_j(p)  = sum_{c,t} w[j,c,t] x_c(p + t)
/// (L* y)_c(q) = sum_{j,t} w[j,c,t] y_j(q - t)          t in [-r, r]^2
/// ```
///
/// Terms whose pixel lies outside the image are left out, in both, which makes the second the exact adjoint of the
/// first. (As in every deep-learning library, the "convolution" is a correlation.)
#[derive(Clone, Debug)]
pub struct Convolution<'a, T> {
    filters: &'a Filters<T>,
    height: usize,
    width: usize,
}

impl<'a, T: Real> Convolution<'a, T> {
    /// The convolution with `filters` on images of `height x width` pixels.
    pub fn new(filters: &'a Filters<T>, height: usize, width: usize) -> Result<Self> {
        refuse!(height == 0 || width == 0 => "an image of {height} x {width} pixels can't be convolved");
        Ok(Self { filters, height, width })
    }

    /// `gradient[j,c,t] += sum_p d_j(p) x_c(p + t)`, the gradient of `<d, L x>` with respect to the filters.
    pub fn add_weight_gradient(&self, x: &[T], d: &[T], gradient: &mut [T]) {
        assert_eq!(x.len(), self.domain_len(), "the image does not fit the convolution");
        assert_eq!(d.len(), self.range_len(), "the features do not fit the convolution");
        let (size, radius) = (self.filters.size(), self.filters.radius());
        let (channels, pixels) = (self.filters.channels(), self.height * self.width);
        for (index, gradient) in gradient.iter_mut().enumerate() {
            let (tx, ty) = (index % size, index / size % size);
            let (c, j) = (index / (size * size) % channels, index / (size * size * channels));
            let (x, d) = (&x[c * pixels..][..pixels], &d[j * pixels..][..pixels]);
            // The rows and columns p for which p + t is inside the image.
            let rows = radius.saturating_sub(ty)..self.height.min((self.height + radius).saturating_sub(ty));
            let columns = radius.saturating_sub(tx)..self.width.min((self.width + radius).saturating_sub(tx));
            if columns.is_empty() {
                continue;
            }
            for y in rows {
                let d = &d[y * self.width..][columns.clone()];
                let start = (y + ty - radius) * self.width + columns.start + tx - radius;
                *gradient += T::of(dot(d, &x[start..][..columns.len()]));
            }
        }
    }

    /// Adds `w * plane(p + sign * t)` to row `y` of the output for every tap `t` of one kernel.
    fn add_taps(&self, kernel: &[T], sign: isize, plane: &[T], y: usize, out: &mut [T]) {
        let (size, radius) = (self.filters.size(), self.filters.radius() as isize);
        for (ky, taps) in kernel.chunks_exact(size).enumerate() {
            let source = y as isize + sign * (ky as isize - radius);
            if source < 0 || source >= self.height as isize {
                continue;
            }
            let row = &plane[source as usize * self.width..][..self.width];
            for (kx, &tap) in taps.iter().enumerate() {
                add_shifted(out, row, sign * (kx as isize - radius), tap);
            }
        }
    }
}

/// `out(x) += w * row(x + shift)` wherever `x + shift` is inside the row.
fn add_shifted<T: Real>(out: &mut [T], row: &[T], shift: isize, w: T) {
    let distance = shift.unsigned_abs();
    let Some(count) = row.len().checked_sub(distance) else { return };
    let (out, row) = if shift >= 0 {
        (&mut out[..count], &row[distance..])
    } else {
        (&mut out[distance..], &row[..count])
    };
    out.iter_mut().zip(row).for_each(|(out, &x)| *out += w * x);
}

impl<T: Real> LinearOperator<T> for Convolution<'_, T> {
    fn domain_len(&self) -> usize {
        self.filters.channels() * self.height * self.width
    }

    fn range_len(&self) -> usize {
        self.filters.features() * self.height * self.width
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        assert_eq!(x.len(), self.domain_len(), "the image does not fit the convolution");
        assert_eq!(y.len(), self.range_len(), "the features do not fit the convolution");
        let (channels, taps) = (self.filters.channels(), self.filters.size().pow(2));
        let pixels = self.height * self.width;
        y.fill(T::zero());
        for row in 0..self.height {
            for (j, kernels) in self.filters.weights().chunks_exact(channels * taps).enumerate() {
                let out = &mut y[j * pixels + row * self.width..][..self.width];
                for (plane, kernel) in x.chunks_exact(pixels).zip(kernels.chunks_exact(taps)) {
                    self.add_taps(kernel, 1, plane, row, out);
                }
            }
        }
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        assert_eq!(x.len(), self.domain_len(), "the image does not fit the convolution");
        assert_eq!(y.len(), self.range_len(), "the features do not fit the convolution");
        let (channels, taps) = (self.filters.channels(), self.filters.size().pow(2));
        let pixels = self.height * self.width;
        x.fill(T::zero());
        for row in 0..self.height {
            for (plane, kernels) in
                y.chunks_exact(pixels).zip(self.filters.weights().chunks_exact(channels * taps))
            {
                for (c, kernel) in kernels.chunks_exact(taps).enumerate() {
                    let out = &mut x[c * pixels + row * self.width..][..self.width];
                    self.add_taps(kernel, -1, plane, row, out);
                }
            }
        }
    }
}
