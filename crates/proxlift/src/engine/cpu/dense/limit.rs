//! The yardstick of dense layers: their products alone.

use super::{ByRows, PADDING, Strided, level, product};
use rayon::prelude::*;
use std::time::Instant;

/// The least time in seconds, of `rounds` tries, of all products of a training step on `samples` samples with dense layers of
/// so many numbers: forward, adjoint (but for the first layer) and gradients, shared by the threads of the current pool.
pub fn products_seconds(widths: &[usize], samples: usize, rounds: usize) -> f64 {
    let (level, threads) = (level(), rayon::current_num_threads());
    let most = widths.iter().max().map_or(0, |most| most.next_multiple_of(PADDING));
    let (a, b) = (vec![0.5; samples.max(most) * most], vec![0.25; most.max(samples) * most]);
    let each = samples.div_ceil(threads).max(1);
    let mut parts: Vec<Vec<f32>> = (0..threads).map(|_| vec![0.0; most * most.max(each)]).collect();
    let mut once = || {
        let start = Instant::now();
        parts.par_iter_mut().with_max_len(1).enumerate().for_each(|(i, c)| {
            let mine = each.min(samples.saturating_sub(i * each));
            for (k, pair) in widths.windows(2).enumerate() {
                let (inputs, outputs) = (pair[0], pair[1]);
                let mut run = |m: usize, depth: usize, n: usize, (row, column): (usize, usize)| {
                    let n = n.next_multiple_of(PADDING);
                    let (a, b) = (Strided { values: &a, row, column }, ByRows { values: &b, row: n });
                    product(level, [m, depth, n], a, b, (c, most));
                };
                run(mine, inputs, outputs, (inputs, 1));
                if k > 0 {
                    run(mine, outputs, inputs, (outputs, 1));
                }
                run(outputs.div_ceil(threads), samples, inputs, (1, outputs));
            }
        });
        start.elapsed().as_secs_f64()
    };
    (0..rounds.max(1)).map(|_| once()).fold(f64::INFINITY, f64::min)
}
