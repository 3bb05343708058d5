//! Products of dense matrices whose right-hand side is read column panel by column panel: the kernels of dense layers.
//!
//! An entry of a product is one chain of multiply-adds in the order of `k`, wherever it stands and whoever computes it, so
//! neither blocks nor threads change a bit. The plain twin is [`crate::matrix`].

mod limit;
mod pack;
mod product;
mod update;

pub use limit::products_seconds;
pub(crate) use pack::{pack, pack_transposed, packed_len};
pub(crate) use product::{Panels, Strided, product};
pub(crate) use update::Update;

pub(crate) use super::vectors::prefetch;

use super::level::{self, dispatch};
use fearless_simd::{Level, Simd, prelude::*};

/// Vectors side by side in a panel.
const VECTORS: usize = 2;

/// Every kernel works on whole vectors of any instruction set when rows are this wide, or a multiple.
pub(crate) const PADDING: usize = 16;

/// The instruction set that the kernels use.
pub(crate) fn level() -> Level {
    level::best()
}

/// Columns of a panel.
pub(crate) fn panel_width(level: Level) -> usize {
    #[inline(always)]
    fn lanes<S: Simd>(_: S) -> usize {
        S::f32s::LEN
    }
    VECTORS * dispatch!(level, simd => lanes(simd))
}
