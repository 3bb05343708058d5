//! Piecewise-linear activations of whole batches, plane by plane.

use crate::field::Field;
use crate::prox::PiecewiseLinear;
use rayon::prelude::*;

/// `u = s(v)`.
pub fn activate(functions: &PiecewiseLinear<f32>, v: &Field<f32>, u: &mut Field<f32>) {
    let len = v.grid().len();
    let planes = u.data_mut().par_chunks_mut(len).zip(v.data().par_chunks(len)).enumerate();
    planes.for_each(|(plane, (u, v))| {
        let (c, clips) = functions.clips(plane % functions.features());
        u.iter_mut().zip(v).for_each(|(u, v)| *u = c * v);
        for (a, l) in clips {
            u.iter_mut().zip(v).for_each(|(u, v)| *u += a * v.min(l).max(-l));
        }
    });
}

/// `out = s'(v) g`, with `s' = 0` where it jumps.
pub fn slope(functions: &PiecewiseLinear<f32>, v: &Field<f32>, g: &Field<f32>, out: &mut Field<f32>) {
    let len = v.grid().len();
    let planes =
        out.data_mut().par_chunks_mut(len).zip(v.data().par_chunks(len)).zip(g.data().par_chunks(len));
    planes.enumerate().for_each(|(plane, ((out, v), g))| {
        let (c, clips) = functions.clips(plane % functions.features());
        out.fill(c);
        for (a, l) in clips {
            out.iter_mut().zip(v).for_each(|(out, v)| *out += if v.abs() < l { a } else { 0.0 });
        }
        out.iter_mut().zip(g).for_each(|(out, g)| *out *= g);
    });
}
