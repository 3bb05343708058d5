//! What a pixel has in all planes: the vectors of the penalties that act across features.

use crate::{Real, Result};

/// Refuses a penalty across no planes, or one that is scaled by what is no contrast.
pub(super) fn validate<T: Real>(planes: usize, scale: T) -> Result<()> {
    refuse!(planes == 0 => "a penalty across planes needs at least one");
    refuse!(!(scale.is_finite() && scale >= T::zero()) => "the scale {scale} is not a finite number >= 0");
    Ok(())
}

/// Calls `f` with the vector of each pixel, in double precision.
pub(super) fn each<T: Real>(planes: usize, field: &[T], mut f: impl FnMut(usize, &mut [f64])) {
    assert!(
        field.len().is_multiple_of(planes),
        "a field of {} entries does not have {planes} planes",
        field.len()
    );
    let pixels = field.len() / planes;
    let mut place = vec![0.0; planes];
    for p in 0..pixels {
        let values = field[p..].iter().step_by(pixels);
        place.iter_mut().zip(values).for_each(|(place, value)| *place = value.to_double());
        f(p, &mut place);
    }
}

/// Replaces the vector of each pixel by what `f` makes of it.
pub(super) fn map<T: Real>(planes: usize, field: &mut [T], mut f: impl FnMut(&mut [f64])) {
    let (before, pixels) = (field.to_vec(), field.len() / planes);
    each(planes, &before, |p, place| {
        f(place);
        put(place, &mut field[p..], pixels);
    });
}

/// `out` is what `f` makes of the vectors of `v` and `g` at each pixel, which it leaves in that of `g`.
pub(super) fn pull<T: Real>(
    planes: usize,
    (v, g, out): (&[T], &[T], &mut [T]),
    mut f: impl FnMut(&mut [f64], &mut [f64]),
) {
    assert!(v.len() == g.len() && v.len() == out.len(), "the fields of a pullback have different lengths");
    let (pixels, mut other) = (v.len() / planes, vec![0.0; planes]);
    each(planes, v, |p, place| {
        other.iter_mut().zip(g[p..].iter().step_by(pixels)).for_each(|(other, g)| *other = g.to_double());
        f(place, &mut other);
        put(&other, &mut out[p..], pixels);
    });
}

fn put<T: Real>(place: &[f64], from: &mut [T], pixels: usize) {
    from.iter_mut().step_by(pixels).zip(place).for_each(|(value, &place)| *value = T::of(place));
}
