//! Gradients and the step, by rows of the weights.

use super::Fused;
use crate::engine::cpu::dense::{ByRows, Update, Weights, descend, vectorised};
use crate::lifting::{Network, home::at_home};
use crate::training::optimiser::Moments;

/// Rows of a task.
const TASK: usize = 16;

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
    /// Moves all parameters along the gradients of the last pass, that of samples `z`.
    pub fn update(&self, network: &mut Network<f32>, moments: &mut Moments, update: Update, z: &[f32]) {
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
        at_home(
            tasks,
            |task| task.numbers.len(),
            |task| match task.first {
                Some(first) => self.weights(task, first, update, z),
                None => self.bias(task, update),
            },
        );
    }

    fn weights(&self, task: Task<'_>, first: usize, update: Update, z: &[f32]) {
        let (layer, samples) = (&self.layers[task.layer], self.losses.len());
        let Task { numbers: weights, mean, square, .. } = task;
        let d = ByRows { values: &self.d.data[layer.output + first..], row: self.d.row };
        let u = self.input(task.layer, z, &self.u.data);
        descend(self.level, samples, d, u, Weights { weights, mean, square, columns: layer.inputs }, &update);
    }

    fn bias(&self, task: Task<'_>, update: Update) {
        let layer = &self.layers[task.layer];
        let mut gradient = vec![0.0; layer.outputs];
        vectorised(
            self.level,
            #[inline(always)]
            || {
                for d in self.d.data.chunks_exact(self.d.row) {
                    gradient.iter_mut().zip(&d[layer.output..]).for_each(|(sum, d)| *sum += d);
                }
            },
        );
        update.apply(task.numbers, &gradient, task.mean, task.square);
    }
}
