//! Images taken apart into their phases: every second pixel of every second row, four planes of half the size.
//!
//! A convolution with kernels of `k x k` on the phases is one of `2k x 2k` on the image with stride 2: each feature stands
//! for two by two pixels, so a layer costs a quarter of one with as many features and such kernels on every pixel.

use crate::Real;

/// The phases of planes of so many rows and columns, both multiples of `stride`: `[channel][dy][dx][y][x]`.
pub fn apart<T: Real>(planes: &[T], (height, width): (usize, usize), stride: usize) -> Vec<T> {
    if stride == 1 {
        return planes.to_vec();
    }
    let mut phases = Vec::with_capacity(planes.len());
    for plane in planes.chunks_exact(height * width) {
        for (dy, dx) in (0..stride * stride).map(|phase| (phase / stride, phase % stride)) {
            for row in plane.chunks_exact(width).skip(dy).step_by(stride) {
                phases.extend(row.iter().skip(dx).step_by(stride));
            }
        }
    }
    phases
}

/// The planes that these are the phases of: the inverse of [`apart`]. Phases have so many rows and columns.
pub fn together<T: Real>(phases: &[T], (height, width): (usize, usize), stride: usize) -> Vec<T> {
    if stride == 1 {
        return phases.to_vec();
    }
    let mut planes = Vec::with_capacity(phases.len());
    for phases in phases.chunks_exact(stride * stride * height * width) {
        for (y, dy) in (0..height).flat_map(|y| (0..stride).map(move |dy| (y, dy))) {
            let row = |dx: usize| &phases[((dy * stride + dx) * height + y) * width..][..width];
            planes.extend((0..width * stride).map(|x| row(x % stride)[x / stride]));
        }
    }
    planes
}
