//! The indicator of a box; its prox is `clip`, the activation of the paper's network.

use super::threshold::{cast, clip_plane, plane_len, pull_where, several, validate};
use super::{Prox, indicator, slack};
use crate::{Real, Result, real::sum1};

/// `psi(u) = 0` if `lo_j <= u_j <= hi_j` everywhere, else `+inf`.
///
/// ```text
/// prox_{tau psi}(v) = clip(v, lo, hi)       for every tau
/// psi*(w)           = sum max(lo w, hi w)   (= lambda ||w||_1 for the box [-lambda, lambda])
/// ```
///
/// Its conjugate partner for symmetric boxes is [`super::SoftThreshold`]. The derivative at a bound is taken as 0.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct BoxClip<T> {
    lo: Vec<T>,
    hi: Vec<T>,
}

impl<T: Real> BoxClip<T> {
    /// The boxes `[-lambda_j, lambda_j]`, one threshold for all features or one for each.
    /// Fails when a threshold is negative or not finite, or none is given.
    pub fn symmetric(thresholds: Vec<T>) -> Result<Self> {
        validate(&thresholds)?;
        Ok(Self { lo: thresholds.iter().map(|&t| -t).collect(), hi: thresholds })
    }

    /// The boxes `[lo_j, hi_j]`, one for all features or one for each.
    /// Fails when a bound is not finite, a box is empty, or the counts differ.
    pub fn interval(lo: Vec<T>, hi: Vec<T>) -> Result<Self> {
        refuse!(lo.is_empty() || lo.len() != hi.len() =>
            "{} lower and {} upper bounds given", lo.len(), hi.len());
        for (&lo, &hi) in lo.iter().zip(&hi) {
            refuse!(!(lo.is_finite() && hi.is_finite() && lo <= hi) =>
                "[{lo}, {hi}] is not an interval with finite ends");
        }
        Ok(Self { lo, hi })
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> BoxClip<U> {
        BoxClip { lo: cast(&self.lo), hi: cast(&self.hi) }
    }

    /// The boxes, one for all features or one for each.
    pub(crate) fn bounds(&self) -> impl ExactSizeIterator<Item = (T, T)> {
        self.lo.iter().copied().zip(self.hi.iter().copied())
    }
}

impl<T: Real> Prox<T> for BoxClip<T> {
    fn validate(&self) -> Result<()> {
        Self::interval(self.lo.clone(), self.hi.clone()).map(drop)
    }

    fn planes(&self) -> Option<usize> {
        several(self.lo.len())
    }

    fn scale(&mut self, factor: T) {
        self.lo.iter_mut().chain(&mut self.hi).for_each(|bound| *bound *= factor);
    }

    fn value(&self, u: &[T]) -> T {
        let planes = u.chunks_exact(plane_len(u.len(), self.lo.len()));
        indicator(planes.zip(self.bounds()).all(|(plane, (lo, hi))| {
            let (lo, hi) = (lo - slack(lo), hi + slack(hi));
            plane.iter().all(|&u| lo <= u && u <= hi)
        }))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let planes = w.chunks_exact(plane_len(w.len(), self.lo.len()));
        let sums = planes.zip(self.bounds()).map(|(plane, (lo, hi))| {
            sum1(plane, |w| if w < T::zero() { (lo * w).to_double() } else { (hi * w).to_double() })
        });
        T::of(sums.sum())
    }

    fn prox_in_place(&self, _tau: T, v: &mut [T]) {
        let planes = v.chunks_exact_mut(plane_len(v.len(), self.lo.len()));
        planes.zip(self.bounds()).for_each(|(plane, bounds)| clip_plane(plane, bounds));
    }

    fn pullback(&self, _tau: T, v: &[T], g: &[T], out: &mut [T]) {
        pull_where(self.bounds(), (v, g, out), |(lo, hi), v| lo < v && v < hi);
    }
}
