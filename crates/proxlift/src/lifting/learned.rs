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

use super::{Network, Penalty, Rows, Rule};
use crate::Real;
use crate::prox::{PiecewiseGradient, PiecewiseLinear};
use rayon::prelude::*;

impl<T: Real> Network<T> {
    /// The functions after layer `k`, if training moves them.
    fn learned(&self, k: usize) -> Option<&PiecewiseLinear<T>> {
        self.activations().get(k).filter(|activation| activation.learns())?.piecewise()
    }

    /// Makes the learned activation after layer `k` a prox again, if there is one.
    pub(super) fn project_activation(&mut self, k: usize) {
        let learned = self.activations_mut().get_mut(k).filter(|activation| activation.learns());
        learned
            .and_then(|activation| activation.piecewise_mut())
            .into_iter()
            .for_each(PiecewiseLinear::project);
    }

    /// Makes all learned activations proxes again.
    pub(super) fn project_activations(&mut self) {
        (0..self.activations().len()).for_each(|k| self.project_activation(k));
    }
}

/// The gradient of a penalty by the activation after layer `k`, summed over the batch; no blocks if it does not learn.
pub(super) fn by_penalty<T: Real>(
    network: &Network<T>,
    penalty: Penalty,
    k: usize,
    u: &Rows<T>,
    v: &Rows<T>,
) -> Vec<Vec<T>> {
    summed(network, k, v, u, |functions, j, v, u, gradient| match penalty {
        Penalty::Bregman => {
            functions.add_gradient(j, v, T::of(functions.inverse(j, u.to_double())), gradient);
        }
        Penalty::Quadratic => functions.add_derivative(j, v, functions.at(j, v) - u, gradient),
    })
}

/// The same for a rule, from what comes `back` to `u_k = s_k(v_k)`.
pub(super) fn by_rule<T: Real>(
    network: &Network<T>,
    rule: Rule<T>,
    k: usize,
    v: &Rows<T>,
    back: &Rows<T>,
) -> Vec<Vec<T>> {
    let mut blocks = summed(network, k, v, back, |functions, j, v, back, gradient| match rule {
        Rule::Backprop | Rule::StraightThrough => functions.add_derivative(j, v, back, gradient),
        Rule::Lifted { .. } => functions.add_gradient(j, v, v - back, gradient),
        Rule::Centred { .. } => functions.add_gradient(j, v + back, v - back, gradient),
    });
    if let Rule::Centred { .. } = rule {
        blocks.iter_mut().flatten().for_each(|g| *g *= T::of(0.5));
    }
    blocks
}

/// What `add` makes of all numbers of two batches, sample after sample.
fn summed<T: Real>(
    network: &Network<T>,
    k: usize,
    v: &Rows<T>,
    other: &Rows<T>,
    add: impl Fn(&PiecewiseLinear<T>, usize, T, T, &mut PiecewiseGradient<T>) + Sync,
) -> Vec<Vec<T>> {
    let Some(functions) = network.learned(k) else { return Vec::new() };
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
