//! The indicator of the probability simplex, across the planes of each pixel.

use super::{Prox, indicator, place, slack};
use crate::{Real, Result};

/// `psi(u) = 0` if `u_j(p) >= 0` and `sum_j u_j(p) = 1` at every pixel `p`, else `+inf`.
///
/// ```text
/// prox_{tau psi}(v) = max(v - nu, 0)     for every tau, with nu so that the sum is 1
/// psi*(w)           = sum_p max_j w_j(p)
/// ```
///
/// With `v` in falling order, `nu` is the largest of all `(v_1 + .. + v_m - 1) / m` (Held, Wolfe and Crowder 1974). The
/// prox is piecewise linear; its Jacobian takes the mean from the entries that are not zero.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Simplex<T> {
    planes: usize,
    /// What the entries sum to: 1, or the contrast.
    sum: T,
}

impl<T: Real> Simplex<T> {
    /// The simplex of `planes` numbers at each pixel. Fails when there are none.
    pub fn new(planes: usize) -> Result<Self> {
        place::validate(planes, T::one())?;
        Ok(Self { planes, sum: T::one() })
    }

    /// What the entries sum to.
    pub(crate) fn sum(&self) -> T {
        self.sum
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> Simplex<U> {
        Simplex { planes: self.planes, sum: U::of(self.sum.to_double()) }
    }

    /// `nu`, not a number where `v` has one.
    fn level(&self, v: &[f64]) -> f64 {
        if v.iter().any(|v| v.is_nan()) {
            return f64::NAN;
        }
        let (mut falling, mut sum) = (v.to_vec(), -self.sum.to_double());
        falling.sort_unstable_by(|a, b| b.total_cmp(a));
        let levels = falling.iter().zip(1..).map(|(v, m)| {
            sum += v;
            sum / f64::from(m)
        });
        levels.fold(f64::NEG_INFINITY, f64::max)
    }
}

impl<T: Real> Prox<T> for Simplex<T> {
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
        let (mut inside, bound) = (u.iter().all(|&u| u >= -slack(T::zero())), slack(self.sum).to_double());
        place::each(self.planes, u, |_, u| {
            inside &= (u.iter().sum::<f64>() - self.sum.to_double()).abs() <= bound;
        });
        indicator(inside)
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let mut sum = 0.0;
        place::each(self.planes, w, |_, w| sum += w.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        T::of(self.sum.to_double() * sum)
    }

    fn prox_in_place(&self, _tau: T, v: &mut [T]) {
        place::map(self.planes, v, |v| {
            let level = self.level(v);
            // Not max, which would turn a NaN into zero.
            v.iter_mut().for_each(|v| *v = if *v <= level { 0.0 } else { *v - level });
        });
    }

    fn pullback(&self, _tau: T, v: &[T], g: &[T], out: &mut [T]) {
        place::pull(self.planes, (v, g, out), |v, g| {
            let level = self.level(v);
            let support = || v.iter().map(|v| *v > level);
            let count = support().filter(|inside| *inside).count().max(1) as f64;
            let mean =
                g.iter().zip(support()).filter(|(_, inside)| *inside).map(|(g, _)| *g).sum::<f64>() / count;
            g.iter_mut().zip(support()).for_each(|(g, inside)| *g = if inside { *g - mean } else { 0.0 });
        });
    }
}
