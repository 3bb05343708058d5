//! Activations that learn: piecewise-linear ones with two knots or more, whose knots and slopes are blocks of their layer.
//!
//! At fixed `u = s(w)`, the Bregman penalty moves with the potential alone, and a rule sees two points of it:
//!
//! ```text
//! dB(u, v) = dq*(v) - dq*(w)            d 1/2 ||u - s(v)||^2 = <s(v) - u, ds(v)>
//! secant   : w = v - back               centred : half of it between v + back and v - back        tangent : <back, ds(v)>
//! ```
//!
//! After a step they are projected: knots in order, slopes from 0 to 1, so that the activation stays a prox.

use super::Rows;
use crate::Real;
use crate::network::Activation;
use crate::prox::{PiecewiseGradient, PiecewiseLinear};
use rayon::prelude::*;

/// The functions of an activation, if training moves them.
fn learned<T: Real>(s: &Activation<T>) -> Option<&PiecewiseLinear<T>> {
    s.piecewise().filter(|_| s.learns())
}

/// Makes an activation a prox again, if it learns.
pub(super) fn project<T: Real>(s: &mut Activation<T>) {
    if s.learns() {
        s.piecewise_mut().into_iter().for_each(PiecewiseLinear::project);
    }
}

/// What `add` makes of all numbers of two batches, sample after sample, as blocks of the activation; none if it does not learn.
pub(super) fn summed<T: Real>(
    s: &Activation<T>,
    v: &Rows<T>,
    other: &Rows<T>,
    add: impl Fn(&PiecewiseLinear<T>, usize, T, T, &mut PiecewiseGradient<T>) + Sync,
) -> Vec<Vec<T>> {
    let Some(functions) = learned(s) else { return Vec::new() };
    let pixels = v.width() / functions.features();
    let of_sample = |(v, other): (&[T], &[T])| {
        let mut gradient = functions.zero_gradient();
        let pairs = v.iter().zip(other).enumerate();
        pairs.for_each(|(i, (&v, &other))| add(functions, i / pixels, v, other, &mut gradient));
        gradient
    };
    let samples: Vec<_> = v.par_rows().zip(other.par_rows()).map(of_sample).collect();
    let mut sum = functions.zero_gradient();
    for part in &samples {
        sum.knots.iter_mut().zip(&part.knots).for_each(|(sum, &g)| *sum += g);
        sum.slopes.iter_mut().zip(&part.slopes).for_each(|(sum, &g)| *sum += g);
    }
    vec![sum.knots, sum.slopes]
}
