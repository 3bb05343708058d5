//! The kernels of the matrix unit against plain loops.

use super::super::epilogue::Assign;
use super::super::product::Place;
use super::super::unit::Unit;
use super::*;
use crate::field::LANES;
use fearless_simd::Level;

fn unit() -> Option<Unit> {
    let unit = Unit::new();
    if unit.is_none() {
        eprintln!("SKIPPED: this machine has no matrix unit");
    }
    unit
}

/// Numbers in [-1, 1] from a counter.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn to_single(value: f32) -> f32 {
    f32::from_bits(u32::from(rounded(value)) << 16)
}

/// What the instruction is documented to do for one sum: even and odd terms of a tile apart, then both to what is there.
fn tile_sum(mut sum: f32, terms: &[(f32, f32)]) -> f32 {
    for tile in terms.chunks(DEPTH) {
        let (mut even, mut odd) = (0.0_f32, 0.0_f32);
        for pair in tile.chunks(2) {
            even = pair[0].0.mul_add(pair[0].1, even);
            if let Some(&(a, b)) = pair.get(1) {
                odd = a.mul_add(b, odd);
            }
        }
        sum += even + odd;
    }
    sum
}

#[test]
fn rounds_to_the_nearest_and_to_even() {
    for (value, bits) in
        [(1.0, 0x3f80), (-2.5, 0xc020), (1.0 + 1.0 / 256.0, 0x3f80), (1.0 + 3.0 / 256.0, 0x3f82)]
    {
        assert_eq!(rounded(value), bits, "{value}");
    }
}

#[test]
fn products_are_plain_sums_to_the_bit() {
    let Some(unit) = unit() else { return };
    for (rows, depth, len) in [(1, 1, 16), (16, 25, 64), (42, 33, 80), (70, 75, 208)] {
        let (weights, planes) = (numbers(1, rows * depth), numbers(2, depth * len));
        let mut a = Matrix::default();
        a.pack(rows, depth, |m, k| weights[m * depth + k]);
        let offsets: Vec<usize> = (0..depth).map(|k| k * len).collect();
        let mut out = vec![0.0; rows * len];
        let place = Place { unit: len, shift: 0 };
        product((unit, Level::new()), &a, (&planes, &offsets), 0..len, place, &mut Assign(&mut out));
        for (m, p) in (0..rows).flat_map(|m| (0..len).map(move |p| (m, p))) {
            let term = |k: usize| (to_single(weights[m * depth + k]), to_single(planes[k * len + p]));
            let terms: Vec<_> = (0..depth).map(term).collect();
            assert_eq!(
                out[m * len + p],
                tile_sum(0.0, &terms),
                "row {m} of {rows}, column {p}, {depth} terms"
            );
        }
    }
}

#[test]
fn correlations_are_plain_sums() {
    let Some(unit) = unit() else { return };
    for (features, channels, size, width, height) in
        [(3, 1, 3, 20, 9), (42, 1, 5, 61, 40), (17, 3, 7, 30, 33), (5, 12, 3, 16, 16)]
    {
        let stride = width + size / 2;
        let len = usize::next_multiple_of(stride * height, LANES);
        let padded = len + 2 * size * stride;
        let offset = |c: usize, y: usize, x: usize| c * padded + y * stride + x;
        let offsets: Vec<usize> = (0..channels)
            .flat_map(|c| (0..size).flat_map(move |y| (0..size).map(move |x| offset(c, y, x))))
            .collect();
        let (d, x) = (numbers(3, features * len), numbers(4, channels * padded));
        let start = numbers(5, features * offsets.len());
        let mut gradient = start.clone();
        correlate(unit, 0.5, &d[..], (&x, &Taps::new(&offsets, size)), len, &mut gradient);
        let mut rounded_planes = vec![0; d.len()];
        halves::round(&d, &mut rounded_planes);
        let mut again = start.clone();
        correlate(unit, 0.5, &rounded_planes[..], (&x, &Taps::new(&offsets, size)), len, &mut again);
        assert_eq!(gradient, again, "planes that were rounded before");
        for (i, (&got, &before)) in gradient.iter().zip(&start).enumerate() {
            let (j, t) = (i / offsets.len(), offsets[i % offsets.len()]);
            let term = |p: usize| f64::from(to_single(d[j * len + p])) * f64::from(to_single(x[t + p]));
            let exact = f64::from(before) + 0.5 * (0..len).map(term).sum::<f64>();
            assert!((f64::from(got) - exact).abs() < 1e-4, "feature {j}, tap {i}: {got}, not {exact}");
        }
    }
}

#[test]
fn halves_keep_eleven_bits() {
    let Some(_) = unit() else { return };
    let values = numbers(6, 16);
    let mut kept = vec![0; 16];
    let simd = Level::new().as_avx512().expect("a matrix unit comes with AVX-512");
    let mut u = values.clone();
    let activation = {
        let clip = crate::prox::PiecewiseLinear::clip_with_knots(1, 2, 10.0);
        let mut packed = super::super::activation::PackedActivation::default();
        packed.pack(&clip);
        packed
    };
    let mask = vec![1.0; 16];
    let mut epilogue = halves::Forward { u: &mut u, v: &mut kept, activation: &activation, mask: &mask };
    use super::super::epilogue::Epilogue;
    use fearless_simd::{Simd, prelude::*};
    simd.vectorize(|| {
        let v = SimdBase::from_slice(simd, &values[..]);
        // SAFETY: there are sixteen numbers of one row.
        unsafe { epilogue.finish(simd, 0, [0], [[v]]) };
    });
    let back = simd.vectorize(|| {
        use super::super::learned::Kept;
        let mut to = [0.0; 16];
        // SAFETY: there are sixteen numbers.
        unsafe { halves::Half { v: &kept, u: &mut [0; 16] }.load(simd, 0) }.store_slice(&mut to);
        to
    });
    for (value, back) in values.iter().zip(back) {
        assert!((value - back).abs() <= value.abs() / 2048.0, "{value} became {back}");
    }
}
