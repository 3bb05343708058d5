//! The yardstick: what the machine's multiply-add units can do when nothing waits for memory.

use super::level::{self, dispatch};
use fearless_simd::{Simd, prelude::*};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::Instant;

/// Accumulators, enough to hide the latency of a multiply-add.
const CHAINS: usize = 12;
const ROUNDS: usize = 200_000;

#[inline(always)]
fn chains<S: Simd>(simd: S) -> (f32, usize) {
    let (a, b) = (S::f32s::splat(simd, black_box(0.999)), S::f32s::splat(simd, black_box(0.001)));
    let mut sums = [S::f32s::splat(simd, 1.0); CHAINS];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = sum.mul_add(a, b);
        }
    }
    let total = sums.iter().fold(S::f32s::splat(simd, 0.0), |total, sum| total + *sum);
    (total.reduce_sum(), 2 * S::f32s::LEN * CHAINS * ROUNDS)
}

/// GFLOP/s of multiply-adds on all threads of the current pool, the best of `rounds` tries.
pub fn fma_peak_gflops(rounds: usize) -> f64 {
    let level = level::chosen();
    let threads = rayon::current_num_threads();
    let once = || {
        let start = Instant::now();
        let flops: usize = (0..threads)
            .into_par_iter()
            .with_max_len(1)
            .map(|_| {
                let (value, flops) = dispatch!(level, simd => chains(simd));
                black_box(value);
                flops
            })
            .sum();
        flops as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    (0..rounds.max(1)).map(|_| once()).fold(0.0, f64::max)
}
