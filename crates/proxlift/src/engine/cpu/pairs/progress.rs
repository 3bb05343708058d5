//! The course of a layer through a strip.

use super::{STRETCH, UNIT};
use std::ops::Range;

/// How far a layer has come through a strip.
#[derive(Clone, Debug)]
pub struct Progress {
    range: Range<usize>,
    /// Numbers whose products were taken, and are to be.
    pub taken: usize,
    pub end: usize,
    /// Whether the taps before these are kept.
    pub follows: bool,
    /// Numbers up to which the layer's features are computed.
    done: usize,
}

impl Progress {
    /// A pass over planes of `len` numbers that will take what it needs for `range`: `reach` more on both sides.
    pub fn new(range: Range<usize>, reach: usize, len: usize) -> Self {
        let (taken, end) = (range.start.saturating_sub(reach), len.min(range.end + reach));
        Self { taken, end, follows: false, done: range.start, range }
    }

    pub fn finished(&self) -> bool {
        self.taken == self.end && self.done == self.range.end
    }

    /// The numbers of features that are final, of so many.
    pub fn available(&self, len: usize) -> usize {
        if self.done == self.range.end { len } else { self.done }
    }

    /// The next stretch of a pass that takes nothing.
    pub fn next(&mut self) -> Range<usize> {
        let end = self.range.end.min(self.done + STRETCH);
        self.taken = self.end;
        std::mem::replace(&mut self.done, end)..end
    }

    /// What can be convolved of a residual that is `reach` numbers behind what was taken; it is taken as done.
    pub fn advance(&mut self, reach: usize) -> Range<usize> {
        // Where the kernel of the convolution need not cut its register blocks.
        let ready = (self.taken.saturating_sub(reach) / UNIT * UNIT).min(self.range.end);
        let ready = if self.taken == self.end { self.range.end } else { ready.max(self.done) };
        std::mem::replace(&mut self.done, ready)..ready
    }
}
