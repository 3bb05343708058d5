//! The divergence of Kullback and Leibler from data: Poisson noise.

use super::{Prox, slack};
use crate::real::{sum2, sum3};
use crate::{Real, Result, error::check_not_negative};

/// `psi(u) = weight sum u - y + y log(y / u)` for `u >= 0`, else `+inf`: the negative logarithm of the likelihood of counts
/// `y = gain Poisson(u / gain)` with `weight = 1 / gain`.
///
/// ```text
/// prox_{tau psi}(v) = 1/2 (a + sqrt(a^2 + 4 tau weight y)),   a = v - tau weight
/// psi*(w)           = -weight sum y log(1 - w / weight) if w < weight (or w = weight where y = 0), else +inf
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KullbackLeibler<T> {
    y: Vec<T>,
    weight: T,
}

impl<T: Real> KullbackLeibler<T> {
    /// Fails when the weight is zero, negative or not finite, or a count is negative or not finite.
    pub fn new(y: Vec<T>, weight: T) -> Result<Self> {
        check_not_negative("the weight of the data", weight.to_double())?;
        refuse!(weight == T::zero() => "the weight of the data is zero");
        let below = y.iter().find(|y| !(y.is_finite() && **y >= T::zero()));
        refuse!(below.is_some() => "a count is {}, but counts are finite and not negative", below.map_or(T::zero(), |y| *y));
        Ok(Self { y, weight })
    }
}

/// `u - y + y log(y / u)`.
fn divergence(u: f64, y: f64) -> f64 {
    if y == 0.0 {
        return if u >= -slack(0.0f64) { u.max(0.0) } else { f64::INFINITY };
    }
    if u > 0.0 { u - y + y * (y / u).ln() } else { f64::INFINITY }
}

/// The prox and the root in it, for `t = tau weight`.
fn root<T: Real>(v: T, y: T, t: T) -> (T, T) {
    let a = v - t;
    let root = (a * a + T::of(4.0) * t * y).sqrt();
    // Without cancellation on either side of zero.
    let p = if a > T::zero() {
        T::of(0.5) * (a + root)
    } else if root - a > T::zero() {
        T::of(2.0) * t * y / (root - a)
    } else {
        v.min(T::zero()).max(T::zero())
    };
    (p, root)
}

impl<T: Real> Prox<T> for KullbackLeibler<T> {
    fn scale(&mut self, factor: T) {
        self.y.iter_mut().for_each(|y| *y *= factor);
        self.weight *= factor;
    }

    fn value(&self, u: &[T]) -> T {
        let sum = sum2(u, &self.y, |u, y| divergence(u.to_double(), y.to_double()));
        T::of(self.weight.to_double() * sum)
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let weight = self.weight.to_double();
        T::of(sum2(w, &self.y, |w, y| {
            let (w, y) = (w.to_double(), y.to_double());
            match w < weight {
                true => -weight * y * (-w / weight).ln_1p(),
                false if y == 0.0 && w <= weight + slack(T::of(weight)).to_double() => 0.0,
                false => f64::INFINITY,
            }
        }))
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        assert_eq!(v.len(), self.y.len(), "the field is not as long as the data");
        let t = tau * self.weight;
        v.iter_mut().zip(&self.y).for_each(|(v, &y)| *v = if v.is_nan() { *v } else { root(*v, y, t).0 });
    }

    /// `p / sqrt(a^2 + 4 tau weight y)`.
    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        let t = tau * self.weight;
        for ((out, &g), (&v, &y)) in out.iter_mut().zip(g).zip(v.iter().zip(&self.y)) {
            let (p, root) = root(v, y, t);
            *out = if root > T::zero() { g * p / root } else { T::zero() };
        }
    }

    /// `tau weight y (u / p - 1 - log(u / p))`, and `u (tau weight - v)` where `y` and `p` are zero.
    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        assert!(v.len() == self.y.len() && u.len() == v.len(), "the field is not as long as the data");
        let t = (tau * self.weight).to_double();
        let counted = sum3(u, p, &self.y, |u, p, y| {
            let (y, ratio) = (y.to_double(), u.to_double() / p.to_double());
            match (y > 0.0, ratio > 0.0) {
                (true, true) => t * y * ((ratio - 1.0) - (ratio - 1.0).ln_1p()).max(0.0),
                (true, false) => f64::INFINITY,
                (false, _) => 0.0,
            }
        });
        let zero = u.iter().zip(v).zip(p).zip(&self.y);
        let zero = zero.filter(|&(((_, _), p), y)| *y == T::zero() && *p == T::zero());
        let zero = zero.map(|(((&u, &v), _), _)| u.to_double() * (t - v.to_double()).max(0.0));
        T::of(counted + zero.sum::<f64>())
    }
}
