//! Piecewise-linear activations of whole batches, plane by plane.

use super::level::in_vectors;
use crate::field::Field;
use crate::prox::PiecewiseLinear;
use rayon::prelude::*;

/// Numbers that go through all pieces side by side.
const LANES: usize = 32;

/// `u = s(v)`.
pub fn activate(functions: &PiecewiseLinear<f32>, v: &Field<f32>, u: &mut Field<f32>) {
    let len = v.grid().len();
    let planes = u.data_mut().par_chunks_mut(len).zip(v.data().par_chunks(len)).enumerate();
    planes.for_each(|(plane, (u, v))| {
        let feature = plane % functions.features();
        let c = functions.clips(feature).0;
        // Found anew for every block of numbers, which is little beside them: nothing is allocated.
        let clips = || functions.clips(feature).1;
        in_vectors(
            #[inline(always)]
            || {
                let (chunks, rest) = v.as_chunks::<LANES>();
                let (results, last) = u.as_chunks_mut::<LANES>();
                for (u, v) in results.iter_mut().zip(chunks) {
                    *u = v.map(|v| c * v);
                    for (a, l) in clips() {
                        u.iter_mut().zip(v).for_each(|(u, v)| *u += a * v.min(l).max(-l));
                    }
                }
                for (u, v) in last.iter_mut().zip(rest) {
                    *u = clips().fold(c * v, |u, (a, l)| u + a * v.min(l).max(-l));
                }
            },
        );
    });
}

/// `out = s'(v) g`, with `s' = 0` where it jumps.
pub fn slope(functions: &PiecewiseLinear<f32>, v: &Field<f32>, g: &Field<f32>, out: &mut Field<f32>) {
    let len = v.grid().len();
    let planes =
        out.data_mut().par_chunks_mut(len).zip(v.data().par_chunks(len)).zip(g.data().par_chunks(len));
    planes.enumerate().for_each(|(plane, ((out, v), g))| {
        let feature = plane % functions.features();
        let c = functions.clips(feature).0;
        let clips = || functions.clips(feature).1;
        let piece = |v: f32, (a, l): (f32, f32)| if v.abs() < l { a } else { 0.0 };
        in_vectors(
            #[inline(always)]
            || {
                let (chunks, rest) = v.as_chunks::<LANES>();
                let (factors, other) = g.as_chunks::<LANES>();
                let (results, last) = out.as_chunks_mut::<LANES>();
                for ((out, v), g) in results.iter_mut().zip(chunks).zip(factors) {
                    *out = [c; LANES];
                    for clip in clips() {
                        out.iter_mut().zip(v).for_each(|(out, v)| *out += piece(*v, clip));
                    }
                    out.iter_mut().zip(g).for_each(|(out, g)| *out *= g);
                }
                for ((out, &v), g) in last.iter_mut().zip(rest).zip(other) {
                    *out = g * clips().fold(c, |sum, clip| sum + piece(v, clip));
                }
            },
        );
    });
}
