//! A matrix as the kernels read it.

use std::ops::Range;

/// A matrix whose rows are cut into blocks of `WHOLE`, of `SMALLER` and of one row; those of a block lie interleaved.
#[derive(Clone, Debug, Default)]
pub struct Panels<const WHOLE: usize, const SMALLER: usize> {
    data: Vec<f32>,
    rows: usize,
    depth: usize,
    /// The rows at which the blocks of `WHOLE` and of `SMALLER` end.
    cuts: (usize, usize),
}

impl<const WHOLE: usize, const SMALLER: usize> Panels<WHOLE, SMALLER> {
    /// Packs `entry(row, k)`.
    pub fn pack(&mut self, rows: usize, depth: usize, entry: impl Fn(usize, usize) -> f32) {
        (self.rows, self.depth, self.cuts) = (rows, depth, cuts(rows, WHOLE, SMALLER));
        self.data.clear();
        let (whole, smaller) = self.cuts;
        let mut first = 0;
        while first < rows {
            let size = match first {
                row if row < whole => WHOLE,
                row if row < smaller => SMALLER,
                _ => 1,
            };
            for k in 0..depth {
                self.data.extend((first..first + size).map(|row| entry(row, k)));
            }
            first += size;
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    #[inline(always)]
    pub fn cuts(&self) -> (usize, usize) {
        self.cuts
    }

    /// The entries of rows that make a block.
    /// Safety: there are such rows.
    #[inline(always)]
    pub unsafe fn block(&self, rows: Range<usize>) -> &[f32] {
        debug_assert!(rows.end <= self.rows && self.data.len() == self.rows * self.depth);
        // SAFETY: all rows were packed, and the caller promises that these are among them.
        unsafe { self.data.get_unchecked(rows.start * self.depth..rows.end * self.depth) }
    }
}

/// Where blocks of `whole` and of `smaller` rows end, so that as few rows as possible are left alone: a single one takes
/// almost as long as a block.
fn cuts(rows: usize, whole: usize, smaller: usize) -> (usize, usize) {
    let most = rows / whole;
    let left = |fewer: usize| rows - (most - fewer) * whole;
    let fewer = (0..smaller.min(most + 1)).min_by_key(|&fewer| left(fewer) % smaller).unwrap_or(0);
    (rows - left(fewer), rows - left(fewer) % smaller)
}

#[cfg(test)]
#[path = "../../../tests/unit/panels.rs"]
mod tests;
