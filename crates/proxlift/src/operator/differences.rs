//! Forward differences: the operator of total variation.

use super::LinearOperator;
use crate::{Real, Result};

/// The discrete gradient `D` with Neumann borders, channel by channel:
///
/// ```text
/// (D x)_{c,0}(y, x) = x_c(y, x+1) - x_c(y, x),   0 in the last column
/// (D x)_{c,1}(y, x) = x_c(y+1, x) - x_c(y, x),   0 in the last row
/// ```
///
/// The range has `2 * channels` planes in the order `[c][direction]`: the two planes of a channel are neighbours, so
/// that groups of two consecutive planes give isotropic total variation channel by channel, and the group of all
/// planes couples the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiniteDifferences {
    channels: usize,
    height: usize,
    width: usize,
}

impl FiniteDifferences {
    /// The differences of images with `channels` planes of `height x width` pixels.
    pub fn new(channels: usize, height: usize, width: usize) -> Result<Self> {
        refuse!(channels == 0 || height == 0 || width == 0 =>
            "an image of {channels} channels and {height} x {width} pixels has no differences");
        Ok(Self { channels, height, width })
    }

    /// `||D||`, exactly: `sqrt(4 cos^2(pi / 2 height) + 4 cos^2(pi / 2 width)) < sqrt(8)`.
    ///
    /// `D* D` is the Neumann Laplacian, which the cosine transform diagonalises; one axis of `n` pixels has the
    /// eigenvalues `2 - 2 cos(pi k / n)`, `k < n`, the largest being `4 cos^2(pi / 2n)`.
    pub fn norm(&self) -> f64 {
        let axis = |n: usize| {
            if n == 1 { 0.0 } else { 4.0 * (std::f64::consts::FRAC_PI_2 / n as f64).cos().powi(2) }
        };
        (axis(self.height) + axis(self.width)).sqrt()
    }
}

impl<T: Real> LinearOperator<T> for FiniteDifferences {
    fn domain_len(&self) -> usize {
        self.channels * self.height * self.width
    }

    fn range_len(&self) -> usize {
        2 * self.channels * self.height * self.width
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let (w, pixels) = (self.width, self.height * self.width);
        assert_eq!(x.len(), self.channels * pixels, "the image does not fit the differences");
        assert_eq!(y.len(), 2 * self.channels * pixels, "the field does not fit the differences");
        for (plane, pair) in x.chunks_exact(pixels).zip(y.chunks_exact_mut(2 * pixels)) {
            let (dx, dy) = pair.split_at_mut(pixels);
            for ((row, dx), start) in plane.chunks_exact(w).zip(dx.chunks_exact_mut(w)).zip((0..).step_by(w))
            {
                dx.iter_mut().zip(row.windows(2)).for_each(|(out, pair)| *out = pair[1] - pair[0]);
                dx[w - 1] = T::zero();
                let dy = &mut dy[start..start + w];
                match plane.get(start + w..start + 2 * w) {
                    Some(below) => {
                        for ((out, &below), &here) in dy.iter_mut().zip(below).zip(row) {
                            *out = below - here;
                        }
                    }
                    None => dy.fill(T::zero()),
                }
            }
        }
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        let (w, pixels) = (self.width, self.height * self.width);
        assert_eq!(x.len(), self.channels * pixels, "the image does not fit the differences");
        assert_eq!(y.len(), 2 * self.channels * pixels, "the field does not fit the differences");
        for (plane, pair) in x.chunks_exact_mut(pixels).zip(y.chunks_exact(2 * pixels)) {
            let (dx, dy) = pair.split_at(pixels);
            for (row, out) in plane.chunks_exact_mut(w).enumerate() {
                let here = &dy[row * w..][..w];
                match (row > 0, row + 1 < self.height) {
                    (false, false) => out.fill(T::zero()),
                    (false, true) => out.iter_mut().zip(here).for_each(|(out, &here)| *out = -here),
                    (true, has_row_below) => {
                        let above = &dy[(row - 1) * w..][..w];
                        if has_row_below {
                            for ((out, &above), &here) in out.iter_mut().zip(above).zip(here) {
                                *out = above - here;
                            }
                        } else {
                            out.copy_from_slice(above);
                        }
                    }
                }
                add_horizontal_adjoint(&dx[row * w..][..w - 1], out);
            }
        }
    }
}

/// Adds the adjoint of the horizontal differences; `dx` is without its last column, which `D` leaves zero.
fn add_horizontal_adjoint<T: Real>(dx: &[T], out: &mut [T]) {
    let (Some(&first), Some(&last)) = (dx.first(), dx.last()) else { return };
    out[0] -= first;
    let inner = out.len() - 1;
    out[1..inner].iter_mut().zip(dx.windows(2)).for_each(|(out, pair)| *out += pair[0] - pair[1]);
    out[inner] += last;
}
