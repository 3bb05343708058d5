//! Functions with the same bits everywhere: sums and products only, where the system's would differ in the last
//! digit from one platform to the next.

use crate::random::unit;
use rand::Rng;

/// `2^x`, to seven digits, for `|x| < 100`.
pub(super) fn exp2(x: f32) -> f32 {
    let whole = floor(x);
    let t = (x - whole as f32) * std::f32::consts::LN_2;
    // Taylor series of e^t on [0, ln 2].
    let tail = 1.0 + t / 5.0 * (1.0 + t / 6.0 * (1.0 + t / 7.0));
    let fraction = 1.0 + t * (1.0 + t / 2.0 * (1.0 + t / 3.0 * (1.0 + t / 4.0 * tail)));
    fraction * f32::from_bits(((whole + 127) as u32) << 23)
}

/// `sin(2 pi x)`, to three digits: a parabola and its correction.
pub(super) fn sine(x: f32) -> f32 {
    let t = x - floor(x + 0.5) as f32;
    let parabola = 8.0 * t * (1.0 - 2.0 * t.abs());
    parabola * (0.775 + 0.225 * parabola.abs())
}

/// The integer below `x`; without the call that `f32::floor` is on plain x86-64.
pub(super) fn floor(x: f32) -> i32 {
    let toward_zero = x as i32;
    toward_zero - i32::from(toward_zero as f32 > x)
}

/// Uniform in `[low, high)`.
pub(super) fn range(rng: &mut impl Rng, low: f32, high: f32) -> f32 {
    low + (high - low) * unit(rng)
}

/// `base * 2^e` with `e` uniform in `[0, octaves)`.
pub(super) fn log_uniform(rng: &mut impl Rng, base: f32, octaves: f32) -> f32 {
    base * exp2(octaves * unit(rng))
}

/// Mean 0, standard deviation 1, bell-shaped and bounded: the sum of six uniform numbers.
pub(super) fn bell(rng: &mut impl Rng) -> f32 {
    let sum: f32 = (0..6).map(|_| unit(rng)).sum();
    (sum - 3.0) * std::f32::consts::SQRT_2
}

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
