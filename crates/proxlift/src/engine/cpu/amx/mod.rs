//! The matrix unit (AMX) of newer Intel processors: products of tiles in bfloat16, summed in single precision, at ten times
//! the rate of the vector units.
//!
//! It trains: weights, features and images are rounded to eight bits of mantissa on their way into a product, and nothing
//! else is. `choose_simd("amx")` asks for it; nothing else does, since the bits are not those of the vector units.
//!
//! A tile has 16 rows of 64 bytes. With `A` of 16 x 32 numbers row by row, and `B` of 32 x 16 numbers, two rows interleaved
//! in each of the tile's, one instruction adds `A B` to 16 x 16 sums.

mod correlate;
pub mod halves;
mod product;

pub use correlate::{Taps, correlate};
pub use product::product;

use std::arch::asm;
use std::arch::x86_64::{__m512i, _mm512_castps_si512, _mm512_loadu_ps, _mm512_permutexvar_epi16};

/// Rows of `A`, columns of `B`.
const SIDE: usize = 16;
/// Columns of `A`, rows of `B`.
const DEPTH: usize = 32;

/// A tile of bfloat16.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Tile([u16; SIDE * DEPTH]);

impl Tile {
    const ZERO: Self = Self([0; SIDE * DEPTH]);
}

/// A row of sums.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Sums([f32; SIDE]);

/// A matrix as tiles, row by row of tiles, rounded to bfloat16; zeros fill what is beyond its edges.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    tiles: Vec<Tile>,
    rows: usize,
    depth: usize,
}

impl Matrix {
    /// Packs `entry(row, k)`.
    pub fn pack(&mut self, rows: usize, depth: usize, entry: impl Fn(usize, usize) -> f32) {
        (self.rows, self.depth) = (rows, depth);
        let across = depth.div_ceil(DEPTH);
        self.tiles.clear();
        self.tiles.resize(rows.div_ceil(SIDE) * across, Tile::ZERO);
        for row in 0..rows {
            for k in 0..depth {
                let tile = &mut self.tiles[row / SIDE * across + k / DEPTH];
                tile.0[row % SIDE * DEPTH + k % DEPTH] = rounded(entry(row, k));
            }
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Tiles of a row of tiles.
    fn across(&self) -> usize {
        self.depth.div_ceil(DEPTH)
    }
}

/// The nearest number in bfloat16, that with an even last bit if two are as near.
pub fn rounded(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Where numbers of two vectors stand when they are interleaved.
const INTERLEAVED: [u16; 32] = {
    let mut places = [0; 32];
    let mut i = 0;
    while i < 32 {
        places[i] = (i / 2 + 16 * (i % 2)) as u16;
        i += 1;
    }
    places
};

/// `lower` and `upper` 16 numbers, rounded, one after the other.
/// Safety: they are there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn halves(lower: *const f32, upper: *const f32) -> __m512i {
    // SAFETY: the caller's promise; the instruction touches no memory.
    unsafe {
        let (lower, upper) = (_mm512_loadu_ps(lower), _mm512_loadu_ps(upper));
        let mut both = _mm512_castps_si512(upper);
        asm!("vcvtne2ps2bf16 {0}, {0}, {1}", inlateout(zmm_reg) both, in(zmm_reg) lower,
            options(pure, nomem, nostack, preserves_flags));
        both
    }
}

/// The same, a number of `lower` before each number of `upper`.
/// Safety: they are there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn pairs(places: __m512i, lower: *const f32, upper: *const f32) -> __m512i {
    // SAFETY: the caller's promise.
    _mm512_permutexvar_epi16(places, unsafe { halves(lower, upper) })
}

/// Two rows of tiles of `A` times two columns of tiles of `B`, `across` tiles each, all lying one after the other; the sums
/// go to `c`, whose rows are `stride` bytes apart. With `ADD`, they are added to what is there.
/// Safety: all this is there, and tiles are configured.
#[inline]
unsafe fn multiply<const ADD: bool>(
    a: [*const Tile; 2],
    b: [*const Tile; 2],
    across: usize,
    c: *mut Sums,
    stride: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        macro_rules! run {
            ($($start:literal),*) => {
                asm!(
                    $($start,)*
                    "2:",
                    "tileloadd tmm4, [{a0} + {row}]",
                    "tileloadd tmm6, [{b0} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b1} + {row}]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{a1} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    "add {a0}, 1024",
                    "add {a1}, 1024",
                    "add {b0}, 1024",
                    "add {b1}, 1024",
                    "dec {across}",
                    "jnz 2b",
                    "tilestored [{c} + {stride}], tmm0",
                    "tilestored [{c} + {stride} + 64], tmm1",
                    "tilestored [{d} + {stride}], tmm2",
                    "tilestored [{d} + {stride} + 64], tmm3",
                    a0 = inout(reg) a[0] => _,
                    a1 = inout(reg) a[1] => _,
                    b0 = inout(reg) b[0] => _,
                    b1 = inout(reg) b[1] => _,
                    across = inout(reg) across => _,
                    row = in(reg) 64_usize,
                    c = in(reg) c,
                    d = in(reg) c.byte_add(16 * stride),
                    stride = in(reg) stride,
                    options(nostack),
                )
            };
        }
        if ADD {
            run!(
                "tileloadd tmm0, [{c} + {stride}]",
                "tileloadd tmm1, [{c} + {stride} + 64]",
                "tileloadd tmm2, [{d} + {stride}]",
                "tileloadd tmm3, [{d} + {stride} + 64]"
            );
        } else {
            run!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3");
        }
    }
}

/// The same for one row of tiles of `A`, from zero.
/// Safety: as for [`multiply`].
#[inline]
unsafe fn multiply_row(a: *const Tile, b: [*const Tile; 2], across: usize, c: *mut Sums, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm4, [{a0} + {row}]",
            "tileloadd tmm6, [{b0} + {row}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{b1} + {row}]",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "add {a0}, 1024",
            "add {b0}, 1024",
            "add {b1}, 1024",
            "dec {across}",
            "jnz 2b",
            "tilestored [{c} + {stride}], tmm0",
            "tilestored [{c} + {stride} + 64], tmm1",
            a0 = inout(reg) a => _,
            b0 = inout(reg) b[0] => _,
            b1 = inout(reg) b[1] => _,
            across = inout(reg) across => _,
            row = in(reg) 64_usize,
            c = in(reg) c,
            stride = in(reg) stride,
            options(nostack),
        );
    }
}

#[cfg(test)]
#[path = "../../../../tests/unit/amx.rs"]
mod tests;
