//! Both sweeps, by samples.

use super::{Fused, PADDING};
use crate::engine::cpu::dense::{Strided, product, product_of_rows, vectorised};
use crate::lifting::{Network, Rows, Rule, home::at_home};
use crate::real::any;
use std::sync::atomic::{AtomicBool, Ordering};

/// The samples of a thread.
struct Part<'a> {
    z: &'a [f32],
    x: &'a [f32],
    u: &'a mut [f32],
    v: &'a mut [f32],
    d: &'a mut [f32],
    back: &'a mut [f32],
    losses: &'a mut [f64],
}

impl Fused {
    /// The forward sweep, the losses, and the errors `d` of all affine maps, of samples whose sizes fit the network. Tells
    /// whether their numbers do: else the results mean nothing.
    pub fn pass(&mut self, network: &Network<f32>, rule: Rule<f32>, z: &Rows<f32>, x: &Rows<f32>) -> bool {
        self.pad(network);
        let (samples, sound) = (z.samples(), AtomicBool::new(true));
        for buffer in [&mut self.u, &mut self.v, &mut self.d, &mut self.back] {
            buffer.resize(samples);
        }
        self.losses.resize(samples, 0.0);
        let each = samples.div_ceil(rayon::current_num_threads()).max(1);
        let [mut u, mut v, mut d, mut back] = [&mut self.u, &mut self.v, &mut self.d, &mut self.back]
            .map(|buffer| std::mem::take(&mut buffer.data));
        let (mut losses, x_width) = (std::mem::take(&mut self.losses), x.width());
        let mut parts = Vec::new();
        let mut chunks = (
            z.data().chunks(each * z.width()),
            x.data().chunks(each * x.width()),
            u.chunks_mut(each * self.u.row),
            v.chunks_mut(each * self.v.row),
            d.chunks_mut(each * self.d.row),
            back.chunks_mut(each * self.back.row),
        );
        for losses in losses.chunks_mut(each) {
            let (Some(z), Some(x), Some(u), Some(v), Some(d), Some(back)) = (
                chunks.0.next(),
                chunks.1.next(),
                chunks.2.next(),
                chunks.3.next(),
                chunks.4.next(),
                chunks.5.next(),
            ) else {
                break;
            };
            parts.push(Part { z, x, u, v, d, back, losses });
        }
        at_home(
            parts,
            |part| part.losses.len(),
            |mut part| {
                // Here, where numbers are read anyway.
                if any(part.z, |v| !v.is_finite()) || !network.loss.allows(part.x, x_width) {
                    return sound.store(false, Ordering::Relaxed);
                }
                self.forward(network, &mut part);
                self.reverse(network, rule, &mut part);
            },
        );
        (self.u.data, self.v.data, self.d.data, self.back.data, self.losses) = (u, v, d, back, losses);
        sound.into_inner()
    }

    fn forward(&self, network: &Network<f32>, part: &mut Part<'_>) {
        if !self.layers[0].padded.is_empty() {
            let inputs = self.layers[0].inputs;
            for (u, z) in part.u.chunks_exact_mut(self.u.row).zip(part.z.chunks_exact(inputs)) {
                u[..inputs].copy_from_slice(z);
            }
        }
        for (k, (layer, affine)) in self.layers.iter().zip(network.layers()).enumerate() {
            let parameters = affine.parameters();
            let shape = [part.losses.len(), layer.inputs.next_multiple_of(PADDING), layer.outputs];
            let u = self.input(k, part.z, part.u);
            let (weights, v) = (layer.weights(parameters[0]), (&mut part.v[layer.output..], self.v.row));
            product_of_rows(self.level, shape, u, weights, parameters[1], v);
            if let Some(activation) = network.activations().get(k) {
                let rows = part.v.chunks_exact(self.v.row).zip(part.u.chunks_exact_mut(self.u.row));
                for (i, (v, u)) in rows.enumerate() {
                    let next = self.layers[k + 1].input;
                    let (v, u) = (&v[layer.output..][..layer.outputs], &mut u[next..][..layer.outputs]);
                    self.u.ask_ahead(u, part.losses.len() - i);
                    activation.prox().prox(1.0, v, u);
                }
            }
        }
    }

    fn reverse(&self, network: &Network<f32>, rule: Rule<f32>, part: &mut Part<'_>) {
        let mu = rule.loss_weight();
        let last = self.layers.len() - 1;
        let (at, outputs) = (self.layers[last].output, self.layers[last].outputs);
        let rows = part.v.chunks_exact(self.v.row).zip(part.d.chunks_exact_mut(self.d.row));
        let samples = part.losses.len();
        let rows = rows.zip(part.x.chunks_exact(outputs)).zip(part.losses.iter_mut());
        for (i, (((v, d), x), loss)) in rows.enumerate() {
            let (output, d) = (&v[at..][..outputs], &mut d[at..][..outputs]);
            self.d.ask_ahead(d, samples - i);
            vectorised(
                self.level,
                #[inline(always)]
                || {
                    *loss = network.loss.value(output, x);
                    network.loss.gradient_of_sample(output, x, d);
                    d.iter_mut().for_each(|d| *d *= mu);
                },
            );
        }
        for k in (1..=last).rev() {
            let (layer, before) = (&self.layers[k], &self.layers[k - 1]);
            let shape = [part.losses.len(), layer.outputs, layer.inputs.next_multiple_of(PADDING)];
            let d = Strided { values: &part.d[layer.output..], row: self.d.row, column: 1 };
            let weights = layer.weights(network.layers()[k].parameters()[0]);
            product(self.level, shape, d, weights, (part.back, self.back.row));
            let prox = network.activations()[k - 1].prox();
            let rows = part.back.chunks_exact_mut(self.back.row).zip(part.d.chunks_exact_mut(self.d.row));
            let values = part.v.chunks_exact(self.v.row).zip(part.u.chunks_exact(self.u.row));
            for (i, ((back, d), (v, u))) in rows.zip(values).enumerate() {
                let (width, d) = (layer.inputs, &mut d[before.output..][..layer.inputs]);
                let (v, u) = (&v[before.output..][..width], &u[layer.input..][..width]);
                self.d.ask_ahead(d, samples - i);
                rule.through(prox, (v, u), &mut back[..width], d);
            }
        }
    }
}
