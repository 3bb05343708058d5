//! The activations of a layer: odd, piecewise-linear, non-decreasing functions, one for each feature.
//!
//! With knots `0 <= l_1 <= ... <= l_M` and slopes `p_1, ..., p_{M+1} >= 0`, the slope of `s` is `p_m` where `|t|` lies
//! between `l_{m-1}` and `l_m`, and `p_{M+1}` beyond the last knot. As a sum of clips,
//!
//! ```text
//! s(t)  = c t + sum_m a_m clip(t, l_m),         a_m = p_m - p_{m+1},  c = p_{M+1}
//! q*(t) = c t^2/2 + sum_m a_m h(t, l_m),        h(t, l) = p (t - p/2),  p = clip(t, l)   (Huber)
//! ```
//!
//! `q*`, the antiderivative of `s`, is convex, so the lifted energy keeps its form: `B(u, v) = q(u) + q*(v) - u v`. Slopes
//! of at most 1 make `s` non-expansive, hence the prox of a convex function. The paper's clip is `M = 1` with slopes 1
//! and 0; soft-thresholding has slopes 0 and 1. Thresholds that scale with the noise are knots that do.

use crate::{Error, Real, Result};

/// The activations of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation<T> {
    pieces: usize,
    knots: Vec<T>,
    slopes: Vec<T>,
}

/// `dE` by the knots and the slopes of one layer, summed over a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct ActivationGradient<T> {
    /// By the knots, `[feature][m]`.
    pub knots: Vec<T>,
    /// By the slopes, `[feature][m]`.
    pub slopes: Vec<T>,
}

impl<T: Real> Activation<T> {
    /// Knots for `pieces` each feature, and one slope more.
    ///
    /// # Errors
    /// When the numbers do not fit each other, a knot is below the last or below zero, or a slope is negative.
    pub fn new(pieces: usize, knots: Vec<T>, slopes: Vec<T>) -> Result<Self> {
        let activation = Self { pieces, knots, slopes };
        activation.validate()?;
        Ok(activation)
    }

    /// The projection of each feature onto `[-lambda_j, lambda_j]`.
    pub fn clip(lambda: Vec<T>) -> Self {
        let slopes = lambda.iter().flat_map(|_| [T::one(), T::zero()]).collect();
        Self { pieces: 1, knots: lambda, slopes }
    }

    /// The clip at `lambda` for `features` features, written with `pieces` knots for training to move: they double from
    /// one to the next, the second being `lambda`.
    pub fn clip_with_knots(features: usize, pieces: usize, lambda: T) -> Self {
        if pieces < 2 {
            return Self::clip(vec![lambda; features]);
        }
        let knot = |m: usize| lambda * T::of(2f64.powi(m as i32 - 1));
        let slope = |m: usize| if m < 2 { T::one() } else { T::zero() };
        Self {
            pieces,
            knots: (0..features).flat_map(|_| (0..pieces).map(knot)).collect(),
            slopes: (0..features).flat_map(|_| (0..=pieces).map(slope)).collect(),
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let (m, features) = (self.pieces, self.features());
        if m == 0 || self.knots.len() != m * features || self.slopes.len() != (m + 1) * features {
            return Err(Error::invalid("the knots and slopes of an activation do not fit each other"));
        }
        if self.knots.iter().any(|l| !(l.is_finite() && *l >= T::zero())) {
            return Err(Error::invalid("a threshold lambda is negative or not a number"));
        }
        if self.knots.chunks_exact(m).any(|knots| !knots.is_sorted()) {
            return Err(Error::invalid("the knots of an activation are not in order"));
        }
        if self.slopes.iter().any(|p| !(p.is_finite() && *p >= T::zero())) {
            return Err(Error::invalid("a slope of an activation is negative or not a number"));
        }
        Ok(())
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.knots.len().checked_div(self.pieces).unwrap_or(0)
    }

    /// Knots of a feature, `M`.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// All knots, `[feature][m]`.
    pub fn knots(&self) -> &[T] {
        &self.knots
    }

    /// All slopes, `[feature][m]`.
    pub fn slopes(&self) -> &[T] {
        &self.slopes
    }

    /// Knots and slopes, to be moved; [`Activation::project`] makes them valid again.
    pub fn parts_mut(&mut self) -> [&mut [T]; 2] {
        [&mut self.knots, &mut self.slopes]
    }

    /// Whether every feature has a plain clip.
    pub fn is_clip(&self) -> bool {
        self.pieces == 1 && self.slopes.chunks_exact(2).all(|p| p[0] == T::one() && p[1] == T::zero())
    }

    /// The largest slope: a Lipschitz constant of the activation.
    pub fn steepest(&self) -> T {
        self.slopes.iter().fold(T::zero(), |most, &p| most.max(p))
    }

    /// Puts the knots in order and the slopes between 0 and 1, so that every activation is a prox.
    pub fn project(&mut self) {
        for knots in self.knots.chunks_exact_mut(self.pieces) {
            let mut least = T::zero();
            for knot in knots {
                *knot = knot.max(least);
                least = *knot;
            }
        }
        for slope in &mut self.slopes {
            *slope = slope.max(T::zero()).min(T::one());
        }
    }

    /// All knots times `factor`: the activation of images whose contrast is so many times higher.
    pub fn scale(&mut self, factor: T) {
        self.knots.iter_mut().for_each(|knot| *knot *= factor);
    }

    /// The clips of feature `j`: its last slope `c`, then `(a_m, l_m)`.
    pub fn clips(&self, j: usize) -> (T, impl Iterator<Item = (T, T)> + '_) {
        let (m, p) = (self.pieces, &self.slopes[j * (self.pieces + 1)..]);
        (p[m], (0..m).map(move |i| (p[i] - p[i + 1], self.knots[j * m + i])))
    }

    /// `s_j(t)`.
    pub fn value(&self, j: usize, t: T) -> T {
        let (c, clips) = self.clips(j);
        clips.fold(c * t, |sum, (a, l)| sum + a * clip(t, l))
    }

    /// `s_j'(t)`, the slope beyond where it jumps.
    pub fn slope(&self, j: usize, t: T) -> T {
        let (c, clips) = self.clips(j);
        clips.fold(c, |sum, (a, l)| if t.abs() < l { sum + a } else { sum })
    }

    /// `q_j*(t)`, the antiderivative of `s_j`, in double precision: penalties are small differences of it.
    pub fn potential(&self, j: usize, t: f64) -> f64 {
        let (c, clips) = self.clips(j);
        let start = 0.5 * c.to_double() * t * t;
        clips.fold(start, |sum, (a, l)| sum + a.to_double() * huber(t, l.to_double()))
    }

    /// A `w` with `s_j(w) = u`; the last knot where `u` is beyond all values.
    pub fn inverse(&self, j: usize, u: f64) -> f64 {
        let slopes = &self.slopes[j * (self.pieces + 1)..][..=self.pieces];
        let knots = &self.knots[j * self.pieces..][..self.pieces];
        let (mut start, mut value, mut slope) = (0.0, 0.0, slopes[self.pieces].to_double());
        for (inside, knot) in slopes.iter().zip(knots) {
            let (inside, knot) = (inside.to_double(), knot.to_double());
            let end = value + inside * (knot - start);
            if u.abs() < end {
                slope = inside;
                break;
            }
            (start, value) = (knot, end);
        }
        let w = if slope > 0.0 { start + (u.abs() - value) / slope } else { start };
        w.copysign(u)
    }

    /// `B_j(u, v) = q(u) + q*(v) - u v`, for `u` among the values of `s_j`. For a clip, without the indicator of the
    /// box, so that it is smooth beyond it as well.
    pub fn bregman(&self, j: usize, u: T, v: T) -> f64 {
        if self.pieces == 1 && self.slopes[2 * j] == T::one() && self.slopes[2 * j + 1] == T::zero() {
            // Without cancellation: 1/2 (u - p)^2 + (v - p)(p - u).
            let p = clip(v, self.knots[j]);
            return (T::of(0.5) * (u - p) * (u - p) + (v - p) * (p - u)).to_double();
        }
        let (u, v) = (u.to_double(), v.to_double());
        let w = self.inverse(j, u);
        self.potential(j, v) - self.potential(j, w) - u * (v - w)
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> Activation<U> {
        let cast = |values: &[T]| values.iter().map(|x| U::of(x.to_double())).collect();
        Activation { pieces: self.pieces, knots: cast(&self.knots), slopes: cast(&self.slopes) }
    }

    /// A zero gradient.
    pub fn zero_gradient(&self) -> ActivationGradient<T> {
        let zero = |values: &[T]| vec![T::zero(); values.len()];
        ActivationGradient { knots: zero(&self.knots), slopes: zero(&self.slopes) }
    }

    /// Adds what feature `j` gets where `v` is the input of the activation and `u = s_j(w)`: at fixed `u`,
    /// `dB = dq*(v) - dq*(w)`.
    pub fn add_gradient(&self, j: usize, v: T, w: T, gradient: &mut ActivationGradient<T>) {
        let half = T::of(0.5);
        let m = self.pieces;
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

    /// Adds the derivative of `s_j(v)` by knots and slopes, times `back`: the limit of [`Activation::add_gradient`] for
    /// small `v - w`.
    pub fn add_derivative(&self, j: usize, v: T, back: T, gradient: &mut ActivationGradient<T>) {
        let m = self.pieces;
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

/// The projection onto `[-l, l]`.
fn clip<T: Real>(t: T, l: T) -> T {
    t.min(l).max(-l)
}

/// The antiderivative of [`clip`].
fn huber(t: f64, l: f64) -> f64 {
    let p = clip(t, l);
    p * (t - 0.5 * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Activation<f64> {
        Activation::new(3, vec![0.1, 0.2, 0.5, 0.05, 0.3, 0.3], vec![1.0, 0.2, 0.6, 0.1, 0.0, 0.5, 0.7, 0.3])
            .unwrap()
    }

    fn points() -> impl Iterator<Item = f64> {
        (-40..=40).map(|i| f64::from(i) * 0.0237)
    }

    #[test]
    fn the_sum_of_clips_has_the_slopes_between_the_knots() {
        let s = sample();
        assert!((s.value(0, 0.05) - 0.05).abs() < 1e-15);
        assert!((s.value(0, 0.15) - 0.11).abs() < 1e-15);
        assert!((s.value(0, -0.6) + 0.1 + 0.02 + 0.18 + 0.01).abs() < 1e-15);
        assert_eq!((s.slope(0, 0.3), s.slope(1, 0.1), s.slope(1, 9.0)), (0.6, 0.5, 0.3));
    }

    #[test]
    fn the_potential_is_the_antiderivative_and_the_inverse_inverts() {
        let s = sample();
        for (j, t) in (0..2).flat_map(|j| points().map(move |t| (j, t))) {
            let h = 1e-6;
            let slope = (s.potential(j, t + h) - s.potential(j, t - h)) / (2.0 * h);
            assert!((slope - s.value(j, t)).abs() < 1e-6);
            assert!((s.value(j, s.inverse(j, s.value(j, t))) - s.value(j, t)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_bregman_penalty_vanishes_at_the_activation_alone_and_is_the_clips_own_for_a_clip() {
        let s = sample();
        let clip = Activation::clip(vec![0.3]);
        for (v, w) in points().flat_map(|v| points().map(move |w| (v, w))) {
            for j in 0..2 {
                let b = s.bregman(j, s.value(j, w), v);
                assert!(b >= -1e-15);
                assert!(b > 1e-9 || (s.value(j, w) - s.value(j, v)).abs() < 2e-4);
                assert!(s.bregman(j, s.value(j, v), v).abs() < 1e-15);
            }
            let (u, p) = (clip.value(0, w), clip.value(0, v));
            let own = 0.5 * (u - p) * (u - p) + (v - p) * (p - u);
            assert!((clip.bregman(0, u, v) - own).abs() < 1e-14);
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let s = sample();
        // Values of u between the flat pieces, and inputs away from the knots.
        for (j, v, w) in [(0, 0.37, 0.13), (0, -0.04, 0.31), (1, 0.21, -0.44), (1, 0.7, 0.1)] {
            let u = s.value(j, w);
            let mut by_energy = s.zero_gradient();
            s.add_gradient(j, v, w, &mut by_energy);
            let mut by_value = s.zero_gradient();
            s.add_derivative(j, v, 1.0, &mut by_value);
            for part in 0..2 {
                for i in 0..s.clone().parts_mut()[part].len() {
                    let moved = |h: f64| {
                        let mut s = s.clone();
                        s.parts_mut()[part][i] += h;
                        (s.bregman(j, u, v), s.value(j, v))
                    };
                    let (plus, minus) = (moved(1e-6), moved(-1e-6));
                    let of = |g: &ActivationGradient<f64>| if part == 0 { g.knots[i] } else { g.slopes[i] };
                    assert!(((plus.0 - minus.0) / 2e-6 - of(&by_energy)).abs() < 1e-6, "{j} {part} {i}");
                    assert!(((plus.1 - minus.1) / 2e-6 - of(&by_value)).abs() < 1e-6, "{j} {part} {i}");
                }
            }
        }
    }

    #[test]
    fn projection_gives_a_prox_and_leaves_one_alone() {
        let mut wild = Activation {
            pieces: 2,
            knots: vec![-0.1, 0.2, 0.3, 0.1],
            slopes: vec![1.2, -0.1, 0.5, 0.0, 1.0, 2.0],
        };
        wild.project();
        assert_eq!(wild.knots, [0.0, 0.2, 0.3, 0.3]);
        assert_eq!(wild.slopes, [1.0, 0.0, 0.5, 0.0, 1.0, 1.0]);
        let before = wild.clone();
        wild.project();
        assert_eq!(wild, before);
        assert!(wild.validate().is_ok() && wild.steepest() <= 1.0);
    }
}
