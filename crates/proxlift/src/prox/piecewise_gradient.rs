//! How piecewise-linear activations learn: the gradients of `E` and of the loss by their knots and slopes.

use super::{PiecewiseLinear, piecewise_linear::clip};
use crate::{Real, field::Field};

/// `dE` by the knots and the slopes of one layer, summed over a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct PiecewiseGradient<T> {
    /// By the knots, `[feature][m]`.
    pub knots: Vec<T>,
    /// By the slopes, `[feature][m]`.
    pub slopes: Vec<T>,
}

impl<T: Real> PiecewiseGradient<T> {
    /// `g <- factor g`.
    pub fn scale(&mut self, factor: T) {
        self.knots.iter_mut().chain(&mut self.slopes).for_each(|g| *g *= factor);
    }
}

impl<T: Real> PiecewiseLinear<T> {
    /// A zero gradient.
    pub fn zero_gradient(&self) -> PiecewiseGradient<T> {
        let zero = |values: &[T]| vec![T::zero(); values.len()];
        PiecewiseGradient { knots: zero(self.knots()), slopes: zero(self.slopes()) }
    }

    /// Adds what feature `j` gets where `v` is the input of the activation and `u = s_j(w)`: at fixed `u`,
    /// `dB = dq*(v) - dq*(w)`.
    pub fn add_gradient(&self, j: usize, v: T, w: T, gradient: &mut PiecewiseGradient<T>) {
        let half = T::of(0.5);
        let m = self.pieces();
        let (knots, slopes) = (&mut gradient.knots[j * m..], &mut gradient.slopes[j * (m + 1)..]);
        slopes[m] += half * (v - w) * (v + w);
        for (i, (a, l)) in self.clips(j).1.enumerate() {
            // huber(v) - huber(w), without cancellation.
            let (p, q) = (clip(v, l), clip(w, l));
            let by_clip = half * ((p - q) * (v + w - p - q) + (p + q) * (v - w));
            slopes[i] += by_clip;
            slopes[i + 1] -= by_clip;
            knots[i] += a * ((v.abs() - l).max(T::zero()) - (w.abs() - l).max(T::zero()));
        }
    }

    /// Adds [`Self::add_gradient`] over a batch, `u = s(w)`.
    pub fn add_gradients(&self, v: &Field<T>, w: &Field<T>, gradient: &mut PiecewiseGradient<T>) {
        self.add_over(v, w, gradient, Self::add_gradient);
    }

    /// Adds [`Self::add_derivative`] over a batch.
    pub fn add_derivatives(&self, v: &Field<T>, back: &Field<T>, gradient: &mut PiecewiseGradient<T>) {
        self.add_over(v, back, gradient, Self::add_derivative);
    }

    fn add_over(
        &self,
        v: &Field<T>,
        other: &Field<T>,
        gradient: &mut PiecewiseGradient<T>,
        add: impl Fn(&Self, usize, T, T, &mut PiecewiseGradient<T>),
    ) {
        let len = v.grid().len();
        for (i, (&v, &other)) in v.data().iter().zip(other.data()).enumerate() {
            add(self, i / len % self.features(), v, other, gradient);
        }
    }

    /// Adds the derivative of `s_j(v)` by knots and slopes, times `back`: the limit of [`PiecewiseLinear::add_gradient`] for
    /// small `v - w`.
    pub fn add_derivative(&self, j: usize, v: T, back: T, gradient: &mut PiecewiseGradient<T>) {
        let m = self.pieces();
        let (knots, slopes) = (&mut gradient.knots[j * m..], &mut gradient.slopes[j * (m + 1)..]);
        slopes[m] += back * v;
        for (i, (a, l)) in self.clips(j).1.enumerate() {
            slopes[i] += back * clip(v, l);
            slopes[i + 1] -= back * clip(v, l);
            if v.abs() > l {
                knots[i] += back * a * v.signum();
            }
        }
    }
}
