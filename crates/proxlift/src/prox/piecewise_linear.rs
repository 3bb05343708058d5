//! Learned proxes: odd, piecewise-linear, non-decreasing functions, one for each feature.
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

use super::{Prox, threshold::cast};
use crate::{Real, Result};

/// Piecewise-linear activations, one for each feature; the paper's clip is the one that starts all training.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PiecewiseLinear<T> {
    pieces: usize,
    knots: Vec<T>,
    slopes: Vec<T>,
}

impl<T: Real> PiecewiseLinear<T> {
    /// Knots for `pieces` each feature, and one slope more.
    /// Fails when the numbers do not fit each other, a knot is below the last or below zero, or a slope is negative.
    pub fn new(pieces: usize, knots: Vec<T>, slopes: Vec<T>) -> Result<Self> {
        let activation = Self::redescending(pieces, knots, slopes)?;
        activation.validate()?;
        Ok(activation)
    }

    /// The same with slopes that may be negative: no prox, but with slopes below 1 still one of the weakly convex functions of
    /// [`fixed_point`](crate::fixed_point).
    /// Fails when the numbers do not fit each other, or a knot is below the last or below zero.
    pub fn redescending(pieces: usize, knots: Vec<T>, slopes: Vec<T>) -> Result<Self> {
        let activation = Self { pieces, knots, slopes };
        activation.check()?;
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

    /// Whether its numbers fit each other, with slopes of either sign.
    pub(crate) fn check(&self) -> Result<()> {
        let (m, features) = (self.pieces, self.features());
        refuse!(m == 0 || m > self.knots.len() || self.knots.len() != m * features || self.slopes.len() != (m + 1) * features =>
            "the knots and slopes of an activation do not fit each other");
        refuse!(self.knots.iter().any(|l| !(l.is_finite() && *l >= T::zero())) =>
            "a threshold lambda is negative or not a number");
        refuse!(self.knots.chunks_exact(m).any(|knots| !knots.is_sorted()) =>
            "the knots of an activation are not in order");
        refuse!(self.slopes.iter().any(|p| !p.is_finite()) =>
            "a slope of an activation is not a number");
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

    /// Knots and slopes, to be moved; [`PiecewiseLinear::project`] makes them valid again.
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

    /// The least slope, at most 0: below it, functions fall somewhere and are no proxes.
    pub fn flattest(&self) -> T {
        self.slopes.iter().fold(T::zero(), |least, &p| least.min(p))
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
        self.slopes.iter_mut().for_each(|slope| *slope = slope.max(T::zero()).min(T::one()));
    }

    /// Makes the last slopes zero, so that `s` is bounded: `psi*` is then finite everywhere and grows like its argument.
    pub fn bound(&mut self) {
        self.slopes
            .iter_mut()
            .skip(self.pieces)
            .step_by(self.pieces + 1)
            .for_each(|slope| *slope = T::zero());
    }

    /// Keeps all slopes at or below `steepest`: below 1, `psi` is strongly convex. Pieces that were steeper become wider, so that
    /// the function rises as far as before.
    pub fn flatten(&mut self, steepest: T) {
        let pieces = self.pieces;
        for (knots, slopes) in
            self.knots.chunks_exact_mut(pieces).zip(self.slopes.chunks_exact_mut(pieces + 1))
        {
            let (mut before, mut end) = (T::zero(), T::zero());
            for (knot, slope) in knots.iter_mut().zip(&*slopes) {
                end += (*knot - before) * (*slope / steepest).max(T::one());
                before = std::mem::replace(knot, end);
            }
            slopes.iter_mut().for_each(|slope| *slope = slope.min(steepest));
        }
    }

    /// `prox_{rho psi}` where this is `prox_psi`: at the knots, `(1 - rho) s(l) + rho l`.
    #[must_use]
    pub fn with_step(&self, rho: T) -> Self {
        let at = |i: usize| {
            let (j, l) = (i / self.pieces, self.knots[i]);
            (T::one() - rho) * self.at(j, l) + rho * l
        };
        let steeper = |p: &T| *p / ((T::one() - rho) * *p + rho);
        Self {
            pieces: self.pieces,
            knots: (0..self.knots.len()).map(at).collect(),
            slopes: self.slopes.iter().map(steeper).collect(),
        }
    }

    /// The slope of `g` as a function of its argument, where this is `prox_{tau g*}` and has slopes below 1: `u = s(t)` is the slope at
    /// `(t - u) / tau`. Where `s` falls, so does it, by less than `tau`.
    #[must_use]
    pub fn influence(&self, tau: T) -> Self {
        let at = |i: usize| (self.knots[i] - self.at(i / self.pieces, self.knots[i])) / tau;
        Self {
            pieces: self.pieces,
            knots: (0..self.knots.len()).map(at).collect(),
            slopes: self.slopes.iter().map(|&p| tau * p / (T::one() - p)).collect(),
        }
    }

    /// Whether every function has the sign of its argument, or is zero.
    pub fn keeps_signs(&self) -> bool {
        let last =
            self.slopes.iter().skip(self.pieces).step_by(self.pieces + 1).all(|slope| *slope >= T::zero());
        last && (0..self.knots.len()).all(|i| self.at(i / self.pieces, self.knots[i]) >= T::zero())
    }

    /// The clips of feature `j`: its last slope `c`, then `(a_m, l_m)`.
    pub fn clips(&self, j: usize) -> (T, impl Iterator<Item = (T, T)> + '_) {
        let (m, p) = (self.pieces, &self.slopes[j * (self.pieces + 1)..]);
        (p[m], (0..m).map(move |i| (p[i] - p[i + 1], self.knots[j * m + i])))
    }

    /// `s_j(t)`.
    pub fn at(&self, j: usize, t: T) -> T {
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
        self.invert(j, u, |slope| slope).0
    }

    /// A `t` at which the odd function with `slope(p)` where `s_j` has the slope `p` is `y`; the last knot, and false, where
    /// `y` is beyond all its values.
    fn invert(&self, j: usize, y: f64, slope: impl Fn(f64) -> f64) -> (f64, bool) {
        let slopes = &self.slopes[j * (self.pieces + 1)..][..=self.pieces];
        let knots = &self.knots[j * self.pieces..][..self.pieces];
        let (mut start, mut value, mut last) = (0.0, 0.0, slope(slopes[self.pieces].to_double()));
        for (inside, knot) in slopes.iter().zip(knots) {
            let (inside, knot) = (slope(inside.to_double()), knot.to_double());
            let end = value + inside * (knot - start);
            if y.abs() < end {
                last = inside;
                break;
            }
            (start, value) = (knot, end);
        }
        let beyond = y.abs() - value;
        let t = if last > 0.0 { start + beyond / last } else { start };
        let rounding = 1e-5 * y.abs().max(f64::from(f32::EPSILON));
        (t.copysign(y), last > 0.0 || beyond <= rounding)
    }

    /// `B_j(u, v) = q(u) + q*(v) - u v`, for `u` among the values of `s_j`. For a clip, without the indicator of the
    /// box, so that it is smooth beyond it as well.
    pub fn bregman_at(&self, j: usize, u: T, v: T) -> f64 {
        if self.pieces == 1 && self.slopes[2 * j] == T::one() && self.slopes[2 * j + 1] == T::zero() {
            // Without cancellation: 1/2 (u - p)^2 + (v - p)(p - u).
            let p = clip(v, self.knots[j]);
            return (T::of(0.5) * (u - p) * (u - p) + (v - p) * (p - u)).to_double();
        }
        let (u, v) = (u.to_double(), v.to_double());
        let w = self.inverse(j, u);
        self.potential(j, v) - self.potential(j, w) - u * (v - w)
    }

    /// The `t` with `prox_{tau psi}(v) = s_j(t)`.
    fn source(&self, j: usize, tau: T, v: T) -> T {
        if tau == T::one() {
            return v;
        }
        let tau = tau.to_double();
        T::of(self.invert(j, v.to_double(), |slope| (1.0 - tau) * slope + tau).0)
    }

    /// `v <- s_j(v)`.
    pub fn activate(&self, j: usize, v: &mut [T]) {
        const LANES: usize = 16;
        let (c, clips) = self.clips(j);
        let clips: Vec<(T, T)> = clips.collect();
        let (chunks, rest) = v.as_chunks_mut::<LANES>();
        for v in chunks {
            let mut sum = v.map(|t| c * t);
            for &(a, l) in &clips {
                sum.iter_mut().zip(&*v).for_each(|(sum, &t)| *sum += a * clip(t, l));
            }
            *v = sum;
        }
        rest.iter_mut().for_each(|v| *v = self.at(j, *v));
    }

    /// `psi_j(u) = q(u) - u^2/2 = u w - q*(w) - u^2/2` where `u = s(w)`.
    pub fn value_at(&self, j: usize, u: f64) -> f64 {
        match self.invert(j, u, |slope| slope) {
            (w, true) => u * w - self.potential(j, w) - 0.5 * u * u,
            _ => f64::INFINITY,
        }
    }

    /// `psi_j*(w) = u w - psi(u)` where `w = t - s(t)` is the subgradient of `psi` at `u = s(t)`.
    pub fn conjugate_at(&self, j: usize, w: f64) -> f64 {
        match self.invert(j, w, |slope| 1.0 - slope) {
            (t, true) => {
                let u = t - w;
                u * w - (u * t - self.potential(j, t) - 0.5 * u * u)
            }
            _ => f64::INFINITY,
        }
    }

    /// The sum of `f(j, u)` over a field.
    fn sum(&self, u: &[T], f: impl Fn(usize, f64) -> f64) -> T {
        let pixels = u.len() / self.features();
        T::of(u.iter().enumerate().map(|(i, u)| f(i / pixels, u.to_double())).sum())
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> PiecewiseLinear<U> {
        PiecewiseLinear { pieces: self.pieces, knots: cast(&self.knots), slopes: cast(&self.slopes) }
    }
}

impl<T: Real> Prox<T> for PiecewiseLinear<T> {
    fn validate(&self) -> Result<()> {
        self.check()?;
        refuse!(self.flattest() < T::zero() => "a slope of an activation is negative");
        Ok(())
    }

    fn planes(&self) -> Option<usize> {
        Some(self.features())
    }

    fn scale(&mut self, factor: T) {
        self.knots.iter_mut().for_each(|knot| *knot *= factor);
    }

    fn value(&self, u: &[T]) -> T {
        self.sum(u, |j, u| self.value_at(j, u))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        self.sum(w, |j, w| self.conjugate_at(j, w))
    }

    /// `s(t)` where `(1 - tau) s(t) + tau t = v`, since `t - s(t)` is the subgradient at `s(t)`; for `tau = 1`, `s(v)`.
    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let pixels = v.len() / self.features();
        for (i, v) in v.iter_mut().enumerate() {
            let t = self.source(i / pixels, tau, *v);
            *v = if v.is_nan() { *v } else { self.at(i / pixels, t) };
        }
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        let pixels = v.len() / self.features();
        for (i, (out, (&v, &g))) in out.iter_mut().zip(v.iter().zip(g)).enumerate() {
            let slope = self.slope(i / pixels, self.source(i / pixels, tau, v));
            *out = g * slope / ((T::one() - tau) * slope + tau);
        }
    }

    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        if tau != T::one() {
            let slope: T = u.iter().zip(v).zip(p).map(|((&u, &v), &p)| (u - p) * (v - p)).sum();
            return tau * (Prox::value(self, u) - Prox::value(self, p)) - slope;
        }
        let pixels = u.len() / self.features();
        let terms = u.iter().zip(v).zip(p).enumerate().map(|(i, ((&u, &v), &p))| {
            let quadratic = 0.5 * (u.to_double() - p.to_double()).powi(2);
            self.bregman_at(i / pixels, u, v) - quadratic
        });
        T::of(terms.sum::<f64>().max(0.0))
    }
}

/// The projection onto `[-l, l]`.
pub(super) fn clip<T: Real>(t: T, l: T) -> T {
    t.min(l).max(-l)
}

/// The antiderivative of [`clip`].
fn huber(t: f64, l: f64) -> f64 {
    let p = clip(t, l);
    p * (t - 0.5 * p)
}
