//! How piecewise-linear activations learn: the gradients of `E` and of the loss by their knots and slopes.

use super::PiecewiseLinear;
use super::piecewise_linear::clip;
use crate::Real;
use crate::field::Field;

/// `dE` by the knots and the slopes of one layer, summed over a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct PiecewiseGradient<T> {
    /// By the knots, `[feature][m]`.
    pub knots: Vec<T>,
    /// By the slopes, `[feature][m]`.
    pub slopes: Vec<T>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let s = crate::prox::piecewise_linear::tests::sample();
        // Values of u between the flat pieces, and inputs away from the knots.
        for (j, v, w) in [(0, 0.37, 0.13), (0, -0.04, 0.31), (1, 0.21, -0.44), (1, 0.7, 0.1)] {
            let u = s.at(j, w);
            let mut by_energy = s.zero_gradient();
            s.add_gradient(j, v, w, &mut by_energy);
            let mut by_value = s.zero_gradient();
            s.add_derivative(j, v, 1.0, &mut by_value);
            for part in 0..2 {
                for i in 0..s.clone().parts_mut()[part].len() {
                    let moved = |h: f64| {
                        let mut s = s.clone();
                        s.parts_mut()[part][i] += h;
                        (s.bregman_at(j, u, v), s.at(j, v))
                    };
                    let (plus, minus) = (moved(1e-6), moved(-1e-6));
                    let of = |g: &PiecewiseGradient<f64>| if part == 0 { g.knots[i] } else { g.slopes[i] };
                    assert!(((plus.0 - minus.0) / 2e-6 - of(&by_energy)).abs() < 1e-6, "{j} {part} {i}");
                    assert!(((plus.1 - minus.1) / 2e-6 - of(&by_value)).abs() < 1e-6, "{j} {part} {i}");
                }
            }
        }
    }
}
