//! One layer on one strip of an image, in pairs of rows: the convolution, its adjoint, and both fused into a pass that
//! reads the features once.

use super::convolve::{Combined, convolve};
use super::progress::Progress;
use super::{PLANE, POINTS, Packed, SIDE, STRETCH, Term, UNIT, adjoint::adjoint, terms, unit};
use crate::engine::cpu::combine::{Signed, Start, combine, combine_planes};
use crate::engine::cpu::epilogue::Epilogue;
use crate::engine::cpu::image_step::ImageStep;
use crate::engine::cpu::product::Place;
use crate::field::{Aligned, Grid, LANES};
use crate::network::Architecture;
use fearless_simd::Level;
use std::ops::Range;

/// Taps in a plane that the next stretch needs again.
const KEPT: usize = 2 * SIDE;

/// Where rows and taps stand in the planes of even and odd rows; sizes are in numbers, of one strip.
#[derive(Clone, Debug)]
pub struct Stencil {
    pub grid: Grid,
    /// A plane of every other row.
    pub half: Grid,
    pub architecture: Architecture,
    /// Numbers that rows reach up or down, and taps to a side.
    margin: usize,
    /// For each term and channel, the rows of padded image planes that it combines.
    combinations: Vec<Signed>,
    counts: [usize; POINTS.len()],
    /// For each term and channel, its taps in their planes, shifted back.
    shifted: Vec<Signed>,
    /// For each image plane, what goes to it, the rows furthest down first.
    routes: Vec<Vec<Route>>,
}

/// The terms of a pair that go to the row `shift` numbers away.
#[derive(Clone, Debug)]
struct Route {
    shift: isize,
    terms: Signed,
}

pub struct Work {
    /// The taps of a stretch, and a side before and after it.
    taps: Aligned<f32>,
    /// The terms' sums over their taps.
    sums: Aligned<f32>,
    /// The combined rows of a stretch, and a side before and after it.
    combined: Aligned<f32>,
}

impl Stencil {
    pub fn new(architecture: Architecture, grid: Grid) -> Self {
        let Architecture { kernel, channels, .. } = architecture;
        let half = Grid::new(grid.height().div_ceil(2), grid.width(), grid.gap()).expect("it has a row");
        let (len, stride, radius) = (half.len(), half.stride(), kernel / 2);
        let margin = (radius.div_ceil(2) * stride + SIDE).next_multiple_of(LANES);
        let padded = len + 2 * margin;
        let terms = terms(kernel);
        // Row `i` of what a pair sees is in the plane of even or odd rows, some rows up or down.
        let place = |row: usize| {
            let row = row as isize - radius as isize;
            (row.rem_euclid(2) as usize, row.div_euclid(2) * stride as isize)
        };
        let mut combinations = Vec::new();
        let mut routes = vec![Vec::<Route>::new(); 2 * channels];
        for (i, term) in terms.iter().enumerate() {
            for c in 0..channels {
                let mut rows = Signed::default();
                for (row, sign) in term.image_rows() {
                    let (odd, shift) = place(row);
                    let plane = 2 * c + odd;
                    rows.add(sign, plane * padded + (margin - SIDE).wrapping_add_signed(shift));
                    let routes = &mut routes[plane];
                    let index = routes.iter().position(|route| route.shift == shift).unwrap_or_else(|| {
                        routes.push(Route { shift, terms: Signed::default() });
                        routes.len() - 1
                    });
                    routes[index].terms.add(sign, (i * channels + c) * STRETCH);
                }
                combinations.push(rows);
            }
        }
        routes.iter_mut().for_each(|routes| routes.sort_by_key(|route| -route.shift));
        let counts = POINTS.map(|point| {
            let of_point = |term: &&Term| term.point == point;
            terms.iter().filter(of_point).count() * channels
        });
        let taps = |plane: usize| (0..kernel).map(move |tx| (plane + tx) * PLANE + SIDE + radius - tx);
        let shifted = (0..combinations.len()).map(|i| Signed::plus(taps(i * kernel).collect())).collect();
        Self { grid, half, architecture, margin, combinations, counts, shifted, routes }
    }

    pub fn work(&self) -> Work {
        let planes = self.combinations.len();
        Work {
            taps: Aligned::zeros(planes * self.architecture.kernel * PLANE),
            sums: Aligned::zeros(planes * STRETCH),
            combined: Aligned::zeros(planes * PLANE),
        }
    }

    /// Numbers of the taps that a pass keeps from one stretch to the next.
    pub fn kept(&self) -> usize {
        self.combinations.len() * self.architecture.kernel * KEPT
    }

    /// Numbers by which a convolution follows the products of the adjoint before it.
    pub fn reach(&self) -> usize {
        (self.architecture.kernel / 2 * self.half.stride() + SIDE).next_multiple_of(LANES)
    }

    fn padded(&self) -> usize {
        self.half.len() + 2 * self.margin
    }

    pub fn padded_image(&self) -> usize {
        self.routes.len() * self.padded()
    }

    pub fn image(&self) -> usize {
        self.routes.len() * self.half.len()
    }

    pub fn features(&self) -> usize {
        2 * self.architecture.features * self.half.len().next_multiple_of(UNIT)
    }

    /// Where row `y` of channel `c` begins in padded image planes.
    pub fn padded_row(&self, c: usize, y: usize) -> usize {
        (2 * c + y % 2) * self.padded() + self.margin + y / 2 * self.half.stride()
    }

    /// The numbers of the pairs that `rows` are in, rounded outward to whole vectors.
    pub fn numbers(&self, rows: Range<usize>) -> Range<usize> {
        let stride = self.half.stride();
        let (start, end) = (rows.start / 2 * stride, rows.end.div_ceil(2) * stride);
        start - start % LANES..end.next_multiple_of(LANES)
    }

    /// Copies features to the numbers `to` from those from `from` on.
    pub fn copy_numbers(&self, to: Range<usize>, features: &mut [f32], from: usize, source: &[f32]) {
        let planes = 2 * self.architecture.features;
        let mut done = 0;
        while done < to.len() {
            let (here, there) = (unit(planes, to.start + done), unit(planes, from + done));
            let count = here.1.min(there.1).min(to.len() - done);
            for plane in 0..planes {
                let source = &source[there.0 + plane * UNIT..][..count];
                features[here.0 + plane * UNIT..][..count].copy_from_slice(source);
            }
            done += count;
        }
    }

    /// Copies the features of `rows`, whole pairs, from planes that begin elsewhere: there, they are the rows from
    /// `first` on.
    pub fn copy_features(&self, rows: Range<usize>, features: &mut [f32], first: usize, source: &[f32]) {
        let stride = self.half.stride();
        let to = rows.start / 2 * stride..rows.end.div_ceil(2) * stride;
        self.copy_numbers(to, features, first / 2 * stride, source);
    }

    /// The same for image planes.
    pub fn copy_images(
        &self,
        rows: Range<usize>,
        images: &mut [f32],
        other: &Self,
        first: usize,
        source: &[f32],
    ) {
        let stride = self.half.stride();
        let (to, from) = (rows.start / 2 * stride..rows.end.div_ceil(2) * stride, first / 2 * stride);
        let planes = images.chunks_exact_mut(self.half.len()).zip(source.chunks_exact(other.half.len()));
        planes.for_each(|(image, source)| image[to.clone()].copy_from_slice(&source[from..from + to.len()]));
    }

    /// Zeroes the gaps in `range` of all features, and the odd row that the last pair may lack: the kernels compute
    /// them like pixels, which is cheaper than to mask.
    fn clear_gaps(&self, range: &Range<usize>, features: &mut [f32]) {
        let planes = 2 * self.architecture.features;
        for odd in 0..2 {
            self.gaps(range.clone(), odd, |gap| {
                for p in gap {
                    let first = unit(planes, p).0 + odd * UNIT;
                    let rows = features[first..first + (planes - 2) * UNIT + 1].iter_mut();
                    rows.step_by(2 * UNIT).for_each(|number| *number = 0.0);
                }
            });
        }
    }

    /// `epilogue(start + scale L x)` for the numbers in `range`; `x` is padded.
    pub fn convolve<E: Epilogue>(
        &self,
        level: Level,
        packed: &Packed,
        x: &[f32],
        range: Range<usize>,
        work: &mut Work,
        epilogue: &mut E,
    ) {
        for start in range.clone().step_by(STRETCH) {
            let stretch = start..range.end.min(start + STRETCH);
            let combined = (&mut *work.combined, PLANE);
            combine_planes(level, x, &self.combinations, start, combined, stretch.len() + 2 * SIDE);
            let (a, planes, kernel) = (&packed.convolution, self.counts, self.architecture.kernel);
            let combined = Combined { data: &work.combined, planes, kernel };
            convolve(level, a, combined, stretch, epilogue);
        }
        self.clear_gaps(&range, epilogue.planes());
    }

    /// One stretch of `r = L* u - z`, and the image `step`, if enough of `u` is `available`; whether it was. `z` and
    /// `r` are padded.
    #[allow(clippy::too_many_arguments)]
    pub fn residual(
        &self,
        level: Level,
        packed: &Packed,
        (u, available): (&[f32], usize),
        z: &[f32],
        step: &mut ImageStep<'_>,
        progress: &mut Progress,
        work: &mut Work,
        (kept, r): (&mut [f32], &mut [f32]),
    ) -> bool {
        let (start, len) = (progress.taken, self.half.len());
        // Where the kernel of the adjoint need not cut its register blocks.
        let end = progress.end.min((start + STRETCH + SIDE) / UNIT * UNIT - SIDE);
        if start == end || available < len.min(end + SIDE) {
            return false;
        }
        if !progress.follows {
            self.begin(start, z, r);
        }
        self.taps(level, packed, u, start..end, progress.follows, work, kept);
        (progress.taken, progress.follows) = (end, true);
        combine_planes(level, &work.taps, &self.shifted, 0, (&mut work.sums, STRETCH), end - start);
        for (i, routes) in self.routes.iter().enumerate() {
            for (route, Route { shift, terms }) in routes.iter().enumerate() {
                let at = (self.margin + start).wrapping_add_signed(*shift);
                let place = i * self.padded() + at..i * self.padded() + at + (end - start);
                let first = if route == 0 { Start::Minus(&z[place.clone()]) } else { Start::Out };
                combine(level, &work.sums, terms, 0, first, None, &mut r[place]);
                if route + 1 == routes.len() {
                    self.complete(i, at..at + (end - start), step, r);
                }
            }
        }
        if end == len {
            self.flush(step, r);
        }
        true
    }

    /// The rows of the residual that nothing above the first pair goes to.
    fn begin(&self, start: usize, z: &[f32], r: &mut [f32]) {
        for (i, routes) in self.routes.iter().enumerate() {
            let at = i * self.padded() + self.margin + start;
            let place = at..at + routes[0].shift.max(0) as usize;
            r[place.clone()].iter_mut().zip(&z[place]).for_each(|(r, z)| *r = -z);
        }
    }

    /// The rows of the residual that wait for something below the last pair, and the margin.
    fn flush(&self, step: &mut ImageStep<'_>, r: &mut [f32]) {
        for (i, routes) in self.routes.iter().enumerate() {
            let at = |shift: isize| (self.margin + self.half.len()).wrapping_add_signed(shift);
            self.complete(i, at(routes[routes.len() - 1].shift)..at(routes[0].shift.max(0)), step, r);
        }
    }

    /// Numbers of padded plane `i` to which all was added: what is no pixel becomes zero, then comes the image step.
    fn complete(&self, i: usize, place: Range<usize>, step: &mut ImageStep<'_>, r: &mut [f32]) {
        let (margin, end) = (self.margin, self.margin + self.half.len());
        let plane = &mut r[i * self.padded()..][..self.padded()];
        plane[place.start.min(margin)..place.end.min(margin)].fill(0.0);
        plane[place.start.max(end)..place.end.max(end)].fill(0.0);
        let pixels = place.start.clamp(margin, end)..place.end.clamp(margin, end);
        self.gaps(pixels.start - margin..pixels.end - margin, i % 2, |gap| {
            plane[margin + gap.start..margin + gap.end].fill(0.0);
        });
        step.chunk(i * self.half.len() + pixels.start - margin, &mut plane[pixels]);
    }

    /// The numbers in `range` of a plane of even or odd rows that are no pixels.
    fn gaps(&self, range: Range<usize>, odd: usize, mut clear: impl FnMut(Range<usize>)) {
        let (width, stride) = (self.grid.width(), self.half.stride());
        for y in range.start / stride..range.end.div_ceil(stride) {
            let pixels = if 2 * y + odd < self.grid.height() { width } else { 0 };
            let gap = range.start.max(y * stride + pixels)..range.end.min((y + 1) * stride);
            if !gap.is_empty() {
                clear(gap);
            }
        }
    }

    /// The taps of a stretch and of a side before and after it; the first of them are those `kept` if it follows another.
    #[allow(clippy::too_many_arguments)]
    fn taps(
        &self,
        level: Level,
        packed: &Packed,
        u: &[f32],
        stretch: Range<usize>,
        follows: bool,
        work: &mut Work,
        kept: &mut [f32],
    ) {
        let len = self.half.len();
        let fresh = if follows {
            for (plane, kept) in work.taps.chunks_exact_mut(PLANE).zip(kept.chunks_exact(KEPT)) {
                plane[..KEPT].copy_from_slice(kept);
            }
            stretch.start + SIDE
        } else {
            for plane in work.taps.chunks_exact_mut(PLANE) {
                plane[..SIDE.saturating_sub(stretch.start)].fill(0.0);
            }
            stretch.start.saturating_sub(SIDE)
        };
        let end = len.min(stretch.end + SIDE);
        let place = Place { unit: PLANE, shift: SIDE.wrapping_sub(stretch.start) };
        adjoint(level, &packed.adjoint, u, fresh.min(end)..end, (&mut work.taps, place));
        for (plane, kept) in work.taps.chunks_exact_mut(PLANE).zip(kept.chunks_exact_mut(KEPT)) {
            if end < stretch.end + SIDE {
                plane[fresh.max(end) + SIDE - stretch.start..stretch.len() + KEPT].fill(0.0);
            }
            kept.copy_from_slice(&plane[stretch.len()..stretch.len() + KEPT]);
        }
    }
}
