//! The plain engine: one loop for each formula, to be checked by eye. Every other engine is held to it.

use super::{Engine, assert_fits};
use crate::Real;
use crate::field::Field;
use crate::operator::Filters;

/// Plain loops in `f32` or `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

/// Calls `f(sample, channel, y, x)` for every pixel of `field`.
fn for_each_pixel<T: Real>(field: &Field<T>, mut f: impl FnMut(usize, usize, usize, usize)) {
    for s in 0..field.samples() {
        for c in 0..field.channels() {
            for y in 0..field.grid().height() {
                for x in 0..field.grid().width() {
                    f(s, c, y, x);
                }
            }
        }
    }
}

/// Calls `f(w[j,c,t], c, ty, tx)` for every tap of feature `j`.
fn for_each_tap<T: Real>(theta: &Filters<T>, j: usize, mut f: impl FnMut(usize, usize, isize, isize)) {
    let (k, r) = (theta.size(), theta.radius() as isize);
    for c in 0..theta.channels() {
        for ty in 0..k {
            for tx in 0..k {
                let index = ((j * theta.channels() + c) * k + ty) * k + tx;
                f(index, c, ty as isize - r, tx as isize - r);
            }
        }
    }
}

impl<T: Real> Engine<T> for Reference {
    fn name(&self) -> String {
        "reference".into()
    }

    fn analyse(&self, theta: &Filters<T>, z: &Field<T>, u: &mut Field<T>) {
        assert_fits(theta, &[z], &[u]);
        for_each_pixel(&u.clone(), |s, j, y, x| {
            let mut sum = T::zero();
            for_each_tap(theta, j, |w, c, ty, tx| {
                sum += theta.weights()[w] * z.at(s, c, y as isize + ty, x as isize + tx);
            });
            *u.at_mut(s, j, y, x) = sum;
        });
    }

    fn adjoint(&self, theta: &Filters<T>, u: &Field<T>, x: &mut Field<T>) {
        assert_fits(theta, &[x], &[u]);
        for_each_pixel(&x.clone(), |s, channel, py, px| {
            let mut sum = T::zero();
            for j in 0..theta.features() {
                for_each_tap(theta, j, |w, c, ty, tx| {
                    if c == channel {
                        sum += theta.weights()[w] * u.at(s, j, py as isize - ty, px as isize - tx);
                    }
                });
            }
            *x.at_mut(s, channel, py, px) = sum;
        });
    }

    fn correlate(&self, scale: T, x: &Field<T>, d: &Field<T>, gradient: &mut Filters<T>) {
        assert_fits(gradient, &[x], &[d]);
        let theta = gradient.clone();
        for_each_pixel(d, |s, j, py, px| {
            let dj = scale * d.at(s, j, py as isize, px as isize);
            for_each_tap(&theta, j, |w, c, ty, tx| {
                gradient.weights_mut()[w] += dj * x.at(s, c, py as isize + ty, px as isize + tx);
            });
        });
    }
}
