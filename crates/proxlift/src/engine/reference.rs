//! The plain engine: every sample through the [`Convolution`] that the mathematics is written in. Every other engine is
//! held to it.

use super::{Engine, assert_fits};
use crate::operator::{Convolution, Filters, LinearOperator};
use crate::{Real, field::Field};

/// Plain loops in `f32` or `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

fn convolution<'a, T: Real>(theta: &'a Filters<T>, like: &Field<T>) -> Convolution<'a, T> {
    Convolution::new(theta, like.grid().height(), like.grid().width()).expect("a grid has pixels")
}

impl<T: Real> Engine<T> for Reference {
    fn name(&self) -> String {
        "reference".into()
    }

    fn analyse(&self, theta: &Filters<T>, z: &Field<T>, u: &mut Field<T>) {
        assert_fits(theta, &[z], &[u]);
        let operator = convolution(theta, z);
        let mut features = vec![T::zero(); operator.range_len()];
        for s in 0..z.samples() {
            operator.apply(&z.sample_to_planar(s), &mut features);
            u.load_sample(s, &features);
        }
    }

    fn adjoint(&self, theta: &Filters<T>, u: &Field<T>, x: &mut Field<T>) {
        assert_fits(theta, &[x], &[u]);
        let operator = convolution(theta, u);
        let mut image = vec![T::zero(); operator.domain_len()];
        for s in 0..u.samples() {
            operator.adjoint(&u.sample_to_planar(s), &mut image);
            x.load_sample(s, &image);
        }
    }

    fn correlate(&self, scale: T, x: &Field<T>, d: &Field<T>, gradient: &mut Filters<T>) {
        assert_fits(gradient, &[x], &[d]);
        let mut sum = vec![T::zero(); gradient.weights().len()];
        let operator = convolution(gradient, x);
        for s in 0..x.samples() {
            operator.add_weight_gradient(&x.sample_to_planar(s), &d.sample_to_planar(s), &mut sum);
        }
        gradient.weights_mut().iter_mut().zip(sum).for_each(|(gradient, sum)| *gradient += scale * sum);
    }
}
