//! The vector kernel of the Bregman distance.

use super::level::dispatch;
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};

/// `B(u, v) = 1/2 ||u - p||^2 + <v - p, p - u>`, `p = clip(v)`; short runs of lanes, then double precision.
#[inline(never)]
pub fn clip_bregman(level: Level, lambda: &[f32], u: &[f32], v: &[f32]) -> f64 {
    dispatch!(level, simd => sum(simd, lambda, u, v))
}

#[inline(always)]
fn sum<S: Simd>(simd: S, lambda: &[f32], u: &[f32], v: &[f32]) -> f64 {
    const RUN: usize = 16 * LANES;
    let plane = u.len() / lambda.len();
    let half = S::f32s::splat(simd, 0.5);
    let mut total = 0.0;
    for ((u, v), &lambda) in u.chunks_exact(plane).zip(v.chunks_exact(plane)).zip(lambda) {
        let lambda = S::f32s::splat(simd, lambda);
        for (u, v) in u.chunks(RUN).zip(v.chunks(RUN)) {
            let mut sum = S::f32s::splat(simd, 0.0);
            for i in (0..u.len()).step_by(S::f32s::LEN) {
                let (u, v) = (
                    S::f32s::from_slice(simd, &u[i..i + S::f32s::LEN]),
                    S::f32s::from_slice(simd, &v[i..i + S::f32s::LEN]),
                );
                let p = v.min(lambda).max(-lambda);
                let gap = p - u;
                sum = (half * gap + (v - p)).mul_add(gap, sum);
            }
            total += f64::from(sum.reduce_sum());
        }
    }
    total
}
