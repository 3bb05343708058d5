//! One layer on one sample: the convolution, its adjoint, and both fused into a pass that reads the features once.

use super::amx::{self, Matrix, Taps};
use super::combine::{Signed, Start, combine};
use super::epilogue::{Assign, Epilogue};
use super::product::{Place, product};
use super::unit::Unit;
use super::{correlate::correlate, image_step::ImageStep, panels::Panels};
use crate::field::{Aligned, Grid, LANES};
use crate::{network::Architecture, operator::Filters};
use fearless_simd::Level;
use std::ops::Range;

/// Bytes of features and tap planes that a pass keeps in the second-level cache.
const CACHE: usize = 320 << 10;

/// Features in single precision or in bfloat16.
#[derive(Clone, Copy)]
pub enum Features<'a> {
    Whole(&'a [f32]),
    Halved(&'a [u16]),
}

#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// A row a feature.
    convolution: Panels<6, 4>,
    /// A row a tap.
    adjoint: Panels<3, 2>,
    /// Both for the matrix unit, if it is to be used.
    tiles: Option<(Unit, Box<[Matrix; 2]>)>,
}

impl Packed {
    /// Packs `scale L` and the adjoint of `adjoint`.
    pub fn pack(&mut self, unit: Option<Unit>, theta: &Filters<f32>, scale: f32, adjoint: &Filters<f32>) {
        let (features, taps) = (theta.features(), theta.channels() * theta.size() * theta.size());
        let (weights, of_adjoint) = (theta.weights(), adjoint.weights());
        let (convolution, adjoint) = (
            |j: usize, t: usize| scale * weights[j * taps + t],
            |t: usize, j: usize| of_adjoint[j * taps + t],
        );
        match unit {
            None => {
                self.tiles = None;
                self.convolution.pack(features, taps, convolution);
                self.adjoint.pack(taps, features, adjoint);
            }
            Some(unit) => {
                let tiles = self.tiles.get_or_insert_with(|| (unit, Box::default()));
                tiles.1[0].pack(features, taps, convolution);
                tiles.1[1].pack(taps, features, adjoint);
            }
        }
    }
}

/// Where the taps of a kernel stand in the planes of a grid; sizes are in numbers, of one sample.
#[derive(Clone, Debug)]
pub struct Stencil {
    pub grid: Grid,
    pub architecture: Architecture,
    /// One at pixels, zero in the gaps.
    pub mask: Aligned<f32>,
    /// Tap `(c, t)` in padded image planes.
    pub image_offsets: Vec<usize>,
    /// The same as tiles.
    taps: Taps,
    feature_offsets: Vec<usize>,
    /// For each channel, its taps in the window of tap planes, shifted back.
    window_offsets: Vec<Signed>,
    /// Numbers per pass of the fused layer.
    chunk: usize,
}

impl Stencil {
    pub fn new(architecture: Architecture, grid: Grid) -> Self {
        let Architecture { features, kernel, channels, .. } = architecture;
        let (len, margin, stride, radius) = (grid.len(), grid.margin(), grid.stride(), kernel / 2);
        let mut mask = Aligned::zeros(len);
        for row in mask.chunks_exact_mut(stride).take(grid.height()) {
            row[..grid.width()].fill(1.0);
        }
        let taps = channels * kernel * kernel;
        let chunk = (CACHE / (4 * (features + taps))).next_multiple_of(LANES).max(2 * margin).min(len);
        let window = chunk + 2 * margin;
        let (mut image_offsets, mut window_offsets) = (Vec::new(), Vec::new());
        for c in 0..channels {
            let mut taps = Vec::new();
            for ty in 0..kernel {
                for tx in 0..kernel {
                    let plus = margin + ty * stride + tx - radius * (stride + 1);
                    let minus = margin + radius * (stride + 1) - ty * stride - tx;
                    image_offsets.push(c * (len + 2 * margin) + plus);
                    taps.push((c * kernel * kernel + ty * kernel + tx) * window + minus);
                }
            }
            window_offsets.push(Signed::plus(taps));
        }
        let feature_offsets = (0..features).map(|j| j * len).collect();
        let taps = Taps::new(&image_offsets, kernel);
        Self { grid, architecture, mask, image_offsets, taps, feature_offsets, window_offsets, chunk }
    }

    pub fn padded(&self) -> usize {
        self.grid.len() + 2 * self.grid.margin()
    }

    pub fn padded_image(&self) -> usize {
        self.architecture.channels * self.padded()
    }

    pub fn image(&self) -> usize {
        self.architecture.channels * self.grid.len()
    }

    pub fn features(&self) -> usize {
        self.architecture.features * self.grid.len()
    }

    pub fn window(&self) -> usize {
        self.image_offsets.len() * self.window_stride()
    }

    fn window_stride(&self) -> usize {
        self.chunk + 2 * self.grid.margin()
    }

    /// Copies image planes into padded ones, whose margins are zero already.
    pub fn pad(&self, image: &[f32], padded: &mut [f32]) {
        let (len, margin) = (self.grid.len(), self.grid.margin());
        for (to, from) in padded.chunks_exact_mut(self.padded()).zip(image.chunks_exact(len)) {
            to[margin..margin + len].copy_from_slice(from);
        }
    }

    pub fn unpad(&self, padded: &[f32], image: &mut [f32]) {
        let (len, margin) = (self.grid.len(), self.grid.margin());
        for (to, from) in image.chunks_exact_mut(len).zip(padded.chunks_exact(self.padded())) {
            to.copy_from_slice(&from[margin..margin + len]);
        }
    }

    /// Zeroes the gaps in `range` of all features: the kernels compute them like pixels, which is cheaper than to
    /// mask.
    pub fn clear_gaps(&self, range: &Range<usize>, features: &mut [f32]) {
        let (width, stride, height) = (self.grid.width(), self.grid.stride(), self.grid.height());
        let rows = range.start / stride..height.min(range.end.div_ceil(stride));
        for plane in features.chunks_exact_mut(self.grid.len()) {
            for y in rows.clone() {
                let end = if y + 1 == height { range.end } else { range.end.min((y + 1) * stride) };
                let start = range.start.max(y * stride + width);
                if end == start + 1 {
                    plane[start] = 0.0;
                } else if start < end {
                    plane[start..end].fill(0.0);
                }
            }
        }
    }

    /// `step` on all numbers of padded image planes.
    pub fn step_whole(&self, step: &mut ImageStep<'_>, padded: &mut [f32]) {
        let (len, margin) = (self.grid.len(), self.grid.margin());
        for (c, plane) in padded.chunks_exact_mut(self.padded()).enumerate() {
            step.chunk(c * len, &mut plane[margin..margin + len]);
        }
    }

    /// `epilogue(scale L x)` for the numbers in `range`; `x` is padded.
    pub fn convolve<E: Epilogue>(
        &self,
        level: Level,
        packed: &Packed,
        x: &[f32],
        range: Range<usize>,
        epilogue: &mut E,
    ) {
        let b = (x, self.image_offsets.as_slice());
        let place = Place { unit: self.grid.len(), shift: 0 };
        match &packed.tiles {
            Some((unit, a)) => amx::product((*unit, level), &a[0], b, range.clone(), place, epilogue),
            None => product::<E, 6, 4, 4, 2>(level, &packed.convolution, b, range.clone(), place, epilogue),
        }
        self.clear_gaps(&range, epilogue.planes());
    }

    /// `gradient[j,c,t] += scale sum_p d_j(p) x_c(p + t)`; `x` is padded.
    pub fn correlate(
        &self,
        (unit, level): (Option<Unit>, Level),
        scale: f32,
        d: Features<'_>,
        x: &[f32],
        gradient: &mut [f32],
    ) {
        let (taps, len) = (&self.taps, self.grid.len());
        match (unit, d) {
            (None, Features::Whole(d)) => correlate(level, scale, d, (x, &self.image_offsets), len, gradient),
            (Some(unit), Features::Whole(d)) => amx::correlate(unit, scale, d, (x, taps), len, gradient),
            (Some(unit), Features::Halved(d)) => amx::correlate(unit, scale, d, (x, taps), len, gradient),
            (None, Features::Halved(_)) => unreachable!("only the matrix unit keeps halves"),
        }
    }

    /// `r = L* u - z` and the image `step`, into padded planes.
    pub fn residual(
        &self,
        level: Level,
        packed: &Packed,
        (u, z): (&[f32], Option<&[f32]>),
        step: &mut ImageStep<'_>,
        window: &mut [f32],
        r: &mut [f32],
    ) {
        let len = self.grid.len();
        for start in (0..len).step_by(self.chunk) {
            let chunk = start..len.min(start + self.chunk);
            self.residual_chunk(level, packed, (u, z), step, chunk, window, r);
        }
    }

    /// The whole layer: `r = L* u - z`, the image `step`, then `epilogue(u + scale L r)`.
    ///
    /// The convolution follows the adjoint at the distance of a margin, so the features are still in the cache, and
    /// a layer may work in place: what the convolution replaces, the adjoint has read.
    #[allow(clippy::too_many_arguments)]
    pub fn layer<E: Epilogue>(
        &self,
        level: Level,
        packed: &Packed,
        z: Option<&[f32]>,
        step: &mut ImageStep<'_>,
        window: &mut [f32],
        r: &mut [f32],
        epilogue: &mut E,
    ) {
        let (len, margin, mut done) = (self.grid.len(), self.grid.margin(), 0);
        for start in (0..len).step_by(self.chunk) {
            let end = len.min(start + self.chunk);
            let u = epilogue.source().expect("a layer goes on from features");
            self.residual_chunk(level, packed, (u, z), step, start..end, window, r);
            let ready = if end == len { len } else { end.saturating_sub(margin) };
            self.convolve(level, packed, r, done..ready, epilogue);
            done = ready;
        }
    }

    /// One chunk of the residual. The window holds each tap's plane from a margin before the chunk to a margin
    /// after it; what the last chunk computed of it is moved to its front.
    #[allow(clippy::too_many_arguments)]
    fn residual_chunk(
        &self,
        level: Level,
        packed: &Packed,
        (u, z): (&[f32], Option<&[f32]>),
        step: &mut ImageStep<'_>,
        chunk: Range<usize>,
        window: &mut [f32],
        r: &mut [f32],
    ) {
        let (len, margin, stride) = (self.grid.len(), self.grid.margin(), self.window_stride());
        let fresh = if chunk.start == 0 {
            for plane in window.chunks_exact_mut(stride) {
                plane[..margin].fill(0.0);
            }
            0
        } else {
            for plane in window.chunks_exact_mut(stride) {
                plane.copy_within(self.chunk..self.chunk + 2 * margin, 0);
            }
            chunk.start + margin
        };
        let end = len.min(chunk.end + margin);
        let place = Place { unit: stride, shift: margin.wrapping_sub(chunk.start) };
        let (taps, range) = (&mut Assign(&mut *window), fresh.min(end)..end);
        let b = (u, self.feature_offsets.as_slice());
        match &packed.tiles {
            Some((unit, a)) => amx::product((*unit, level), &a[1], b, range, place, taps),
            None => product::<_, 3, 2, 4, 3>(level, &packed.adjoint, b, range, place, taps),
        }
        let after = fresh.max(end) + margin - chunk.start;
        for plane in window.chunks_exact_mut(stride) {
            plane[after..chunk.len() + 2 * margin].fill(0.0);
        }
        let mask = &self.mask[chunk.clone()];
        for (c, offsets) in self.window_offsets.iter().enumerate() {
            let z = z.map_or(Start::Zero, |z| Start::Minus(&z[c * len..][chunk.clone()]));
            let out = &mut r[c * self.padded() + margin..][chunk.clone()];
            combine(level, window, offsets, 0, z, Some(mask), out);
            step.chunk(c * len + chunk.start, out);
        }
    }
}
