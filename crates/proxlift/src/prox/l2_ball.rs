//! The indicator of l2 balls, group by group; its prox is the projection of isotropic total variation.

use super::group::{BLOCK, Groups, pull_groups};
use super::{Prox, indicator, slack};
use crate::{Real, Result};

/// `psi(u) = 0` if `||u_G(p)|| <= lambda_G` for every group `G` of planes and every pixel `p`, else `+inf`.
///
/// ```text
/// prox_{tau psi}(v)_G(p) = v_G(p) min(1, lambda_G / ||v_G(p)||)      for every tau
/// psi*(w)                = sum_{G,p} lambda_G ||w_G(p)||
/// ```
///
/// Its conjugate partner is [`super::GroupL2`]. On the sphere the derivative is that of the outside.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct L2Ball<T> {
    pub(super) groups: Groups<T>,
}

impl<T: Real> L2Ball<T> {
    /// Balls for `planes` planes in groups of `size` consecutive ones, one radius for all groups or one for each.
    pub fn new(planes: usize, size: usize, radii: Vec<T>) -> Result<Self> {
        Ok(Self { groups: Groups::new(planes, size, radii)? })
    }

    /// The planes of a group, and the radii: one for all groups or one for each.
    pub(crate) fn radii(&self) -> (usize, &[T]) {
        (self.groups.size, &self.groups.thresholds)
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> L2Ball<U> {
        L2Ball { groups: self.groups.cast() }
    }
}

impl<T: Real> Prox<T> for L2Ball<T> {
    fn validate(&self) -> Result<()> {
        self.groups.validate()
    }

    fn planes(&self) -> Option<usize> {
        Some(self.groups.planes)
    }

    fn scale(&mut self, factor: T) {
        self.groups.thresholds.iter_mut().for_each(|radius| *radius *= factor);
    }

    fn value(&self, u: &[T]) -> T {
        let mut norms = [T::zero(); BLOCK];
        indicator(self.groups.blocks(u.len()).all(|block| {
            block.norms(u, &mut norms);
            let bound = block.threshold + slack(block.threshold);
            norms[..block.len].iter().all(|&norm| norm <= bound)
        }))
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let mut norms = [T::zero(); BLOCK];
        let sums = self.groups.blocks(w.len()).map(|block| {
            block.norms(w, &mut norms);
            block.threshold.to_double() * norms[..block.len].iter().map(|norm| norm.to_double()).sum::<f64>()
        });
        T::of(sums.sum())
    }

    fn prox_in_place(&self, _tau: T, v: &mut [T]) {
        let mut factors = [T::zero(); BLOCK];
        for block in self.groups.blocks(v.len()) {
            block.norms(v, &mut factors);
            for factor in &mut factors {
                *factor = if *factor > block.threshold { block.threshold / *factor } else { T::one() };
            }
            block.scale(&factors, v);
        }
    }

    /// Inside `g`; outside `lambda / ||v|| (g - v <v, g> / ||v||^2)`, the part of `g` along the sphere.
    fn pullback(&self, _tau: T, v: &[T], g: &[T], out: &mut [T]) {
        pull_groups(&self.groups, (v, g, out), |radius, norm, along| {
            let factor = radius / norm;
            if norm < radius {
                (T::one(), T::zero())
            } else if norm > T::zero() {
                (factor, -factor * along / (norm * norm))
            } else {
                (T::zero(), T::zero())
            }
        });
    }
}
