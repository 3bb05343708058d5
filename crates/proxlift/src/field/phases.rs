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

/// The phases of planes of so many rows and columns, both multiples of `stride`: `[channel][dy][dx][y][x]`; with stride 1,
/// the planes as they are.
pub fn apart<T: Real>(planes: &[T], (height, width): (usize, usize), stride: usize) -> Cow<'_, [T]> {
    if stride == 1 {
        return planes.into();
    }
    let mut phases = Vec::with_capacity(planes.len());
    for plane in planes.chunks_exact(height * width) {
        for (dy, dx) in (0..stride * stride).map(|phase| (phase / stride, phase % stride)) {
            for row in plane.chunks_exact(width).skip(dy).step_by(stride) {
                phases.extend(row.iter().skip(dx).step_by(stride));
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
    let mut planes = Vec::with_capacity(phases.len());
    for phases in phases.chunks_exact(stride * stride * height * width) {
        for (y, dy) in (0..height).flat_map(|y| (0..stride).map(move |dy| (y, dy))) {
            let row = |dx: usize| &phases[((dy * stride + dx) * height + y) * width..][..width];
            planes.extend((0..width * stride).map(|x| row(x % stride)[x / stride]));
        }
    }
    planes.into()
}
