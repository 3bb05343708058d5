//! Pictures too large for the memory, in parts.
//!
//! A part sees as many pixels around it as the blur reaches, and some more, over which the estimate forgets what is beyond
//! them. What is beyond its own edges is unknown; beyond those of the picture too, unless there is the other edge. (The mirror
//! image of a blurred picture would be that of another blur.)

use super::{Border, Degradation};
use crate::Result;
use crate::image::Image;
use std::ops::Range;

/// Pixels that a part sees beyond the reach of the blur.
const AROUND: usize = 48;

/// The least side of a part.
const LEAST: usize = 128;

/// A part of a picture, in pixels of what was seen.
pub(super) struct Part {
    /// What is wanted of it.
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// The rows and columns that it sees, each by its number in the picture.
    seen: [Vec<usize>; 2],
    /// How many of these are before the wanted ones.
    before: [usize; 2],
}

/// The parts of a picture that fit a memory of `most` bytes, where a pixel of the restored one takes `bytes`: a single one if it
/// does.
pub(super) fn parts(
    degradation: &Degradation,
    border: Border,
    (height, width): (usize, usize),
    (most, bytes): (u64, u64),
) -> Vec<Part> {
    let factor = degradation.factor();
    // Even, for mosaics.
    let around = (degradation.reach() + AROUND).div_ceil(factor).next_multiple_of(2);
    let side = ((most / bytes.max(1)).isqrt() as usize / factor).saturating_sub(2 * around).max(LEAST);
    let side = side / 2 * 2;
    if height <= side + 2 * around && width <= side + 2 * around {
        let all = |length: usize| (0..length).collect();
        let (rows, columns) = (0..height, 0..width);
        return vec![Part { rows, columns, seen: [all(height), all(width)], before: [0, 0] }];
    }
    let circular = border == Border::Circular && !degradation.leaves_gaps();
    let cut = |length: usize| {
        let count = length.div_ceil(side);
        let each = length.div_ceil(count).next_multiple_of(2);
        let spans = (0..length).step_by(each).map(move |start| start..(start + each).min(length));
        spans
            .map(move |span| (span.clone(), around_span(&span, length, around, circular)))
            .collect::<Vec<_>>()
    };
    let (rows, columns) = (cut(height), cut(width));
    let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
    let part = |((rows, seen_rows), (columns, seen_columns)): (&Span, &Span)| Part {
        rows: rows.clone(),
        columns: columns.clone(),
        seen: [seen_rows.0.clone(), seen_columns.0.clone()],
        before: [seen_rows.1, seen_columns.1],
    };
    pairs.map(part).collect()
}

/// Pixels that are wanted; those that are seen, and how many of these are before the wanted ones.
type Span = (Range<usize>, (Vec<usize>, usize));

fn around_span(span: &Range<usize>, length: usize, around: usize, circular: bool) -> (Vec<usize>, usize) {
    if !circular {
        let start = span.start.saturating_sub(around);
        return ((start..(span.end + around).min(length)).collect(), span.start - start);
    }
    let first = span.start + length * around.div_ceil(length) - around;
    ((first..first + span.len() + 2 * around).map(|i| i % length).collect(), around)
}

impl Part {
    /// What it sees of a picture.
    pub fn of(&self, picture: &Image) -> Result<Image> {
        let [rows, columns] = &self.seen;
        let mut data = Vec::with_capacity(picture.channels() * rows.len() * columns.len());
        for c in 0..picture.channels() {
            let plane = picture.plane(c);
            for row in rows {
                let row = &plane[row * picture.width()..][..picture.width()];
                data.extend(columns.iter().map(|x| row[*x]));
            }
        }
        Image::new(picture.channels(), rows.len(), columns.len(), data)
    }

    /// What was done to it.
    pub fn degradation(&self, whole: &Degradation) -> Degradation {
        let Degradation::Missing { known, size } = whole else { return whole.clone() };
        let [rows, columns] = &self.seen;
        let of = rows.iter().flat_map(|y| columns.iter().map(move |x| known[y * size.1 + x]));
        Degradation::Missing { known: of.collect(), size: (rows.len(), columns.len()) }
    }

    /// The wanted pixels of its estimate, which has `factor` times as many rows and columns, into that of the picture.
    pub fn put(&self, estimate: &Image, factor: usize, whole: &mut Image) {
        let [top, left] = self.before.map(|n| factor * n);
        let (high, wide) = (factor * self.rows.len(), factor * self.columns.len());
        let wanted = estimate.crop(top..top + high, left..left + wide);
        whole.put((factor * self.rows.start, factor * self.columns.start), &wanted);
    }
}
