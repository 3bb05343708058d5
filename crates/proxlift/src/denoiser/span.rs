//! Where a tile lies in its picture.

use crate::engine::Cut;
use std::ops::Range;

/// A part of a picture that can be denoised by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Its rows.
    pub rows: Span,
    /// Its columns.
    pub columns: Span,
}

/// Rows or columns of a tile, as those of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Those that the tile computes.
    pub wanted: Range<usize>,
    /// Those that it sees.
    pub seen: Range<usize>,
    /// How many mirrored ones it sees before and after them.
    pub(super) mirrored: (usize, usize),
}

impl Span {
    /// All of them.
    pub(super) fn whole(length: usize) -> Self {
        Self { wanted: 0..length, seen: 0..length, mirrored: (0, 0) }
    }

    /// Of a picture with `length` rows or columns, that the network is given with a `border` on both sides.
    pub(super) fn new(cut: &Cut, length: usize, border: usize) -> Self {
        let inside = |range: &Range<usize>| {
            range.start.saturating_sub(border)..(range.end.saturating_sub(border)).min(length)
        };
        let before = border.saturating_sub(cut.around.start);
        let after = cut.around.end.saturating_sub(border + length);
        Self { wanted: inside(&cut.wanted), seen: inside(&cut.around), mirrored: (before, after) }
    }

    /// The wanted ones, counted from the first that the tile sees, mirrored ones included.
    pub(super) fn inside(&self) -> Range<usize> {
        let start = self.mirrored.0 + self.wanted.start - self.seen.start;
        start..start + self.wanted.len()
    }
}
