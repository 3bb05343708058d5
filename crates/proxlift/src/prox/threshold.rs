//! Thresholds: one for all features, or one per feature.

use crate::{Real, Result};

/// Refuses thresholds that are not finite or negative, or none at all.
pub(super) fn validate<T: Real>(thresholds: &[T]) -> Result<()> {
    refuse!(thresholds.is_empty() => "no threshold given: give one, or one per feature");
    match thresholds.iter().find(|t| !(t.is_finite() && **t >= T::zero())) {
        Some(bad) => Err(invalid!("the threshold {bad} is not a finite number >= 0")),
        None => Ok(()),
    }
}

/// The planes of a field with so many thresholds: one suits any field.
pub(super) fn several(thresholds: usize) -> Option<usize> {
    (thresholds > 1).then_some(thresholds)
}

/// The same numbers in another precision.
pub(super) fn cast<T: Real, U: Real>(values: &[T]) -> Vec<U> {
    values.iter().map(|value| U::of(value.to_double())).collect()
}

/// The number of entries that share a threshold, of `len` entries with `count` thresholds.
pub(super) fn plane_len(len: usize, count: usize) -> usize {
    assert!(len.is_multiple_of(count), "a field of {len} entries can't be split into {count} features");
    (len / count).max(1)
}
