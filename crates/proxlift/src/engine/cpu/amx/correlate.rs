//! The weight gradients on the matrix unit: [`correlate`](super::super::correlate::correlate) in bfloat16.

use super::super::unit::Unit;
use super::{DEPTH, INTERLEAVED, SIDE, Sums, Tile, halves, multiply, pairs};
use crate::field::LANES;
use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_setzero_si512, _mm512_store_si512,
    _mm512_storeu_si512,
};
use std::cell::RefCell;
use std::ops::Range;

/// Pixels whose tiles are in the cache together.
const CHUNK: usize = 512;

/// The taps of a kernel as columns of tiles: runs of neighbours in a row of the image, as many as fit a tile side by side.
#[derive(Clone, Debug)]
pub struct Taps {
    /// Of each tile: where its runs start in the padded image.
    tiles: Vec<Vec<usize>>,
    /// Of every run in a tile: which of what is there already stays, and where the new ones come from.
    joins: Vec<[u32; SIDE]>,
    /// Taps of a run.
    run: usize,
    largest: usize,
}

impl Taps {
    /// Taps at `offsets`, in runs of `run` neighbours.
    pub fn new(offsets: &[usize], run: usize) -> Self {
        let runs: Vec<usize> = offsets.iter().step_by(run).copied().collect();
        let together = (SIDE / run).max(1);
        let join = |i: usize| {
            std::array::from_fn(|column| match column.checked_sub(i * run) {
                Some(from) if from < run => (SIDE + from) as u32,
                _ => column as u32,
            })
        };
        Self {
            tiles: runs.chunks(together).map(<[usize]>::to_vec).collect(),
            joins: (0..together).map(join).collect(),
            run,
            largest: offsets.iter().max().copied().unwrap_or(0),
        }
    }
}

/// What a thread packs tiles into.
#[derive(Default)]
struct Work {
    a: Vec<Tile>,
    b: Vec<Tile>,
    /// Neighbours in the image, in pairs.
    pairs: Vec<u32>,
    c: Vec<Sums>,
}

thread_local! {
    static WORK: RefCell<Work> = RefCell::default();
}

/// `gradient[j,t] += scale sum_p d_j(p) x(offset_t + p)` over a plane of `len` numbers, with `d` and `x` rounded.
#[inline(never)]
pub fn correlate<D: Planes>(
    unit: Unit,
    scale: f32,
    d: D,
    (x, taps): (&[f32], &Taps),
    len: usize,
    gradient: &mut [f32],
) {
    assert!(len.is_multiple_of(LANES) && taps.largest + len <= x.len() && taps.run <= SIDE);
    let features = d.numbers() / len;
    let (down, columns) = (features.div_ceil(SIDE).next_multiple_of(2), taps.tiles.len().next_multiple_of(2));
    let across = len.min(CHUNK).div_ceil(DEPTH);
    WORK.with_borrow_mut(|Work { a, b, pairs, c }| {
        a.clear();
        a.resize(down * across, Tile::ZERO);
        b.clear();
        b.resize(columns * across, Tile::ZERO);
        c.clear();
        c.resize(down * SIDE * columns, Sums([0.0; SIDE]));
        // SAFETY: the processor has these instructions, and `pairs` gets room beyond the last.
        unsafe { pack_pairs(x, pairs) };
        unit.with_tiles(|| {
            for start in (0..len).step_by(CHUNK) {
                let pixels = (len - start).min(CHUNK);
                let used = pixels.div_ceil(DEPTH);
                // SAFETY: asserted above; all rows have so many numbers, and the tiles room for them.
                unsafe {
                    for j in 0..features {
                        let row = &mut a[j / SIDE * across..][..used];
                        d.pack_row(j * len + start..j * len + start + pixels, j % SIDE, row);
                    }
                    for (tiles, runs) in b.chunks_exact_mut(across).zip(&taps.tiles) {
                        pack_columns(&pairs[start..], runs, &taps.joins, &mut tiles[..used]);
                    }
                    add_products(a, b, (down, columns, across, used), c);
                }
            }
        });
        let all = taps.tiles.iter().map(Vec::len).sum::<usize>() * taps.run;
        for (j, gradient) in gradient.chunks_exact_mut(all).enumerate().take(features) {
            let row = &c[j * columns..][..columns];
            let mut to = gradient.iter_mut();
            for (sums, runs) in row.iter().zip(&taps.tiles) {
                to.by_ref().zip(&sums.0[..runs.len() * taps.run]).for_each(|(g, sum)| *g += scale * sum);
            }
        }
    });
}

/// Each number of `x` with its right neighbour, and a tile's depth of zeros after the last.
/// Safety: the processor has AVX-512 with bfloat16.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack_pairs(x: &[f32], to: &mut Vec<u32>) {
    to.clear();
    to.resize(x.len() + 2 * DEPTH, 0);
    let whole = x.len().saturating_sub(1) / SIDE * SIDE;
    // SAFETY: the last vector of neighbours ends with the last number.
    unsafe {
        let places = _mm512_loadu_si512(INTERLEAVED.as_ptr().cast());
        for i in (0..whole).step_by(SIDE) {
            let two = pairs(places, x.as_ptr().add(i), x.as_ptr().add(i + 1));
            _mm512_storeu_si512(to.as_mut_ptr().add(i).cast(), two);
        }
    }
    for i in whole..x.len() {
        let right = x.get(i + 1).map_or(0, |&x| super::rounded(x));
        to[i] = u32::from(super::rounded(x[i])) | u32::from(right) << 16;
    }
}

/// Features, one plane after the other.
pub trait Planes {
    fn numbers(&self) -> usize;

    /// The numbers in `range` as row `row` of tiles one after the other, with zeros after its end.
    /// Safety: the numbers are there, a multiple of 16, and the tiles have room for them.
    unsafe fn pack_row(&self, range: Range<usize>, row: usize, tiles: &mut [Tile]);
}

impl Planes for &[f32] {
    fn numbers(&self) -> usize {
        self.len()
    }

    unsafe fn pack_row(&self, range: Range<usize>, row: usize, tiles: &mut [Tile]) {
        // SAFETY: the caller's promise.
        unsafe { round_row(self.get_unchecked(range), row, tiles) };
    }
}

/// Planes that are rounded already.
impl Planes for &[u16] {
    fn numbers(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn pack_row(&self, range: Range<usize>, row: usize, tiles: &mut [Tile]) {
        // SAFETY: the caller's promise.
        let from = unsafe { self.get_unchecked(range) };
        let (whole, rest) = from.as_chunks::<DEPTH>();
        for (tile, from) in tiles.iter_mut().zip(whole) {
            tile.0[row * DEPTH..][..DEPTH].copy_from_slice(from);
        }
        if let Some(last) = tiles.get_mut(whole.len()) {
            let to = &mut last.0[row * DEPTH..][..DEPTH];
            to[..rest.len()].copy_from_slice(rest);
            to[rest.len()..].fill(0);
        }
    }
}

/// `plane` as row `row` of tiles.
/// Safety: as for [`Planes::pack_row`].
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn round_row(plane: &[f32], row: usize, tiles: &mut [Tile]) {
    static ZERO: [f32; SIDE] = [0.0; SIDE];
    // SAFETY: the caller's promise.
    unsafe {
        for (tile, from) in tiles.iter_mut().zip(plane.chunks(DEPTH)) {
            let upper = if from.len() == DEPTH { from.as_ptr().add(SIDE) } else { ZERO.as_ptr() };
            let to = tile.0.as_mut_ptr().add(row * DEPTH);
            _mm512_store_si512(to.cast(), halves(from.as_ptr(), upper));
        }
    }
}

/// The taps of `runs` at all pixels of the tiles: a row for two pixels.
/// Safety: there are pairs at all of them.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack_columns(pairs: &[u32], runs: &[usize], joins: &[[u32; SIDE]], tiles: &mut [Tile]) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut places = [_mm512_setzero_si512(); SIDE];
        for (to, join) in places.iter_mut().zip(joins) {
            *to = _mm512_loadu_si512(join.as_ptr().cast());
        }
        let (first, others) = runs.split_first().expect("a tile has a run");
        for (i, tile) in tiles.iter_mut().enumerate() {
            let pixel = pairs.as_ptr().add(i * DEPTH);
            let to = tile.0.as_mut_ptr();
            for row in 0..SIDE {
                let at = |run: usize| -> __m512i { _mm512_loadu_si512(pixel.add(2 * row + run).cast()) };
                let mut taps = at(*first);
                for (&run, &places) in others.iter().zip(&places[1..]) {
                    taps = _mm512_permutex2var_epi32(taps, places, at(run));
                }
                _mm512_store_si512(to.add(row * DEPTH).cast(), taps);
            }
        }
    }
}

/// `c += A B` for `down` times `columns` tiles, the first `used` of `across` each.
/// Safety: there are so many, both even, and tiles are configured.
unsafe fn add_products(
    a: &[Tile],
    b: &[Tile],
    (down, columns, across, used): (usize, usize, usize, usize),
    c: &mut [Sums],
) {
    let stride = columns * size_of::<Sums>();
    // SAFETY: the caller's promise.
    unsafe {
        for m in (0..down).step_by(2) {
            let row = a.as_ptr().add(m * across);
            for n in (0..columns).step_by(2) {
                let column = b.as_ptr().add(n * across);
                let c = c.as_mut_ptr().add(m * SIDE * columns + n);
                multiply::<true>([row, row.add(across)], [column, column.add(across)], used, c, stride);
            }
        }
    }
}
