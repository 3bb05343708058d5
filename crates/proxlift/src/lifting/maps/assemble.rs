//! From the sizes and the parameters of a map to the map.

use super::{Affine, Convolutional, Dense, DualStep, Kind, Synthesis};
use crate::{Real, Result};

/// The map with these blocks of parameters. Fails when they do not fit it, or a size is out of range.
pub(in crate::lifting) fn with_parameters<T: Real>(
    kind: Kind,
    mut blocks: Vec<Vec<T>>,
) -> Result<Box<dyn Affine<T>>> {
    let lengths = kind.blocks()?;
    refuse!(!blocks.iter().map(Vec::len).eq(lengths) => "the numbers of a layer do not fit its sizes");
    refuse!(blocks.iter().flatten().any(|w| !w.is_finite()) => "a layer holds a number that is not finite");
    let last = blocks.pop().unwrap_or_default();
    let before = blocks.pop().unwrap_or_default();
    Ok(match kind {
        Kind::Dense { inputs, .. } => Box::new(Dense::new(inputs, before, last)?),
        Kind::Convolution { filters, size, stride, padding } => {
            Box::new(Convolutional::strided(filters.filled(before)?, last, size, stride, padding)?)
        }
        Kind::DualStep { filters, size, tau, first: true } => {
            Box::new(DualStep::first(filters.filled(before)?, filters.filled(last)?, T::of(tau), size)?)
        }
        Kind::DualStep { filters, size, tau, first: false } => {
            Box::new(DualStep::new(filters.filled(last)?, T::of(tau), size)?)
        }
        Kind::Synthesis { filters, size } => Box::new(Synthesis::new(filters.filled(last)?, size)?),
    })
}
