//! Noise as a function of place: the same value wherever and in whatever order it is asked for.

use super::arithmetic::floor;

/// Random values in `[-1, 1]` on the integer lattice, smoothly interpolated.
pub(super) fn value_noise(x: f32, y: f32, seed: u32) -> f32 {
    let (ix, iy) = (floor(x), floor(y));
    let ease = |t: f32| t * t * (3.0 - 2.0 * t);
    let (tx, ty) = (ease(x - ix as f32), ease(y - iy as f32));
    let (ix, iy) = (ix as u32, iy as u32);
    let row = |iy: u32| {
        let (a, b) = (lattice(ix, iy, seed), lattice(ix.wrapping_add(1), iy, seed));
        a + tx * (b - a)
    };
    let (top, bottom) = (row(iy), row(iy.wrapping_add(1)));
    top + ty * (bottom - top)
}

/// The random value of a lattice point, in `[-1, 1)`.
pub(super) fn lattice(x: u32, y: u32, seed: u32) -> f32 {
    let mut h = x.wrapping_mul(0x85eb_ca6b) ^ y.wrapping_mul(0xc2b2_ae35) ^ seed;
    h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
    h ^= h >> 15;
    (h >> 8) as f32 * (1.0 / 8_388_608.0) - 1.0
}
