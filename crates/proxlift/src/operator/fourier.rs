//! The discrete Fourier transform of real planes, through the crates `rustfft` and `realfft`.

use crate::{Real, memory};
use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex, num_traits::Zero};
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// A Fourier coefficient. Always in double precision: what is divided by a small one keeps its digits.
pub(super) type Coefficient = Complex<f64>;

/// Lines that one task transforms.
const LINES: usize = 16;

/// Transforms planes of one size. Spectra are stored column by column, `[kx][ky]`, for `kx <= width / 2`; the others are their
/// conjugates.
#[derive(Clone)]
pub(super) struct Fourier {
    height: usize,
    width: usize,
    rows: Arc<dyn RealToComplex<f64>>,
    rows_back: Arc<dyn ComplexToReal<f64>>,
    columns: Arc<dyn Fft<f64>>,
    columns_back: Arc<dyn Fft<f64>>,
}

impl Fourier {
    pub fn new(height: usize, width: usize) -> Self {
        let (mut real, mut complex) = (RealFftPlanner::new(), FftPlanner::new());
        Self {
            height,
            width,
            rows: real.plan_fft_forward(width),
            rows_back: real.plan_fft_inverse(width),
            columns: complex.plan_fft_forward(height),
            columns_back: complex.plan_fft_inverse(height),
        }
    }

    /// Rows and columns of a plane.
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Columns of a spectrum.
    fn half(&self) -> usize {
        self.width / 2 + 1
    }

    /// The spectrum of a plane.
    pub fn forward<T: Real>(&self, plane: &[T]) -> Vec<Coefficient> {
        let (half, width) = (self.half(), self.width);
        let mut lines: Vec<Coefficient> = memory::room(half * self.height);
        lines.resize(half * self.height, Coefficient::zero());
        let tasks = lines.par_chunks_mut(half * LINES).zip(plane.par_chunks(width * LINES));
        tasks.for_each(|(lines, rows)| {
            let (mut row, mut scratch) = (self.rows.make_input_vec(), self.rows.make_scratch_vec());
            for (line, values) in lines.chunks_exact_mut(half).zip(rows.chunks_exact(width)) {
                row.iter_mut().zip(values).for_each(|(to, from)| *to = from.to_double());
                let done = self.rows.process_with_scratch(&mut row, line, &mut scratch);
                done.expect("lengths are those of the plan");
            }
        });
        let mut spectrum = transposed(&lines, half);
        spectrum.par_chunks_mut(self.height * LINES).for_each(|lines| self.columns.process(lines));
        spectrum
    }

    /// The plane of a spectrum, which is used up.
    pub fn inverse<T: Real>(&self, mut spectrum: Vec<Coefficient>, plane: &mut [T]) {
        let (half, width) = (self.half(), self.width);
        spectrum.par_chunks_mut(self.height * LINES).for_each(|lines| self.columns_back.process(lines));
        let mut lines = transposed(&spectrum, self.height);
        drop(spectrum);
        let scale = 1.0 / self.pixels() as f64;
        let tasks = lines.par_chunks_mut(half * LINES).zip(plane.par_chunks_mut(width * LINES));
        tasks.for_each(|(lines, rows)| {
            let (mut row, mut scratch) =
                (self.rows_back.make_output_vec(), self.rows_back.make_scratch_vec());
            for (line, values) in lines.chunks_exact_mut(half).zip(rows.chunks_exact_mut(width)) {
                // Real but for rounding, and the plan insists on it.
                line[0].im = 0.0;
                if width.is_multiple_of(2) {
                    line[half - 1].im = 0.0;
                }
                let done = self.rows_back.process_with_scratch(line, &mut row, &mut scratch);
                done.expect("lengths are those of the plan");
                values.iter_mut().zip(&row).for_each(|(to, from)| *to = T::of(scale * from));
            }
        });
    }

    /// `plane <- F* (multiplier . F plane)` for each plane, the multiplier given coefficient by coefficient.
    pub fn multiply<T: Real>(&self, x: &[T], y: &mut [T], factor: impl Fn(usize) -> Coefficient + Sync) {
        assert!(x.len() == y.len() && x.len().is_multiple_of(self.pixels()), "the planes have another size");
        let planes = x.par_chunks_exact(self.pixels()).zip(y.par_chunks_exact_mut(self.pixels()));
        planes.for_each(|(x, y)| {
            let mut spectrum = self.forward(x);
            spectrum.par_iter_mut().enumerate().for_each(|(i, c)| *c *= factor(i));
            self.inverse(spectrum, y);
        });
    }

    /// The coefficient at the frequency `(ky, kx)`, `kx < width`, of a real plane's spectrum.
    pub fn at(&self, spectrum: &[Coefficient], ky: usize, kx: usize) -> Coefficient {
        if kx < self.half() {
            spectrum[kx * self.height + ky]
        } else {
            spectrum[(self.width - kx) * self.height + (self.height - ky) % self.height].conj()
        }
    }

    /// The frequency `(ky, kx)` of a coefficient of a spectrum.
    pub fn frequency(&self, i: usize) -> (usize, usize) {
        (i % self.height, i / self.height)
    }
}

impl std::fmt::Debug for Fourier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fourier({} x {})", self.height, self.width)
    }
}

/// A matrix of rows of `width` numbers, transposed block by block, so that both sides stay in the cache.
fn transposed(matrix: &[Coefficient], width: usize) -> Vec<Coefficient> {
    const BLOCK: usize = 16;
    let height = matrix.len() / width;
    let mut out: Vec<Coefficient> = memory::room(matrix.len());
    out.resize(matrix.len(), Coefficient::zero());
    out.par_chunks_mut(height * BLOCK).enumerate().for_each(|(block, out)| {
        let left = block * BLOCK;
        let columns = out.len() / height;
        for top in (0..height).step_by(BLOCK) {
            for y in top..(top + BLOCK).min(height) {
                for x in 0..columns {
                    out[x * height + y] = matrix[y * width + left + x];
                }
            }
        }
    });
    out
}
