//! The negative entropy on the simplex, less the square that every prox adds; its prox is softmax.

use super::{Prox, indicator, place, slack};
use crate::{Real, Result};

/// `psi(u) = sum_j u_j log u_j - 1/2 ||u||^2` on the probability simplex at each pixel, else `+inf`. The negative entropy is
/// 1-strongly convex there, so `psi` is convex.
///
/// ```text
/// q(u) = sum u log u,   q*(v) = log sum exp v,   prox_psi(v) = softmax(v),   B(u, v) = KL(u, softmax(v))
/// ```
///
/// so that the Bregman penalty of this activation is cross-entropy. With another step, `u = prox_{tau psi}(v)` solves
///
/// ```text
/// (1 - tau) u_j + tau log u_j = v_j - nu,    sum_j u_j = 1
/// ```
///
/// whose left side rises in `u_j` on `]0, 1]`: Newton's method for each `log u_j`, and a bracketed one for `nu`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Softmax<T> {
    planes: usize,
    /// What the entries sum to, 1, or the contrast `c`: then the prox is `c softmax(v / c)`.
    sum: T,
}

impl<T: Real> Softmax<T> {
    /// Softmax of the `planes` numbers at each pixel. Fails when there are none.
    pub fn new(planes: usize) -> Result<Self> {
        place::validate(planes, T::one())?;
        Ok(Self { planes, sum: T::one() })
    }

    /// What the entries sum to.
    pub(crate) fn sum(&self) -> T {
        self.sum
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> Softmax<U> {
        Softmax { planes: self.planes, sum: U::of(self.sum.to_double()) }
    }

    /// Calls `f` with the vector of each pixel, at the contrast 1.
    fn each(&self, field: &[T], mut f: impl FnMut(usize, &mut [f64])) {
        let sum = self.sum.to_double();
        place::each(self.planes, field, |p, place| {
            place.iter_mut().for_each(|x| *x /= sum);
            f(p, place);
        });
    }
}

impl<T: Real> Prox<T> for Softmax<T> {
    fn validate(&self) -> Result<()> {
        place::validate(self.planes, self.sum)
    }

    fn planes(&self) -> Option<usize> {
        Some(self.planes)
    }

    fn scale(&mut self, factor: T) {
        self.sum *= factor;
    }

    fn value(&self, u: &[T]) -> T {
        if self.sum == T::zero() {
            return indicator(u.iter().all(|u| u.abs() <= slack(T::zero())));
        }
        let (mut value, square) = (0.0, self.sum.to_double().powi(2));
        let rounding = slack(self.sum).to_double() / self.sum.to_double();
        self.each(u, |_, u| {
            let inside = u.iter().all(|u| *u >= -rounding) && (u.iter().sum::<f64>() - 1.0).abs() <= rounding;
            value += if inside { u.iter().map(|u| entropy(*u) - 0.5 * u * u).sum() } else { f64::INFINITY };
        });
        T::of(square * value)
    }

    /// At the `u` with `log u_j - u_j = w_j - nu`, where `w` is the subgradient of `psi`.
    fn conjugate_value(&self, w: &[T]) -> T {
        if self.sum == T::zero() {
            return T::zero();
        }
        let mut value = 0.0;
        self.each(w, |_, w| {
            let logs = logarithms(w, -1.0, 1.0);
            let terms = logs.iter().zip(w).map(|(t, w)| (t.exp(), t, w));
            value += terms.map(|(u, t, w)| u * (*w - t + 0.5 * u)).sum::<f64>();
        });
        T::of(self.sum.to_double().powi(2) * value)
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let (sum, tau) = (self.sum.to_double(), tau.to_double());
        place::map(self.planes, v, |v| {
            if sum == 0.0 {
                return v.iter_mut().for_each(|v| *v = if v.is_nan() { *v } else { 0.0 });
            }
            v.iter_mut().for_each(|v| *v /= sum);
            let logs = logarithms(v, 1.0 - tau, tau);
            v.iter_mut().zip(logs).for_each(|(v, t)| *v = sum * t.exp());
        });
    }

    /// `J = diag(s) - s s^T / sum s` with `s_j = u_j / ((1 - tau) u_j + tau)`; for `tau = 1`, `s = u`.
    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        let (sum, tau) = (self.sum.to_double(), tau.to_double());
        if sum == 0.0 {
            return out.fill(T::zero());
        }
        place::pull(self.planes, (v, g, out), |v, g| {
            v.iter_mut().for_each(|v| *v /= sum);
            let u = logarithms(v, 1.0 - tau, tau).into_iter().map(f64::exp);
            let slopes: Vec<f64> = u.map(|u| u / ((1.0 - tau) * u + tau)).collect();
            let along: f64 = slopes.iter().zip(&*g).map(|(s, g)| s * g).sum();
            let mean = along / slopes.iter().sum::<f64>();
            g.iter_mut().zip(&slopes).for_each(|(g, s)| *g = s * (*g - mean));
        });
    }

    /// `tau (KL(u, p) - 1/2 ||u - p||^2)`, since `v - p` is `tau` times the gradient of `psi`, and a constant. The logarithm of
    /// `p` is that of the solver: `p` itself may be too small for a number.
    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], _p: &[T]) -> T {
        let mut distance = 0.0;
        if self.sum == T::zero() || self.value(u) == T::infinity() {
            return indicator(self.value(u) < T::infinity());
        }
        let (double, sum, pixels) = (tau.to_double(), self.sum.to_double(), v.len() / self.planes);
        self.each(v, |p, v| {
            let u = u[p..].iter().step_by(pixels).map(|u| u.to_double() / sum);
            let logs = logarithms(v, 1.0 - double, double);
            distance += u
                .zip(logs)
                .map(|(u, t)| entropy(u) - u * t - u + t.exp() - 0.5 * (u - t.exp()).powi(2))
                .sum::<f64>();
        });
        tau * T::of(sum * sum * distance.max(0.0))
    }
}

/// `u log u`, and its limit.
fn entropy(u: f64) -> f64 {
    if u > 0.0 { u * u.ln() } else { 0.0 }
}

/// Steps after which a bracket is no wider than rounding.
const STEPS: usize = 100;

/// `log u` for the `u` of the simplex with `a u_j + b log u_j = v_j - nu`, `b > 0` and `a + b >= 0`.
fn logarithms(v: &[f64], a: f64, b: f64) -> Vec<f64> {
    let most = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !v.iter().all(|v| v.is_finite()) {
        return vec![f64::NAN; v.len()];
    }
    let normalised = |mut logs: Vec<f64>| {
        let sum = logs.iter().map(|t| t.exp()).sum::<f64>().ln();
        logs.iter_mut().for_each(|t| *t -= sum);
        logs
    };
    if a == 0.0 {
        return normalised(v.iter().map(|v| (v - most) / b).collect());
    }
    // The largest entry lies between 1 and 1/n.
    let even = (v.len() as f64).recip();
    let (mut low, mut high) = (most - a, most - a * even - b * even.ln());
    let (mut nu, mut logs) = (0.5 * (low + high), Vec::new());
    for _ in 0..STEPS {
        logs = v.iter().map(|v| logarithm(v - nu, a, b)).collect();
        let sums = logs.iter().map(|t| t.exp()).map(|u| (u, u / (a * u + b).max(f64::MIN_POSITIVE)));
        let (sum, slope) = sums.fold((0.0, 0.0), |(sum, slope), (u, s)| (sum + u, slope + s));
        *(if sum > 1.0 { &mut low } else { &mut high }) = nu;
        let newton = nu + (sum - 1.0) / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (sum - 1.0).abs() < 1e-15 || next == nu {
            break;
        }
        nu = next;
    }
    normalised(logs)
}

/// The `t <= 0` with `a exp t + b t = y`; zero where `y` is beyond. Newton's method from the side from which it is monotone.
fn logarithm(y: f64, a: f64, b: f64) -> f64 {
    if y >= a {
        return 0.0;
    }
    let mut t = (y / b).min(0.0);
    for _ in 0..STEPS {
        let u = a * t.exp();
        let next = (t - (u + b * t - y) / (u + b)).min(0.0);
        if !((next - t).abs() > f64::EPSILON * t.abs()) {
            break;
        }
        t = next;
    }
    t
}
