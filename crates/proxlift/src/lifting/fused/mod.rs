//! Gradient descent on networks of dense layers, fused: the same steps as [`sweep`](super::sweep) and the optimiser take, in
//! three parallel passes over a memory that is kept from batch to batch.
//!
//! 1. The weights are copied into the panels that the kernels read.
//! 2. Threads share the samples: each takes its own through the forward and the reverse sweep, with nobody to wait for.
//! 3. Threads share the rows of the weights: gradients of a few rows are computed, and those rows moved at once.

mod pass;
mod update;

use super::{Batch, Network, Rule};
use crate::engine::cpu::dense::{self, PADDING, Panels, pack, pack_transposed, packed_len};
use crate::training::optimiser::Moments;
use fearless_simd::Level;
use rayon::prelude::*;

/// The shape of a layer, and where its numbers stand in the rows of a sample.
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Of its input, in the rows of `u`.
    input: usize,
    /// Of its output, in the rows of `v` and of `d`.
    output: usize,
    /// `W^T` in panels.
    forward: Vec<f32>,
    /// `W` in panels, unless whole vectors can be read where it is.
    adjoint: Vec<f32>,
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
}

/// The memory of the steps on a network.
pub(super) struct Fused {
    level: Level,
    layers: Vec<Layer>,
    /// `z` and `u_0..u_{K-1}`; `v_0..v_K`; `d_0..d_K`; what comes back through a map.
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
            let adjoint = if in_place(inputs) { 0 } else { packed_len(level, outputs, inputs) };
            let forward = vec![0.0; packed_len(level, inputs, outputs)];
            layers.push(Layer { inputs, outputs, input: u, output: v, forward, adjoint: vec![0.0; adjoint] });
            u += inputs.next_multiple_of(PADDING);
            v += outputs.next_multiple_of(PADDING);
            most = most.max(inputs);
        }
        let [u, v, d, back] = [u, v, v, most].map(Buffer::new);
        Some(Self { level, layers, u, v, d, back, losses: Vec::new() })
    }

    /// One step on a batch that fits the network, along `scale` times the gradients; returns the losses of the samples.
    pub fn step(
        &mut self,
        network: &mut Network<f32>,
        rule: Rule<f32>,
        batch: Batch<'_, f32>,
        moments: &mut Moments,
        update: dense::Update,
    ) -> &[f64] {
        self.pack(network);
        self.pass(network, rule, batch);
        self.update(network, moments, update);
        &self.losses
    }

    fn pack(&mut self, network: &Network<f32>) {
        let level = self.level;
        self.layers.par_iter_mut().zip(network.layers()).enumerate().for_each(|(k, (layer, affine))| {
            let weights = affine.parameters()[0];
            pack_transposed(level, weights, layer.inputs, &mut layer.forward);
            if k > 0 && !in_place(layer.inputs) {
                pack(level, weights, layer.inputs, &mut layer.adjoint);
            }
        });
    }
}

impl Layer {
    /// `W`, as the adjoint reads it.
    fn weights<'a>(&'a self, level: Level, weights: &'a [f32]) -> Panels<'a> {
        if in_place(self.inputs) {
            Panels::of_rows(level, weights, self.inputs)
        } else {
            Panels::packed(level, &self.adjoint, self.outputs)
        }
    }
}

/// Whether rows of so many numbers are whole vectors.
fn in_place(numbers: usize) -> bool {
    numbers.is_multiple_of(PADDING)
}
