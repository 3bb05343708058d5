//! One image through the network: parts that fit the memory, and in each, strips of rows in parallel.
//!
//! A part computes around its pixels what the later layers need. The strips of a part exchange the rows at their borders
//! after every few layers: seldom enough not to wait for each other, often enough to compute little twice.

use super::Cpu;
use super::activation::Clip;
use super::epilogue::{Assign, InPlace};
use super::inertia::{Maybe, Replace};
use super::parts::{Cut, PART_BYTES, Parts};
use super::primal::Between;
use super::scratch::{Batch, Scratch, Shelf};
use super::stencil::{Layout, Stencil};
use crate::engine::{Aligned, Field, Grid, LANES};
use crate::network::Network;
use fearless_simd::{Level, dispatch};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Layers between two exchanges.
const GROUP: usize = 5;

/// What the strips share.
pub(super) struct Inference<'a> {
    pub level: Level,
    pub shelf: &'a Shelf,
    pub network: &'a Network<f32>,
    pub batch: &'a Batch,
}

/// Rows of a part that one thread works on.
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
        // Samples that run at the same time share the memory as they share the threads.
        let bytes = PART_BYTES / rayon::current_num_threads().max(strips) * strips;
        let parts = Parts::new(self.network.architecture(), grid.height(), grid.width(), bytes);
        for (rows, columns) in parts.iter() {
            self.part(z, grid, (rows, columns), strips, output);
        }
    }

    /// The pixels of the output that a part wants.
    fn part(&self, z: &[f32], grid: Grid, (rows, columns): (&Cut, &Cut), strips: usize, output: &mut [f32]) {
        let (radius, depth) = (grid.gap(), self.network.theta.len() - 1);
        // u_k is needed r + 2 r (K - 1 - k) rows beyond the output.
        let needed = |k: usize| widen(&rows.wanted, radius * (2 * (depth - k) - 1), &rows.around);
        let mut strips = self.strips(grid, (rows, columns), strips);
        strips.par_iter_mut().for_each(|strip| self.start(z, grid, columns, strip));
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
                    self.finish(rows.wanted.clone(), strip);
                }
            });
        }
        for strip in strips {
            strip.write(grid, (rows, columns), output);
            self.shelf.put(strip.memory);
        }
    }

    /// Cuts the rows of a part into strips, none thinner than what its neighbours need of it.
    fn strips(&self, grid: Grid, (rows, columns): (&Cut, &Cut), count: usize) -> Vec<Strip> {
        let (radius, limits, width) = (grid.gap(), &rows.around, columns.around.len());
        let rows = limits.clone();
        let beyond = radius * (2 * GROUP + 1);
        let height = rows.len().div_ceil(count).max(beyond).max(1);
        let mut strips = Vec::with_capacity(count);
        let mut start = rows.start;
        while start < rows.end {
            let rest = rows.end - start;
            let rows = start..start + if rest < height + beyond { rest } else { height };
            let around = widen(&rows, beyond + radius, limits);
            let part = Grid::new(around.len(), width, radius).expect("a strip has pixels");
            let stencil = self.shelf.stencil(self.network.architecture(), part, Layout::Chunked);
            let mut memory = self.shelf.take(&stencil, false);
            memory.remember(&stencil, self.network);
            start = rows.end;
            strips.push(Strip { rows, around, stencil, memory });
        }
        strips
    }

    /// The strip's part of the noisy image, and `u_0 = L_0 z`.
    fn start(&self, z: &[f32], grid: Grid, columns: &Cut, strip: &mut Strip) {
        let Strip { around, stencil, memory, .. } = strip;
        let part = stencil.grid;
        for (to, from) in memory.image.chunks_exact_mut(part.len()).zip(z.chunks_exact(grid.len())) {
            for (to, y) in to.chunks_exact_mut(part.stride()).zip(around.clone()) {
                let from = &from[y * grid.stride() + columns.around.start..][..part.width()];
                to[..part.width()].copy_from_slice(from);
            }
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
        let inertia = before.map(|u| Replace { alpha, u });
        let packed = &self.batch.packed[k];
        dispatch!(self.level, simd => {
            if activation.clip && inertia.is_none() {
                let activation = Clip(activation);
                let u = &mut InPlace::<_, false> { u: &mut u[0], activation, inertia: Maybe(None) };
                stencil.layer(simd, packed, Some(image), between, range, window, &mut r[0], u);
            } else {
                let u = &mut InPlace::<_, true> { u: &mut u[0], activation, inertia: Maybe(inertia) };
                stencil.layer(simd, packed, Some(image), between, range, window, &mut r[0], u);
            }
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

impl Cpu {
    /// The whole network for one part of an image that need not be in memory: `z` holds the pixels around the part,
    /// and only the wanted ones of `output`, which `rows` and `columns` of `z`'s own pixels tell, are computed.
    ///
    /// They have the same bits as in the image denoised at once if `z` holds [`Architecture::receptive_radius`] more
    /// pixels on every side where the image has them: see [`Parts`].
    ///
    /// [`Architecture::receptive_radius`]: crate::network::Architecture::receptive_radius
    ///
    /// # Panics
    /// When `z` does not fit the network, `output` does not fit `z`, or the part is not in it.
    pub fn denoise_part(
        &self,
        network: &Network<f32>,
        z: &Field<f32>,
        (rows, columns): (Range<usize>, Range<usize>),
        output: &mut Field<f32>,
    ) {
        network.check_pair(z, output).unwrap_or_else(|e| panic!("{e}"));
        let grid = z.grid();
        assert!(rows.end <= grid.height() && columns.end <= grid.width(), "the part is not in the image");
        let rows = Cut { wanted: rows, around: 0..grid.height() };
        let columns = Cut { wanted: columns, around: 0..grid.width() };
        self.shelf.with_batch(|batch| {
            batch.pack(network, 1.0);
            let inference = Inference { level: self.level, shelf: &self.shelf, network, batch };
            let strips = rayon::current_num_threads();
            // One after the other, each on all threads: the features of one only are in memory.
            for (s, output) in output.data_mut().chunks_exact_mut(z.sample_len()).enumerate() {
                inference.part(z.sample(s), grid, (&rows, &columns), strips, output);
            }
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

    /// Writes the strip's part of what is wanted to the image.
    fn write(&self, grid: Grid, (rows, columns): (&Cut, &Cut), output: &mut [f32]) {
        let (part, wanted) = (self.stencil.grid, &columns.wanted);
        for y in self.rows.start.max(rows.wanted.start)..self.rows.end.min(rows.wanted.end) {
            for (c, output) in output.chunks_exact_mut(grid.len()).enumerate() {
                let r = c * self.stencil.padded() + part.margin() + (y - self.around.start) * part.stride();
                let r = &self.memory.r[0][r + wanted.start - columns.around.start..];
                let output = &mut output[y * grid.stride() + wanted.start..][..wanted.len()];
                output.iter_mut().zip(r).for_each(|(out, r)| *out = -r);
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

/// `rows`, `more` rows above and below, inside `limits`.
fn widen(rows: &Range<usize>, more: usize, limits: &Range<usize>) -> Range<usize> {
    rows.start.saturating_sub(more).max(limits.start)..(rows.end + more).min(limits.end)
}
