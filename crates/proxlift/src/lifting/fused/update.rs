//! Gradients and the step, by rows of the weights.

use super::{Fused, PADDING};
use crate::engine::cpu::dense::{Panels, Strided, Update, prefetch, product};
use crate::lifting::Network;
use crate::training::optimiser::Moments;
use rayon::prelude::*;

/// Rows of a task.
const TASK: usize = 16;

/// Rows and columns whose gradient is computed before they move: a block that stays in the first cache.
const ROWS: usize = 8;
const COLUMNS: usize = 512;

/// Some rows of the weights of a layer, or all its biases.
struct Task<'a> {
    layer: usize,
    /// The first row; none for biases.
    first: Option<usize>,
    numbers: &'a mut [f32],
    mean: &'a mut [f32],
    square: &'a mut [f32],
}

impl Fused {
    /// Moves all parameters along their gradients.
    pub(super) fn update(&self, network: &mut Network<f32>, moments: &mut Moments, update: Update) {
        let mut tasks = Vec::new();
        let count = self.layers.len();
        for (i, (numbers, (mean, square))) in
            network.blocks_mut().into_iter().zip(moments.blocks_mut()).enumerate()
        {
            let layer = i % count;
            if i >= count {
                tasks.push(Task { layer, first: None, numbers, mean, square });
                continue;
            }
            let chunk = TASK * self.layers[layer].inputs;
            let chunks = numbers.chunks_mut(chunk).zip(mean.chunks_mut(chunk)).zip(square.chunks_mut(chunk));
            tasks.extend(chunks.enumerate().map(|(i, ((numbers, mean), square))| Task {
                layer,
                first: Some(i * TASK),
                numbers,
                mean,
                square,
            }));
        }
        tasks.into_par_iter().for_each(|task| match task.first {
            Some(first) => self.weights(task, first, update),
            None => self.bias(task, update),
        });
    }

    fn weights(&self, task: Task<'_>, first: usize, update: Update) {
        let (layer, samples) = (&self.layers[task.layer], self.losses.len());
        let inputs = layer.inputs;
        let mut gradient = [0.0; ROWS * COLUMNS];
        let block = ROWS * inputs;
        let blocks = task
            .numbers
            .chunks_mut(block)
            .zip(task.mean.chunks_mut(block))
            .zip(task.square.chunks_mut(block));
        for (i, ((weights, mean), square)) in blocks.enumerate() {
            let rows = weights.len() / inputs;
            let d = &self.d.data[layer.output + first + i * ROWS..];
            let d = Strided { values: d, row: 1, column: self.d.row };
            for column in (0..inputs).step_by(COLUMNS) {
                let columns = COLUMNS.min(inputs - column);
                for row in 0..rows {
                    for at in (row * inputs + column..row * inputs + column + columns).step_by(PADDING) {
                        for numbers in [&*weights, mean, square] {
                            prefetch(numbers, at);
                        }
                    }
                }
                let u = Panels::of_rows(self.level, &self.u.data[layer.input + column..], self.u.row);
                let shape = [rows, samples, columns.next_multiple_of(PADDING)];
                product(self.level, shape, d, u, (&mut gradient, COLUMNS), false);
                for (row, gradient) in gradient.chunks_exact(COLUMNS).take(rows).enumerate() {
                    let range = row * inputs + column..row * inputs + column + columns;
                    let (w, m, s) =
                        (&mut weights[range.clone()], &mut mean[range.clone()], &mut square[range]);
                    update.apply(w, &gradient[..columns], m, s);
                }
            }
        }
    }

    fn bias(&self, task: Task<'_>, update: Update) {
        let layer = &self.layers[task.layer];
        let mut gradient = vec![0.0; layer.outputs];
        for d in self.d.data.chunks_exact(self.d.row) {
            gradient.iter_mut().zip(&d[layer.output..]).for_each(|(sum, d)| *sum += d);
        }
        update.apply(task.numbers, &gradient, task.mean, task.square);
    }
}
