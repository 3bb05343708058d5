//! Strips of samples as they are stored: predicted, then compressed.

use super::super::samples::Samples;
use ::tiff::encoder::compression::{CompressionAlgorithm, Deflate, Lzw, Packbits};
use ::tiff::tags::{CompressionMethod, Predictor};
use std::borrow::Cow;

/// How the samples of a page are stored.
#[derive(Clone, Copy)]
pub(super) struct Compression {
    pub method: CompressionMethod,
    pub predictor: Predictor,
}

impl Compression {
    /// Like that of the original where it can be written, else Deflate.
    pub(super) fn like(method: u16, predictor: u16, samples: &Samples) -> Self {
        let method = match CompressionMethod::from_u16_exhaustive(method) {
            CompressionMethod::None => CompressionMethod::None,
            CompressionMethod::LZW => CompressionMethod::LZW,
            CompressionMethod::PackBits => CompressionMethod::PackBits,
            _ => CompressionMethod::Deflate,
        };
        let is_predicted =
            predictor > 1 && matches!(method, CompressionMethod::LZW | CompressionMethod::Deflate);
        let predictor = match samples {
            _ if !is_predicted => Predictor::None,
            Samples::Float(_) => Predictor::FloatingPoint,
            Samples::Eight(_) | Samples::Sixteen(_) => Predictor::Horizontal,
        };
        Self { method, predictor }
    }

    pub(super) fn is_none(&self) -> bool {
        self.method == CompressionMethod::None
    }

    /// Some rows of `row` samples, `count` of them a pixel.
    pub(super) fn strip<'a>(
        &self,
        samples: &'a Samples,
        rows: std::ops::Range<usize>,
        row: usize,
        count: usize,
    ) -> std::io::Result<Cow<'a, [u8]>> {
        let (start, end) = (rows.start * row, rows.end * row);
        let bytes = match (self.predictor, samples) {
            (Predictor::Horizontal, Samples::Eight(s)) => {
                differences(&s[start..end], row, count, |a, b| a.wrapping_sub(b)).into()
            }
            (Predictor::Horizontal, Samples::Sixteen(s)) => {
                let values = differences(&s[start..end], row, count, |a, b| a.wrapping_sub(b));
                bytemuck::cast_slice(&values).to_vec().into()
            }
            (Predictor::FloatingPoint, Samples::Float(s)) => {
                let planes = s[start..end].chunks_exact(row).flat_map(byte_planes).collect::<Vec<_>>();
                differences(&planes, 4 * row, count, |a, b| a.wrapping_sub(b)).into()
            }
            _ => {
                let width = samples.bytes().len() / samples.len();
                Cow::Borrowed(&samples.bytes()[start * width..end * width])
            }
        };
        let mut packed = Vec::new();
        match self.method {
            CompressionMethod::None => return Ok(bytes),
            CompressionMethod::LZW => Lzw.write_to(&mut packed, &bytes)?,
            CompressionMethod::PackBits => {
                // Rows are packed one by one, as readers expect.
                let length = bytes.len() / rows.len();
                bytes.chunks_exact(length).try_fold(0, |_, row| Packbits.write_to(&mut packed, row))?
            }
            _ => Deflate::default().write_to(&mut packed, &bytes)?,
        };
        Ok(packed.into())
    }
}

/// Each sample of a row less the one of the pixel before.
fn differences<T: Copy>(samples: &[T], row: usize, count: usize, less: impl Fn(T, T) -> T) -> Vec<T> {
    let mut values = samples.to_vec();
    for (to, from) in values.chunks_exact_mut(row).zip(samples.chunks_exact(row)) {
        for i in count..row {
            to[i] = less(from[i], from[i - count]);
        }
    }
    values
}

/// The highest bytes of all numbers of a row, then the next ones.
fn byte_planes(row: &[f32]) -> Vec<u8> {
    (0..4).flat_map(|byte| row.iter().map(move |v| v.to_be_bytes()[byte])).collect()
}
