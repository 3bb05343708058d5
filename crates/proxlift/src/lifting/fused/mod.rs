//! Gradient descent on networks of dense layers, fused: the same steps as [`sweep`](super::sweep) and the optimiser take, in
//! two parallel passes over a memory that is kept from batch to batch.
//!
//! 1. Threads share the samples: each takes its own through the forward and the reverse sweep, with nobody to wait for.
//! 2. Threads share the rows of the weights: gradients of a few rows are computed, and those rows moved at once.

mod pass;
mod update;

use super::Network;
use crate::engine::cpu::dense::{self, ByRows, PADDING, prefetch_to_write};
use fearless_simd::Level;

/// So many samples ahead, memory that will be written is asked for.
const AHEAD: usize = 4;

/// The shape of a layer, and where its numbers stand in the rows of a sample.
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Of its input, in the rows of `u`.
    input: usize,
    /// Of its output, in the rows of `v` and of `d`.
    output: usize,
    /// `W` with rows that end in zeros, where those of the weights are not whole vectors.
    padded: Vec<f32>,
}

/// Numbers of every sample, so many apart.
#[derive(Default)]
struct Buffer {
    data: Vec<f32>,
    row: usize,
}

impl Buffer {
    fn new(numbers: usize) -> Self {
        // An odd number of cache lines, so that the rows of a column spread over the cache.
        Self { data: Vec::new(), row: (numbers.div_ceil(PADDING) | 1) * PADDING }
    }

    fn resize(&mut self, samples: usize) {
        self.data.resize(samples * self.row, 0.0);
    }

    /// Asks for what stands where `numbers` do, a few samples further on in `left` from theirs on, to be written: other threads read
    /// it in the last step.
    fn ask_ahead(&self, numbers: &[f32], left: usize) {
        if left > AHEAD {
            let there = numbers.as_ptr().wrapping_add(AHEAD * self.row);
            (0..numbers.len()).step_by(PADDING).for_each(|at| prefetch_to_write(there.wrapping_add(at)));
        }
    }
}

/// The memory of the steps on a network.
pub(super) struct Fused {
    level: Level,
    layers: Vec<Layer>,
    /// `z`, if it must be padded, and `u_0..u_{K-1}`; `v_0..v_K`; `d_0..d_K`; what comes back through a map.
    u: Buffer,
    v: Buffer,
    d: Buffer,
    back: Buffer,
    losses: Vec<f64>,
}

impl Fused {
    /// For `network`, if all its layers are dense and nothing else is trained.
    pub fn new(network: &Network<f32>) -> Option<Self> {
        let level = dense::level();
        let plain = network.blocks().len() == 2 * network.layers().len();
        if !plain || network.layers().iter().any(|layer| !layer.is_dense()) {
            return None;
        }
        let (mut u, mut v, mut most, mut layers) = (0, 0, 0, Vec::new());
        for layer in network.layers() {
            let (inputs, outputs) = (layer.inputs(), layer.outputs());
            let whole = inputs.is_multiple_of(PADDING);
            let padded = if whole { 0 } else { outputs * inputs.next_multiple_of(PADDING) };
            layers.push(Layer { inputs, outputs, input: u, output: v, padded: vec![0.0; padded] });
            // The input is read where it is, if it can be.
            u += if whole && layers.len() == 1 { 0 } else { inputs.next_multiple_of(PADDING) };
            v += outputs.next_multiple_of(PADDING);
            most = most.max(inputs);
        }
        let [u, v, d, back] = [u, v, v, most].map(Buffer::new);
        Some(Self { level, layers, u, v, d, back, losses: Vec::new() })
    }

    /// Losses of the samples of the last pass.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    fn pad(&mut self, network: &Network<f32>) {
        for (layer, affine) in self.layers.iter_mut().zip(network.layers()) {
            let rows = layer.padded.chunks_exact_mut(layer.inputs.next_multiple_of(PADDING));
            for (padded, row) in rows.zip(affine.parameters()[0].chunks_exact(layer.inputs)) {
                padded[..layer.inputs].copy_from_slice(row);
            }
        }
    }
}

impl Fused {
    /// What layer `k` starts from, in rows of whole vectors, of samples with these `z` and `u`.
    fn input<'a>(&self, k: usize, z: &'a [f32], u: &'a [f32]) -> ByRows<'a> {
        let layer = &self.layers[k];
        if k == 0 && layer.padded.is_empty() {
            return ByRows { values: z, row: layer.inputs };
        }
        ByRows { values: &u[layer.input..], row: self.u.row }
    }
}

impl Layer {
    /// `W`, in rows of whole vectors.
    fn weights<'a>(&'a self, weights: &'a [f32]) -> ByRows<'a> {
        let values = if self.padded.is_empty() { weights } else { &self.padded };
        ByRows { values, row: self.inputs.next_multiple_of(PADDING) }
    }
}
