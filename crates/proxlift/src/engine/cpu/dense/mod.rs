//! The kernels of dense layers, which read and write matrices row by row, as they are kept.
//!
//! An entry of a product is the same sum in the same order, wherever it stands and whoever computes it, so neither blocks nor
//! threads change a bit. Where shapes suit them, they are the products of [`crate::matrix`] in single precision.

mod descend;
mod gemm;
mod product;
mod rows;
mod update;

pub(crate) use descend::{Weights, descend};
pub(crate) use gemm::gemm;
pub(crate) use product::{Strided, product};
pub(crate) use rows::{ByRows, product_of_rows};
pub(crate) use update::Update;

pub(crate) use super::vectors::{prefetch_at, prefetch_to_write};

use super::level::{self, dispatch};
use fearless_simd::{Level, Simd, prelude::*};

/// Vectors side by side in a panel.
const VECTORS: usize = 2;

/// Every kernel works on whole vectors of any instruction set when rows are this wide, or a multiple.
pub(crate) const PADDING: usize = 16;

/// The instruction set that the kernels use.
pub(crate) fn level() -> Level {
    level::chosen()
}

/// `f`, compiled for the instruction set: for loops that the compiler vectorises, where all of `f` is inlined.
#[inline(always)]
pub(crate) fn vectorised<R>(level: Level, f: impl FnOnce() -> R) -> R {
    dispatch!(level, simd => {
        let _ = simd;
        f()
    })
}

/// Columns of a panel.
pub(crate) fn panel_width(level: Level) -> usize {
    #[inline(always)]
    fn lanes<S: Simd>(_: S) -> usize {
        S::f32s::LEN
    }
    VECTORS * dispatch!(level, simd => lanes(simd))
}

#[cfg(test)]
#[path = "../../../../tests/unit/dense.rs"]
mod tests;
