//! Large images in tiles: rectangles that, with all that they see around them, fit the memory.
//!
//! What a tile sees is computed again in its neighbours, so tiles are as large as the memory allows, but no wider than
//! suits the cache: the kernels keep some rows of every tap in it. All tiles of an image have the same size with what
//! is around them; those at the border want more of it.

use crate::network::Architecture;
use std::ops::Range;

/// Bytes that a tile takes, unless the network sees too far for that.
pub const TILE_BYTES: usize = 256 << 20;

/// Planes of a channel that a tile takes besides its features: the noisy and the denoised one and copies of both, the
/// padded one, and what the layers that go through it together have and remember.
const IMAGE_PLANES: usize = 10;

/// Bytes of features and taps in the rows that a kernel reaches over: wider tiles run slower, by a third at ten times
/// as many.
const REACH_BYTES: usize = 640 << 10;

/// Rows or columns of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Those that it computes.
    pub wanted: Range<usize>,
    /// Those that it sees: the receptive radius more on each side, where the image has them, and in rows one more.
    pub around: Range<usize>,
}

impl Cut {
    /// The same rows or columns, so many times finer.
    #[must_use]
    pub fn times(&self, factor: usize) -> Self {
        let finer = |range: &Range<usize>| range.start * factor..range.end * factor;
        Self { wanted: finer(&self.wanted), around: finer(&self.around) }
    }
}

/// An image cut into tiles, a rectangle of rows and columns each.
///
/// ```
/// use proxlift::engine::{Cpu, Engine};
/// # use proxlift::{image::Channels, model::BuiltIn};
/// let architecture = BuiltIn::Best.model(Channels::Rgb).network.architecture();
/// let tiles = Cpu::new().tile_bytes(64 << 20).tiles(architecture, 4000, 6000);
/// let pixels: usize = tiles.iter().map(|(rows, columns)| rows.wanted.len() * columns.wanted.len()).sum();
/// assert_eq!(pixels, 4000 * 6000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Ranges of rows, from the top: a tile is one of them in one of the ranges of columns.
    pub rows: Vec<Cut>,
    /// Ranges of columns, from the left.
    pub columns: Vec<Cut>,
}

impl Tiles {
    /// One tile: the whole image.
    pub fn whole(height: usize, width: usize) -> Self {
        Self { rows: cuts(height, height, 0), columns: cuts(width, width, 0) }
    }

    /// Cuts an image so that a tile takes about `bytes`.
    ///
    /// A tile is never narrower than four times the receptive radius, or it would compute more for its neighbours than
    /// for itself: networks that see very far may take more.
    pub fn new(architecture: Architecture, height: usize, width: usize, bytes: usize) -> Self {
        let Architecture { features, kernel, channels, .. } = architecture;
        let reach = architecture.plane_radius();
        let least = 4 * reach.max(2);
        let side = (bytes / (size_of::<f32>() * (features + channels * IMAGE_PLANES))).isqrt().max(least);
        let per_column = 2 * (kernel / 2).max(1) * size_of::<f32>() * (features + channels * kernel * kernel);
        let across = (REACH_BYTES / per_column).max(2 * least).min(side);
        let columns = cuts(width, if 2 * width <= 3 * across { width } else { across }, reach);
        // One more row, so that pairs of rows can begin at an even or an odd one.
        let rows = cuts(height, (side * side / columns[0].around.len()).max(least), reach + 1);
        Self { rows, columns }
    }

    /// About how many bytes the largest tile takes.
    pub fn bytes(&self, architecture: Architecture) -> u64 {
        let longest = |cuts: &[Cut]| cuts.iter().map(|cut| cut.around.len()).max().unwrap_or(0) as u64;
        let planes = (architecture.features + architecture.channels * IMAGE_PLANES) as u64;
        size_of::<f32>() as u64 * planes * longest(&self.rows) * longest(&self.columns)
    }

    /// The pixels of all tiles, with what they see.
    pub fn pixels(&self) -> u64 {
        let all = |cuts: &[Cut]| cuts.iter().map(|cut| cut.around.len() as u64).sum::<u64>();
        all(&self.rows) * all(&self.columns)
    }

    /// The number of tiles.
    pub fn count(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// All tiles, row after row.
    pub fn iter(&self) -> impl Iterator<Item = (&Cut, &Cut)> {
        self.rows.iter().flat_map(|rows| self.columns.iter().map(move |columns| (rows, columns)))
    }
}

/// Cuts `0..length` so that a tile, with `reach` more on both sides, has at most `most`; all tiles see equally much, from
/// an even place on.
fn cuts(length: usize, most: usize, reach: usize) -> Vec<Cut> {
    if length <= most {
        return vec![Cut { wanted: 0..length, around: 0..length }];
    }
    let inside = length - 2 * reach;
    let room = (most - 2 * reach - 1) / 2 * 2;
    let count = inside.div_ceil(room);
    let step = inside.div_ceil(count).next_multiple_of(2);
    let odd = (inside - step) % 2;
    let cut = |i: usize| {
        let start = (i * step).min(inside - step - odd);
        let first = if i == 0 { 0 } else { i * step + reach };
        let end = if i + 1 == count { length } else { (i + 1) * step + reach };
        Cut { wanted: first..end, around: start..start + step + odd + 2 * reach }
    };
    (0..count).map(cut).collect()
}
