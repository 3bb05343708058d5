//! The samples of a file, in their own type.

use super::{Decoded, Depth};
use crate::{image::symmetry::Symmetry, memory};

/// The samples of a picture: the colours of a pixel, then its alpha, then the next pixel.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Samples {
    Eight(Vec<u8>),
    Sixteen(Vec<u16>),
    Float(Vec<f32>),
}

/// `$body` with `$s` the vector of samples, whatever their type.
macro_rules! each {
    ($samples:expr, $s:ident => $body:expr) => {
        match $samples {
            Samples::Eight($s) => $body,
            Samples::Sixteen($s) => $body,
            Samples::Float($s) => $body,
        }
    };
}
pub(super) use each;

impl Samples {
    /// `len` zeros, which take no memory before they are written; an error where there is not enough.
    pub(super) fn zeros(depth: Depth, len: usize) -> Decoded<Self> {
        let samples = match depth {
            Depth::Eight => memory::try_zeros(len).map(Self::Eight),
            Depth::Sixteen => memory::try_zeros(len).map(Self::Sixteen),
            Depth::Float => memory::try_zeros(len).map(Self::Float),
        };
        samples.ok_or_else(|| {
            format!("there is no memory for its {len} samples; cut the picture into smaller ones")
        })
    }

    pub(super) fn len(&self) -> usize {
        each!(self, s => s.len())
    }

    /// As they lie in memory.
    pub(super) fn bytes(&self) -> &[u8] {
        each!(self, s => bytemuck::cast_slice(s))
    }

    /// As they lie in memory, to be filled.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        each!(self, s => bytemuck::cast_slice_mut(s))
    }
}

/// A type of samples and its scale.
pub(super) trait Sample: Copy + bytemuck::Zeroable {
    /// Where white is 1.
    fn value(self) -> f32;
    /// The nearest sample.
    fn of(value: f32) -> Self;
}

impl Sample for u8 {
    fn value(self) -> f32 {
        f32::from(self) / 255.0
    }
    fn of(value: f32) -> Self {
        (value * 255.0).round().clamp(0.0, 255.0) as Self
    }
}

impl Sample for u16 {
    fn value(self) -> f32 {
        f32::from(self) / 65_535.0
    }
    fn of(value: f32) -> Self {
        (value * 65_535.0).round().clamp(0.0, 65_535.0) as Self
    }
}

impl Sample for f32 {
    fn value(self) -> f32 {
        self
    }
    fn of(value: f32) -> Self {
        value
    }
}

/// Every `count`-th sample from `c` on.
pub(super) fn plane<T: Sample>(samples: &[T], count: usize, c: usize) -> impl Iterator<Item = f32> + '_ {
    samples[c..].iter().step_by(count).map(|v| v.value())
}

/// The samples of planes of values, pixel by pixel.
pub(super) fn interleaved<T: Sample>(planes: &[&[f32]]) -> Vec<T> {
    let mut samples = memory::zeros(planes.iter().map(|plane| plane.len()).sum());
    for (c, plane) in planes.iter().enumerate() {
        let to = samples[c..].iter_mut().step_by(planes.len());
        to.zip(*plane).for_each(|(to, &v)| *to = T::of(v));
    }
    samples
}

/// Pixels of `count` samples, turned.
pub(super) fn turned<T: Sample>(turn: Symmetry, samples: &[T], count: usize, size: (usize, usize)) -> Vec<T> {
    fn pixels<T: Sample, const N: usize>(
        turn: Symmetry,
        samples: &[T],
        (height, width): (usize, usize),
    ) -> Vec<T> {
        let mut out = memory::zeros(samples.len());
        let across = if turn.transpose { height } else { width };
        turn.copy(samples.as_chunks::<N>().0, width, out.as_chunks_mut::<N>().0, across);
        out
    }
    match count {
        1 => pixels::<T, 1>(turn, samples, size),
        2 => pixels::<T, 2>(turn, samples, size),
        3 => pixels::<T, 3>(turn, samples, size),
        _ => pixels::<T, 4>(turn, samples, size),
    }
}
