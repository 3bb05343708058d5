//! One image through the network: tiles that fit the memory, and in each, strips of rows in parallel.
//!
//! A tile computes around its pixels what the later layers need. The strips of a tile exchange the rows at their borders
//! after every few layers: seldom enough not to wait for each other, often enough to compute little twice.

use super::epilogue::{Assign, ClipInPlace};
use super::pairs::progress::Progress;
use super::pairs::stencil::Stencil;
use super::scratch::{Batch, Shelf, StripMemory};
use super::{activation::Clip, image_step::ImageStep, inertia::Replace, learned::InPlace};
use crate::engine::Cut;
use crate::field::{Aligned, Grid};
use crate::network::{Memory, Network};
use fearless_simd::Level;
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Layers that go through a strip together, between two exchanges.
const GROUP: usize = 4;

pub struct Inference<'a> {
    pub level: Level,
    pub shelf: &'a Shelf,
    pub network: &'a Network<f32>,
    pub batch: &'a Batch,
}

/// Rows of a tile that one thread works on.
struct Strip {
    rows: Range<usize>,
    /// The rows that it has in memory: those that a group of layers needs more on each side.
    around: Range<usize>,
    stencil: Arc<Stencil>,
    memory: StripMemory,
}

impl Inference<'_> {
    /// The pixels of `output = z - L_K* u_{K-1}` that a tile of one sample wants. The bits are those of the whole image
    /// if it has the receptive radius more pixels on every side where the image has them, and begins at an even row of
    /// it, since rows are computed in pairs.
    pub fn tile(
        &self,
        z: &[f32],
        grid: Grid,
        (rows, columns): (&Cut, &Cut),
        strips: usize,
        output: &mut [f32],
    ) {
        let (radius, depth) = (grid.gap(), self.network.theta.len() - 1);
        // u_k is needed r + 2 r (K - 1 - k) rows beyond the output, and of layer K the output itself.
        let needed = |k: usize| match depth - k {
            0 => rows.wanted.clone(),
            more => widen(&rows.wanted, radius * (2 * more - 1), &rows.around),
        };
        let mut strips = self.strips(grid, (rows, columns), strips);
        strips.par_iter_mut().for_each(|strip| strip.read(z, grid, columns));
        for first in (0..=depth).step_by(GROUP) {
            let layers = first..=depth.min(first + GROUP - 1);
            // What a strip needs of u_k beyond its rows for the rest of the group, and the output has no u.
            let beyond = |k: usize| match (*layers.end(), k) {
                (last, k) if last < depth => radius * 2 * (last - k),
                (_, k) if k < depth => radius * (2 * (depth - k) - 1),
                _ => 0,
            };
            if first > 0 {
                exchange(&mut strips, beyond(first - 1), self.network);
            }
            strips.par_iter_mut().for_each(|strip| {
                let (reach, len) = (strip.stencil.reach(), strip.stencil.half.len());
                let mut progress = std::array::from_fn(|i| {
                    let k = *layers.end().min(&(first + i));
                    Progress::new(strip.numbers(needed(k), beyond(k)), reach, len)
                });
                self.sweep(layers.clone(), &mut progress, strip);
            });
        }
        let slot = depth % GROUP;
        for strip in strips {
            strip.write(grid, (rows, columns), slot, output);
            self.shelf.put_strip(&strip.stencil, strip.memory);
        }
    }

    /// Some layers through a strip, each as soon as the one before it has gone far enough: what they read and write
    /// meanwhile stays in the cache.
    fn sweep(&self, layers: RangeInclusive<usize>, progress: &mut [Progress; GROUP], strip: &mut Strip) {
        let len = strip.stencil.half.len();
        loop {
            let mut available = len;
            for (slot, k) in layers.clone().enumerate() {
                self.step(k, slot, &mut progress[slot], available, strip);
                available = progress[slot].available(len);
            }
            let count = layers.end() - layers.start() + 1;
            if progress[..count].iter().all(Progress::finished) {
                return;
            }
        }
    }

    /// Cuts the rows of a tile into strips of whole pairs, none thinner than what its neighbours need of it.
    fn strips(&self, grid: Grid, (rows, columns): (&Cut, &Cut), count: usize) -> Vec<Strip> {
        let (radius, limits, width) = (grid.gap(), &rows.around, columns.around.len());
        let beyond = radius * (2 * GROUP + 1);
        let height = limits.len().div_ceil(count).max(beyond).next_multiple_of(2).max(2);
        let mut strips = Vec::with_capacity(count);
        let mut start = limits.start;
        while start < limits.end {
            let rest = limits.end - start;
            let rows = start..start + if rest < height + beyond { rest } else { height };
            let around = widen(&rows, beyond + radius, limits);
            let around = around.start / 2 * 2..around.end;
            let part = Grid::new(around.len(), width, radius).expect("a strip has pixels");
            let stencil = self.shelf.pairs(self.network.architecture(), part);
            let mut memory = self.shelf.take_strip(&stencil, GROUP);
            memory.remember(&stencil, self.network);
            start = rows.end;
            strips.push(Strip { rows, around, stencil, memory });
        }
        strips
    }

    /// The next stretch of layer `k` of a strip, as far as the features of the layer before it are `available`:
    /// `u_0 = L_0 z`, or `u_k = s(u_{k-1} - tau_k L_k (L_k* u_{k-1} - z))`, or at last `-x^ = L_K* u_{K-1} - z`, which is
    /// left in the residual.
    fn step(&self, k: usize, slot: usize, progress: &mut Progress, available: usize, strip: &mut Strip) {
        let Strip { stencil, memory: StripMemory { work, z, r, taps, u, before, q }, .. } = strip;
        let packed = &self.batch.pairs[k];
        let before = before.as_mut().filter(|_| self.network.unrolling.memory().features);
        if k == 0 {
            let range = progress.next();
            stencil.convolve(self.level, packed, z, range.clone(), work, &mut Assign(u));
            if let Some(before) = before {
                stencil.copy_numbers(range.clone(), before, range.start, u);
            }
            return;
        }
        let (r, taps) = (&mut r[slot], &mut taps[slot]);
        let step = &mut self.image_step(k, q);
        if !stencil.residual(self.level, packed, (u, available), z, step, progress, work, (taps, r)) {
            return;
        }
        let range = progress.advance(stencil.reach());
        if k + 1 == self.network.theta.len() {
            return;
        }
        let activation = &self.batch.activation[k];
        match (Clip::of(activation), before) {
            (Some(clip), None) if !cfg!(target_family = "wasm") => {
                stencil.convolve(self.level, packed, r, range, work, &mut ClipInPlace { u, clip });
            }
            (_, before) => {
                let alpha = self.network.layer_memory(k + 1).inertia;
                let inertia = before.map(|u| Replace { alpha, u });
                let epilogue = &mut InPlace { u, activation, inertia };
                stencil.convolve(self.level, packed, r, range, work, epilogue);
            }
        }
    }

    fn image_step<'a>(&self, k: usize, q: &'a mut Option<Aligned<f32>>) -> ImageStep<'a> {
        match q {
            Some(q) if self.network.bounded || self.network.unrolling.memory().images => {
                ImageStep::Forward { primal: self.network.primal(k), q }
            }
            _ => ImageStep::Nothing,
        }
    }
}

impl Strip {
    /// The strip's part of `rows` of the image, up to `beyond` rows outside the strip, as numbers of its planes, rounded
    /// outward to whole vectors.
    fn numbers(&self, rows: Range<usize>, beyond: usize) -> Range<usize> {
        let start = rows.start.max(self.rows.start.saturating_sub(beyond)).min(self.around.end);
        let end = rows.end.min(self.rows.end + beyond).max(start);
        self.stencil.numbers(start - self.around.start..end - self.around.start)
    }

    fn read(&mut self, z: &[f32], grid: Grid, columns: &Cut) {
        for (c, z) in z.chunks_exact(grid.len()).enumerate() {
            for (row, y) in self.around.clone().enumerate() {
                let z = &z[y * grid.stride()..][columns.around.clone()];
                self.memory.z[self.stencil.padded_row(c, row)..][..z.len()].copy_from_slice(z);
            }
        }
    }

    /// Writes the strip's part of what is wanted to the image, from the residual of the last layer.
    fn write(&self, grid: Grid, (rows, columns): (&Cut, &Cut), slot: usize, output: &mut [f32]) {
        let wanted = &columns.wanted;
        for y in self.rows.start.max(rows.wanted.start)..self.rows.end.min(rows.wanted.end) {
            for (c, output) in output.chunks_exact_mut(grid.len()).enumerate() {
                let r = &self.memory.r[slot][self.stencil.padded_row(c, y - self.around.start)..];
                let r = &r[wanted.start - columns.around.start..];
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
        // The border is between pairs.
        let (border, rows) = (below.rows.start, rows.next_multiple_of(2));
        send(above, below, border - rows..border, network);
        send(below, above, border..border + rows, network);
    }
}

fn send(from: &Strip, to: &mut Strip, rows: Range<usize>, network: &Network<f32>) {
    let first = rows.start - from.around.start;
    let rows = rows.start - to.around.start..rows.end - to.around.start;
    let Memory { features, images } = network.unrolling.memory();
    let (stencil, memory, source) = (&to.stencil, &mut to.memory, &from.memory);
    stencil.copy_features(rows.clone(), &mut memory.u, first, &source.u);
    if let (true, Some(to), Some(from)) = (features, &mut memory.before, &source.before) {
        stencil.copy_features(rows.clone(), to, first, from);
    }
    if let (true, Some(to), Some(from_q)) = (images, &mut memory.q, &source.q) {
        stencil.copy_images(rows, to, &from.stencil, first, from_q);
    }
}

/// `rows`, `more` rows above and below, inside `limits`.
fn widen(rows: &Range<usize>, more: usize, limits: &Range<usize>) -> Range<usize> {
    rows.start.saturating_sub(more).max(limits.start)..(rows.end + more).min(limits.end)
}
