//! The weighted l1 norm; its prox is soft-thresholding.

use super::threshold::{cast, clip_plane, plane_len, pull_where, several, validate};
use super::{Prox, indicator, slack};
use crate::real::{sum1, sum3};
use crate::{Real, Result};

/// `psi(u) = sum_j lambda_j ||u_j||_1`.
///
/// ```text
/// prox_{tau psi}(v) = sign(v) max(|v| - tau lambda, 0)
/// psi*(w)           = 0 if |w_j| <= lambda_j everywhere, else +inf
/// ```
///
/// Its conjugate partner is [`super::BoxClip`]. The derivative at `|v| = tau lambda` is taken as 0.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SoftThreshold<T> {
    thresholds: Vec<T>,
}

impl<T: Real> SoftThreshold<T> {
    /// One threshold for all features or one for each.
    /// Fails when a threshold is negative or not finite, or none is given.
    pub fn new(thresholds: Vec<T>) -> Result<Self> {
        validate(&thresholds)?;
        Ok(Self { thresholds })
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> SoftThreshold<U> {
        SoftThreshold { thresholds: cast(&self.thresholds) }
    }

    /// The thresholds, one for all features or one for each.
    pub(crate) fn thresholds(&self) -> &[T] {
        &self.thresholds
    }

    fn pixels(&self, len: usize) -> usize {
        plane_len(len, self.thresholds.len())
    }
}

impl<T: Real> Prox<T> for SoftThreshold<T> {
    fn validate(&self) -> Result<()> {
        validate(&self.thresholds)
    }

    fn planes(&self) -> Option<usize> {
        several(self.thresholds.len())
    }

    fn scale(&mut self, factor: T) {
        self.thresholds.iter_mut().for_each(|threshold| *threshold *= factor);
    }

    fn value(&self, u: &[T]) -> T {
        let planes = u.chunks_exact(self.pixels(u.len())).zip(&self.thresholds);
        T::of(planes.map(|(plane, t)| t.to_double() * sum1(plane, |u| u.abs().to_double())).sum())
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let mut planes = w.chunks_exact(self.pixels(w.len())).zip(&self.thresholds);
        indicator(planes.all(|(plane, &t)| plane.iter().all(|w| w.abs() <= t + slack(t))))
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let pixels = self.pixels(v.len());
        for (plane, &threshold) in v.chunks_exact_mut(pixels).zip(&self.thresholds) {
            let t = tau * threshold;
            for v in plane {
                let clipped = if *v < -t { -t } else { *v };
                *v -= if clipped > t { t } else { clipped };
            }
        }
    }

    /// `clip(v, -lambda, lambda)`, for every `tau`.
    fn prox_conjugate(&self, _tau: T, v: &[T], out: &mut [T]) {
        out.copy_from_slice(v);
        let pixels = self.pixels(v.len());
        let planes = out.chunks_exact_mut(pixels).zip(&self.thresholds);
        planes.for_each(|(plane, &t)| clip_plane(plane, (-t, t)));
    }

    /// `sum |u| (t - sign(u) (v - p))`, since `t |p| = p (v - p)` for `t = tau lambda`.
    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        let pixels = self.pixels(u.len());
        let planes = u.chunks_exact(pixels).zip(v.chunks_exact(pixels)).zip(p.chunks_exact(pixels));
        let sums = planes.zip(&self.thresholds).map(|(((u, v), p), &threshold)| {
            let t = tau * threshold;
            // Never negative, as |v - p| <= t; what rounding leaves below zero is cut.
            sum3(u, v, p, |u, v, p| (u.abs() * (t - u.signum() * (v - p))).to_double().max(0.0))
        });
        T::of(sums.sum())
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        // With t = 0 the prox is the identity and zero is no kink.
        let moves = |t: T, v: T| v.abs() > t || t == T::zero();
        pull_where(self.thresholds.iter().map(|&threshold| tau * threshold), (v, g, out), moves);
    }
}
