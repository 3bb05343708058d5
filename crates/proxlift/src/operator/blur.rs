//! Convolution with one kernel and circular borders, by the Fourier transform.

use super::fourier::{Coefficient, Fourier};
use super::{LinearOperator, Resolvent};
use crate::{Real, Result};

/// `(K x)(p) = sum_t k(t) x(p - t + c)`, channel by channel, where pixels beyond one edge are those at the other and `c` is the
/// middle of the kernel, `(height / 2, width / 2)` rounded down: `scipy.ndimage.convolve(mode="wrap")` for odd sides.
///
/// The Fourier transform diagonalises it, so that its norm `max |k^|` is known, and `(I + tau K* K)^-1` too.
///
/// ```
/// use proxlift::operator::{Blur, LinearOperator};
/// let blur = Blur::new(&[0.25, 0.5, 0.25], (1, 3), 1, (1, 4))?;
/// let mut y = [0.0f64; 4];
/// blur.apply(&[1.0, 0.0, 0.0, 0.0], &mut y);
/// assert!((y[0] - 0.5).abs() < 1e-12 && (y[1] - 0.25).abs() < 1e-12 && (y[3] - 0.25).abs() < 1e-12);
/// assert!((blur.norm() - 1.0).abs() < 1e-12);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Blur {
    channels: usize,
    pub(super) fourier: Fourier,
    /// `k^`.
    pub(super) spectrum: Vec<Coefficient>,
}

impl Blur {
    /// By a kernel of `(rows, columns)` numbers, row by row, of pictures of `(height, width)` pixels.
    /// Fails when a size is zero, the numbers do not fill the kernel or are not finite, or it is larger than the picture.
    pub fn new(
        kernel: &[f64],
        (rows, columns): (usize, usize),
        channels: usize,
        (height, width): (usize, usize),
    ) -> Result<Self> {
        refuse!(rows == 0 || columns == 0 || kernel.len() != rows * columns =>
            "a kernel of {rows} x {columns} numbers was given {}", kernel.len());
        refuse!(kernel.iter().any(|k| !k.is_finite()) => "the kernel holds a number that is not finite");
        refuse!(channels == 0 || height == 0 || width == 0 => "a picture without pixels cannot be blurred");
        refuse!(rows > height || columns > width =>
            "the kernel has {columns} x {rows} pixels, more than the picture with its {width} x {height}");
        let fourier = Fourier::new(height, width);
        let mut plane: Vec<f64> = crate::memory::zeros(height * width);
        for (i, k) in kernel.iter().enumerate() {
            let place = |at: usize, size: usize, side: usize| (at + side - size / 2) % side;
            plane[place(i / columns, rows, height) * width + place(i % columns, columns, width)] += k;
        }
        let spectrum = fourier.forward(&plane);
        Ok(Self { channels, fourier, spectrum })
    }

    /// `||K|| = max |k^|`, exactly.
    pub fn norm(&self) -> f64 {
        self.spectrum.iter().fold(0.0, |most, k| most.max(k.norm()))
    }

    /// What it leaves of each frequency but zero: the frequency in cycles per pixel, of which half the plane is enough, and `|k^|`.
    pub fn response(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let cycles = |k: usize, side: usize| k.min(side - k) as f64 / side as f64;
        let (height, width) = self.fourier.size();
        self.spectrum.iter().enumerate().skip(1).map(move |(i, k)| {
            let (ky, kx) = self.fourier.frequency(i);
            (cycles(ky, height).hypot(cycles(kx, width)), k.norm())
        })
    }

    fn len(&self) -> usize {
        self.channels * self.fourier.pixels()
    }
}

impl<T: Real> LinearOperator<T> for Blur {
    fn domain_len(&self) -> usize {
        self.len()
    }

    fn range_len(&self) -> usize {
        self.len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.fourier.multiply(x, y, |i| self.spectrum[i]);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        self.fourier.multiply(y, x, |i| self.spectrum[i].conj());
    }
}

impl<T: Real> Resolvent<T> for Blur {
    /// `x^ = b^ / (1 + tau |k^|^2)`.
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]) {
        let tau = tau.to_double();
        self.fourier.multiply(b, x, |i| (1.0 / (1.0 + tau * self.spectrum[i].norm_sqr())).into());
    }
}
