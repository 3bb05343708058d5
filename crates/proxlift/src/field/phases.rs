//! Images taken apart into their phases: every second pixel of every second row, four planes of half the size.
//!
//! A convolution with kernels of `k x k` on the phases is one of `2k x 2k` on the image with stride 2: each feature stands
//! for two by two pixels, so a layer costs a quarter of one with as many features and such kernels on every pixel.

use crate::Real;
use std::borrow::Cow;

/// The stride of a network whose layers see so many channels: images have 1 or 3, or four phases of each.
pub fn stride_of(channels: usize) -> usize {
    if channels.is_multiple_of(4) { 2 } else { 1 }
}

/// The phases of planes of so many rows and columns, both multiples of `stride`, 1 or 2: `[channel][dy][dx][y][x]`; with stride 1,
/// the planes as they are.
pub fn apart<T: Real>(planes: &[T], (height, width): (usize, usize), stride: usize) -> Cow<'_, [T]> {
    if stride == 1 {
        return planes.into();
    }
    assert_eq!(stride, 2, "strides are 1 or 2");
    let mut phases = Vec::with_capacity(planes.len());
    for plane in planes.chunks_exact(height * width) {
        for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for row in plane.chunks_exact(width).skip(dy).step_by(2) {
                phases.extend(row.as_chunks::<2>().0.iter().map(|pair| pair[dx]));
            }
        }
    }
    phases.into()
}

/// The planes that these are the phases of: the inverse of [`apart`]. Phases have so many rows and columns.
pub fn together<'a, T: Real>(
    phases: impl Into<Cow<'a, [T]>>,
    (height, width): (usize, usize),
    stride: usize,
) -> Cow<'a, [T]> {
    let phases = phases.into();
    if stride == 1 {
        return phases;
    }
    assert_eq!(stride, 2, "strides are 1 or 2");
    let mut planes = vec![T::zero(); phases.len()];
    let each = planes.chunks_exact_mut(4 * height * width).zip(phases.chunks_exact(4 * height * width));
    for (plane, phases) in each {
        for (row, out) in plane.chunks_exact_mut(2 * width).enumerate() {
            let (y, dy) = (row / 2, row % 2);
            let of = |dx: usize| &phases[((2 * dy + dx) * height + y) * width..][..width];
            let pairs = of(0).iter().zip(of(1));
            out.as_chunks_mut::<2>().0.iter_mut().zip(pairs).for_each(|(out, (&a, &b))| *out = [a, b]);
        }
    }
    planes.into()
}
