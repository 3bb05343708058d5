//! The product that layers are made of, on the matrix unit: [`product`](super::super::product::product) in bfloat16.

use super::super::unit::Unit;
use super::super::{epilogue::Epilogue, product::Place};
use super::{DEPTH, INTERLEAVED, Matrix, SIDE, Sums, Tile, multiply, multiply_row, pairs};
use crate::field::LANES;
use fearless_simd::{Level, Simd, prelude::*};
use std::arch::x86_64::{_mm512_loadu_si512, _mm512_store_si512};
use std::cell::RefCell;
use std::ops::Range;

/// What a thread packs tiles into.
#[derive(Default)]
struct Work {
    /// The columns of tiles.
    b: Vec<Tile>,
    /// The sums of all rows, those of the columns side by side.
    c: Vec<Sums>,
}

/// Columns of tiles that go through the epilogue together.
const COLUMNS: usize = 4;

thread_local! {
    static WORK: RefCell<Work> = RefCell::default();
}

/// `out_m(p) = start_m(p) + sum_k A[m,k] b(offset_k + p)` for `p` in `range`, with `A` and `b` rounded.
#[inline(never)]
pub fn product<E: Epilogue>(
    (unit, level): (Unit, Level),
    a: &Matrix,
    b: (&[f32], &[usize]),
    range: Range<usize>,
    place: Place,
    epilogue: &mut E,
) {
    let largest = b.1.iter().max().copied().unwrap_or(0);
    assert!(range.len().is_multiple_of(LANES) && largest + range.end <= b.0.len());
    assert!(b.1.len() == a.depth() && a.rows() > 0 && a.rows() <= epilogue.rows());
    assert!(place.at(0, range.start) <= place.at(a.rows() - 1, range.end));
    assert!(place.at(a.rows() - 1, range.end) <= epilogue.len());
    let simd = level.as_avx512().expect("a matrix unit comes with AVX-512");
    WORK.with_borrow_mut(|work| {
        work.b.clear();
        work.b.resize(COLUMNS * a.across(), Tile::ZERO);
        work.c.resize(COLUMNS * a.rows().next_multiple_of(2 * SIDE), Sums([0.0; SIDE]));
        unit.with_tiles(|| {
            simd.vectorize(
                #[inline(always)]
                || {
                    let mut p = range.start;
                    while p < range.end {
                        // SAFETY: asserted above.
                        unsafe {
                            if p + COLUMNS * SIDE <= range.end {
                                columns::<_, E, COLUMNS>(simd, a, b, p, place, epilogue, work);
                                p += COLUMNS * SIDE;
                            } else {
                                columns::<_, E, 1>(simd, a, b, p, place, epilogue, work);
                                p += SIDE;
                            }
                        }
                    }
                },
            );
        });
    });
}

/// All rows of `N` times 16 columns.
/// Safety: everything that [`product`] asserts.
#[inline(always)]
unsafe fn columns<S: Simd, E: Epilogue, const N: usize>(
    simd: S,
    a: &Matrix,
    b: (&[f32], &[usize]),
    p: usize,
    place: Place,
    epilogue: &mut E,
    work: &mut Work,
) {
    let across = a.across();
    // SAFETY: the caller's promise; the memory has room for all tiles and sums.
    unsafe {
        for (n, tiles) in work.b.chunks_exact_mut(across).enumerate().take(N) {
            pack(b, p + n * SIDE, tiles);
        }
        for pair in (0..N).step_by(2) {
            all_rows(a, &work.b[pair * across..], &mut work.c[pair..]);
        }
        for m in 0..a.rows() {
            let mut sums = [S::f32s::splat(simd, 0.0); N];
            for (n, sum) in sums.iter_mut().enumerate() {
                let product = S::f32s::from_slice(simd, &work.c.get_unchecked(COLUMNS * m + n).0);
                *sum = product + epilogue.start(simd, place.at(m, p + n * SIDE));
            }
            epilogue.finish(simd, m, [place.at(m, p)], [sums]);
        }
        for m in 0..a.rows() {
            epilogue.after::<S, 1, N>(simd, m, [place.at(m, p)]);
        }
    }
}

/// Sixteen columns of `b` from `p` on, as tiles whose last rows are zero already.
/// Safety: all rows of `b` go that far, and the tiles are as many as they need.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pack((b, offsets): (&[f32], &[usize]), p: usize, tiles: &mut [Tile]) {
    static ZERO: [f32; SIDE] = [0.0; SIDE];
    // SAFETY: the caller's promise.
    unsafe {
        let places = _mm512_loadu_si512(INTERLEAVED.as_ptr().cast());
        let (b, mut to) = (b.as_ptr().add(p), tiles.as_mut_ptr().cast::<[u16; DEPTH]>());
        let (two, one) = offsets.as_chunks::<2>();
        for &[lower, upper] in two {
            _mm512_store_si512(to.cast(), pairs(places, b.add(lower), b.add(upper)));
            to = to.add(1);
        }
        if let [last] = one {
            _mm512_store_si512(to.cast(), pairs(places, b.add(*last), ZERO.as_ptr()));
        }
    }
}

/// `c = A B` for two columns of tiles.
/// Safety: `b` has two columns, `c` room for an even number of rows of tiles, and tiles are configured.
#[inline]
unsafe fn all_rows(a: &Matrix, b: &[Tile], c: &mut [Sums]) {
    let (across, stride) = (a.across(), COLUMNS * size_of::<Sums>());
    let down = a.rows().div_ceil(SIDE);
    // SAFETY: the caller's promise.
    unsafe {
        let b = [b.as_ptr(), b.as_ptr().add(across)];
        for m in (0..down).step_by(2) {
            let row = a.tiles.as_ptr().add(m * across);
            let c = c.as_mut_ptr().add(COLUMNS * SIDE * m);
            if m + 1 < down {
                multiply::<false>([row, row.add(across)], b, across, c, stride);
            } else {
                multiply_row(row, b, across, c, stride);
            }
        }
    }
}
