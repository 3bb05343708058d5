//! One image through the network: bands that fit the memory, and in each, strips of rows in parallel.
//!
//! A band computes around its rows what the later layers need. The strips of a band exchange the rows at their borders
//! after every few layers: seldom enough not to wait for each other, often enough to compute little twice.

use super::pointwise::{Assign, InPlace};
use super::primal::Between;
use super::scratch::{Batch, Scratch, Shelf};
use super::stencil::{Layout, Stencil};
use crate::engine::{Aligned, Grid, LANES};
use crate::network::Network;
use fearless_simd::{Level, dispatch};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of features that a band takes at most.
const BAND_BYTES: usize = 64 << 20;

/// Layers between two exchanges.
const GROUP: usize = 5;

/// What the strips share.
pub(super) struct Inference<'a> {
    pub level: Level,
    pub shelf: &'a Shelf,
    pub network: &'a Network<f32>,
    pub batch: &'a Batch,
}

/// Rows of a band that one thread works on.
struct Strip {
    /// The rows that it computes.
    rows: Range<usize>,
    /// The rows that it has in memory: those that a group of layers needs more on each side.
    around: Range<usize>,
    stencil: Arc<Stencil>,
    memory: Scratch,
}

impl Inference<'_> {
    /// `output = z - L_K* u_{K-1}` for one sample, in `strips` parts.
    pub(super) fn image(&self, z: &[f32], grid: Grid, strips: usize, output: &mut [f32]) {
        let architecture = self.network.architecture();
        let bytes = 4 * architecture.features * grid.len();
        let most = (grid.height() / (2 * architecture.receptive_radius()).max(1)).max(1);
        let rows = grid.height().div_ceil(bytes.div_ceil(BAND_BYTES).min(most));
        for start in (0..grid.height()).step_by(rows) {
            self.band(z, grid, start..grid.height().min(start + rows), strips, output);
        }
    }

    /// The rows `wanted` of the output.
    fn band(&self, z: &[f32], grid: Grid, wanted: Range<usize>, strips: usize, output: &mut [f32]) {
        let (radius, depth) = (grid.gap(), self.network.theta.len() - 1);
        // u_k is needed r + 2 r (K - 1 - k) rows beyond the output.
        let needed = |k: usize| widen(&wanted, radius * (2 * (depth - k) - 1), grid.height());
        let mut strips = self.strips(grid, needed(0), strips);
        strips.par_iter_mut().for_each(|strip| self.start(z, grid, strip));
        for first in (1..depth).step_by(GROUP) {
            let end = depth.min(first + GROUP);
            // What a strip needs of u_k beyond its rows for the rest of the group, and the output after the last.
            let beyond = |k: usize| radius * (2 * (end - 1 - k) + usize::from(end == depth));
            if first > 1 {
                exchange(&mut strips, beyond(first - 1), self.network);
            }
            strips.par_iter_mut().for_each(|strip| {
                for k in first..end {
                    self.layer(k, needed(k), beyond(k), strip);
                }
                if end == depth {
                    self.finish(wanted.clone(), strip);
                }
            });
        }
        for strip in strips {
            strip.write(grid, &wanted, output);
            self.shelf.put(strip.memory);
        }
    }

    /// Cuts `rows` into strips, none thinner than what its neighbours need of it.
    fn strips(&self, grid: Grid, rows: Range<usize>, count: usize) -> Vec<Strip> {
        let radius = grid.gap();
        let beyond = radius * (2 * GROUP + 1);
        let height = rows.len().div_ceil(count).max(beyond).max(1);
        let mut strips = Vec::with_capacity(count);
        let mut start = rows.start;
        while start < rows.end {
            let rest = rows.end - start;
            let rows = start..start + if rest < height + beyond { rest } else { height };
            let around = widen(&rows, beyond + radius, grid.height());
            let part = Grid::new(around.len(), grid.width(), radius).expect("a strip has rows");
            let stencil = self.shelf.stencil(self.network.architecture(), part, Layout::Chunked);
            let mut memory = self.shelf.take(&stencil, false);
            memory.remember(&stencil, self.network);
            start = rows.end;
            strips.push(Strip { rows, around, stencil, memory });
        }
        strips
    }

    /// The strip's part of the noisy image, and `u_0 = L_0 z`.
    fn start(&self, z: &[f32], grid: Grid, strip: &mut Strip) {
        let Strip { around, stencil, memory, .. } = strip;
        let part = stencil.grid;
        for (to, from) in memory.image.chunks_exact_mut(part.len()).zip(z.chunks_exact(grid.len())) {
            let count = part.height() * part.stride();
            to[..count].copy_from_slice(&from[around.start * part.stride()..][..count]);
        }
        stencil.pad(&memory.image, &mut memory.z);
        let u = &mut Assign(&mut memory.u[0]);
        let range = 0..part.len();
        dispatch!(self.level, simd => stencil.convolve(simd, &self.batch.packed[0], &memory.z, range, u));
        if self.network.unrolling.remembers().0 {
            memory.y[0].copy_from_slice(&memory.u[0]);
        }
    }

    /// `u_k = s(u_{k-1} - tau_k L_k (L_k* u_{k-1} - z))` on the strip's part of `needed` and `beyond` more rows of it.
    fn layer(&self, k: usize, needed: Range<usize>, beyond: usize, strip: &mut Strip) {
        let range = strip.numbers(needed, beyond);
        let Strip { stencil, memory: Scratch { window, image, r, u, y, q, .. }, .. } = strip;
        let activation = &self.batch.activation[k];
        let between = &mut self.between(k, q);
        let alpha = self.network.momentum(k + 1).inertia;
        let before = if self.network.unrolling.remembers().0 { y.first_mut() } else { None };
        dispatch!(self.level, simd => {
            let inertia = before.map(|before| (alpha, &mut **before));
            let u = &mut InPlace { u: &mut u[0], activation, inertia };
            stencil.layer(simd, &self.batch.packed[k], Some(image), between, range, window, &mut r[0], u);
        });
    }

    /// The image part of layer `k`.
    fn between<'a>(&self, k: usize, q: &'a mut [Aligned<f32>]) -> Between<'a> {
        match q.first_mut() {
            Some(q) if self.network.bounded || self.network.unrolling.remembers().1 => {
                Between::Forward { primal: self.network.primal(k), q }
            }
            _ => Between::Nothing,
        }
    }

    /// `-x^ = L_K* u_{K-1} - z` on the strip's part of `wanted`, left in its residual.
    fn finish(&self, wanted: Range<usize>, strip: &mut Strip) {
        let range = strip.numbers(wanted, 0);
        let Strip { stencil, memory: Scratch { window, image, r, u, q, .. }, .. } = strip;
        let between = &mut self.between(self.network.theta.len() - 1, q);
        let packed = &self.batch.packed[self.network.theta.len() - 1];
        dispatch!(self.level, simd => {
            stencil.residual(simd, packed, (&u[0], Some(image)), between, range, window, &mut r[0]);
        });
    }
}

impl Strip {
    /// The strip's part of `rows` of the image, up to `beyond` rows outside the strip, as numbers of its planes, rounded
    /// outward to whole vectors.
    fn numbers(&self, rows: Range<usize>, beyond: usize) -> Range<usize> {
        let stride = self.stencil.grid.stride();
        let start = rows.start.max(self.rows.start.saturating_sub(beyond)).min(self.around.end);
        let end = rows.end.min(self.rows.end + beyond).max(start);
        let start = (start - self.around.start) * stride;
        let end = (end - self.around.start) * stride;
        start - start % LANES..end.next_multiple_of(LANES)
    }

    /// Writes the strip's part of `wanted` to the image.
    fn write(&self, grid: Grid, wanted: &Range<usize>, output: &mut [f32]) {
        let (part, stride) = (self.stencil.grid, grid.stride());
        let rows = self.rows.start.max(wanted.start)..self.rows.end.min(wanted.end);
        for y in rows {
            for (c, output) in output.chunks_exact_mut(grid.len()).enumerate() {
                let r = c * self.stencil.padded() + part.margin() + (y - self.around.start) * stride;
                let r = &self.memory.r[0][r..];
                output[y * stride..][..grid.width()].iter_mut().zip(r).for_each(|(out, r)| *out = -r);
            }
        }
    }
}

/// Copies `rows` rows of `u`, and of what layers remember, on both sides of each border between strips to the strip
/// beyond it.
fn exchange(strips: &mut [Strip], rows: usize, network: &Network<f32>) {
    for i in 1..strips.len() {
        let (above, below) = strips.split_at_mut(i);
        let (above, below) = (&mut above[i - 1], &mut below[0]);
        let border = below.rows.start;
        send(above, below, border - rows..border, network);
        send(below, above, border..border + rows, network);
    }
}

fn send(from: &Strip, to: &mut Strip, rows: Range<usize>, network: &Network<f32>) {
    let stride = to.stencil.grid.stride();
    let numbers = (rows.start - to.around.start) * stride..(rows.end - to.around.start) * stride;
    let first = (rows.start - from.around.start) * stride;
    let (features, images) = network.unrolling.remembers();
    to.stencil.copy(numbers.clone(), &mut to.memory.u[0], &from.stencil, first, &from.memory.u[0]);
    if features {
        to.stencil.copy(numbers.clone(), &mut to.memory.y[0], &from.stencil, first, &from.memory.y[0]);
    }
    if images {
        let (len, other) = (to.stencil.grid.len(), from.stencil.grid.len());
        let planes = to.memory.q[0].chunks_exact_mut(len).zip(from.memory.q[0].chunks_exact(other));
        planes
            .for_each(|(to, from)| to[numbers.clone()].copy_from_slice(&from[first..first + numbers.len()]));
    }
}

/// `rows`, `more` rows above and below, inside an image of `height` rows.
fn widen(rows: &Range<usize>, more: usize, height: usize) -> Range<usize> {
    rows.start.saturating_sub(more)..(rows.end + more).min(height)
}
