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

pub(super) fn cast<T: Real, U: Real>(values: &[T]) -> Vec<U> {
    values.iter().map(|value| U::of(value.to_double())).collect()
}

/// `out = g` where the prox moves with `v`, else zero; `parameters` has those of each plane.
pub(super) fn pull_where<T: Real, P: Copy>(
    parameters: impl ExactSizeIterator<Item = P>,
    (v, g, out): (&[T], &[T], &mut [T]),
    moves: impl Fn(P, T) -> bool,
) {
    assert!(v.len() == g.len() && v.len() == out.len(), "the fields of a pullback have different lengths");
    let pixels = plane_len(v.len(), parameters.len());
    let planes = v.chunks_exact(pixels).zip(g.chunks_exact(pixels)).zip(out.chunks_exact_mut(pixels));
    for (((v, g), out), parameter) in planes.zip(parameters) {
        for ((&v, &g), out) in v.iter().zip(g).zip(out) {
            *out = if moves(parameter, v) { g } else { T::zero() };
        }
    }
}

/// `v <- clip(v, lo, hi)`; not by `max` and `min`, which would turn a NaN into a bound.
pub(super) fn clip_plane<T: Real>(plane: &mut [T], (lo, hi): (T, T)) {
    for v in plane {
        let above = if *v < lo { lo } else { *v };
        *v = if above > hi { hi } else { above };
    }
}

/// The number of entries that share a threshold, of `len` entries with `count` thresholds.
pub(super) fn plane_len(len: usize, count: usize) -> usize {
    assert!(len.is_multiple_of(count), "a field of {len} entries can't be split into {count} features");
    (len / count).max(1)
}
