//! The negative entropy of a coin, less the square that every prox adds; its prox is the logistic function.

use super::{Prox, indicator, place, slack};
use crate::{Real, Result, real::exp};

/// `psi(u) = sum h(u) - 1/2 u^2` with `h(u) = u log u + (1 - u) log(1 - u)` on `[0, 1]`, else `+inf`; convex, as `h'' >= 4`.
///
/// ```text
/// q = h,   q*(v) = log(1 + exp v),   prox_psi(v) = s(v) = 1 / (1 + exp(-v)),   B(u, v) = KL of two coins
/// ```
///
/// With another step, `prox_{tau psi}(v) = s(t)` where `(1 - tau) s(t) + tau t = v`, whose left side rises.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sigmoid<T> {
    /// The largest value, 1, or the contrast `c`: then the prox is `c s(v / c)`.
    height: T,
}

impl<T: Real> Default for Sigmoid<T> {
    fn default() -> Self {
        Self { height: T::one() }
    }
}

impl<T: Real> Sigmoid<T> {
    /// The largest value.
    pub(crate) fn height(&self) -> T {
        self.height
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> Sigmoid<U> {
        Sigmoid { height: U::of(self.height.to_double()) }
    }

    /// The `t` with `prox_{tau psi}(v) = height s(t)`.
    fn source(&self, tau: T, v: T) -> f64 {
        invert([v.to_double() / self.height.to_double()], 1.0 - tau.to_double(), tau.to_double())[0]
    }

    fn sum(&self, field: &[T], f: impl Fn(f64) -> f64) -> T {
        let height = self.height.to_double();
        T::of(height * height * field.iter().map(|x| f(x.to_double() / height)).sum::<f64>())
    }
}

impl<T: Real> Prox<T> for Sigmoid<T> {
    fn validate(&self) -> Result<()> {
        place::validate(1, self.height)
    }

    fn scale(&mut self, factor: T) {
        self.height *= factor;
    }

    fn value(&self, u: &[T]) -> T {
        let rounding = slack(self.height);
        if !u.iter().all(|&u| u >= -rounding && u <= self.height + rounding) {
            return T::infinity();
        }
        if self.height == T::zero() { T::zero() } else { self.sum(u, |u| entropy(u) - 0.5 * u * u) }
    }

    /// At the `u = s(t)` with `t - s(t) = w`, the subgradient of `psi`.
    fn conjugate_value(&self, w: &[T]) -> T {
        if self.height == T::zero() {
            return T::zero();
        }
        self.sum(w, |w| {
            let [t] = invert([w], -1.0, 1.0);
            let u = logistic(t);
            // u w - h(u) + u^2/2 with h(u) = u t - q*(t)
            softplus(t) - u * (t - w) + 0.5 * u * u
        })
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        for v in v {
            let at = |v| self.height * T::of(logistic(self.source(tau, v)));
            *v = if v.is_nan() || self.height > T::zero() { at(*v) } else { T::zero() };
        }
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        assert!(
            v.len() == g.len() && v.len() == out.len(),
            "the fields of a pullback have different lengths"
        );
        if self.height == T::zero() {
            return out.fill(T::zero());
        }
        for ((&v, &g), out) in v.iter().zip(g).zip(out) {
            let (u, tau) = (logistic(self.source(tau, v)), tau.to_double());
            let slope = u * (1.0 - u);
            *out = g * T::of(slope / ((1.0 - tau) * slope + tau));
        }
    }

    /// `tau (h(u) + q*(t) - u t - 1/2 (u - p)^2)`, where `t` is the gradient of `h` at `p`.
    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], _p: &[T]) -> T {
        let outside: T = indicator(self.value(u) < T::infinity());
        if self.height == T::zero() || outside > T::zero() {
            return outside;
        }
        let height = self.height.to_double();
        let terms = u.iter().zip(v).map(|(u, &v)| {
            let (u, t) = (u.to_double() / height, self.source(tau, v));
            entropy(u) + softplus(t) - u * t - 0.5 * (u - logistic(t)).powi(2)
        });
        tau * T::of(height * height * terms.sum::<f64>().max(0.0))
    }
}

#[inline(always)]
fn logistic(t: f64) -> f64 {
    1.0 / (1.0 + exp(-t))
}

fn softplus(t: f64) -> f64 {
    t.max(0.0) + (-t.abs()).exp().ln_1p()
}

fn entropy(u: f64) -> f64 {
    let part = |u: f64| if u > 0.0 { u * u.ln() } else { 0.0 };
    part(u) + part(1.0 - u)
}

/// The `t` with `a s(t) + b t = y`, for `b > 0` and `a + b >= 0`, of several `y` at once, each as if it were alone: Newton's
/// method in a bracket.
#[inline(always)]
pub(crate) fn invert<const N: usize>(y: [f64; N], a: f64, b: f64) -> [f64; N] {
    if a == 0.0 {
        return y.map(|y| y / b);
    }
    let (mut low, mut high) = (y.map(|y| (y - a.max(0.0)) / b), y.map(|y| (y - a.min(0.0)) / b));
    let mut t: [f64; N] = std::array::from_fn(|i| 0.5 * (low[i] + high[i]));
    let mut done = [false; N];
    for _ in 0..100 {
        for i in 0..N {
            let s = logistic(t[i]);
            let off = a * s + b * t[i] - y[i];
            (low[i], high[i]) = if off < 0.0 { (t[i], high[i]) } else { (low[i], t[i]) };
            let (newton, half) = (t[i] - off / (a * s * (1.0 - s) + b), 0.5 * (low[i] + high[i]));
            let next = if (newton > low[i]) & (newton < high[i]) { newton } else { half };
            done[i] |= (next - t[i]).abs() <= f64::EPSILON * t[i].abs();
            t[i] = if done[i] { t[i] } else { next };
        }
        if done == [true; N] {
            break;
        }
    }
    t
}
