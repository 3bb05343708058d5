//! The group l2 norm; its prox shrinks whole groups.

use super::group::{BLOCK, pull_groups};
use super::{Prox, l2_ball::L2Ball};
use crate::{Real, Result};

/// `psi(u) = sum_{G,p} lambda_G ||u_G(p)||` over the groups `G` of planes and the pixels `p`.
///
/// ```text
/// prox_{tau psi}(v)_G(p) = v_G(p) max(0, 1 - tau lambda_G / ||v_G(p)||)
/// psi*(w)                = 0 if ||w_G(p)|| <= lambda_G everywhere, else +inf
/// ```
///
/// Its conjugate partner is [`L2Ball`]. The derivative at `||v_G(p)|| = tau lambda_G` is taken as 0.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GroupL2<T> {
    /// The conjugate partner, which has the groups and their thresholds.
    ball: L2Ball<T>,
}

impl<T: Real> GroupL2<T> {
    /// The norm of `planes` planes in groups of `size` consecutive ones, one weight for all groups or one for each.
    pub fn new(planes: usize, size: usize, thresholds: Vec<T>) -> Result<Self> {
        Ok(Self { ball: L2Ball::new(planes, size, thresholds)? })
    }

    /// The projection on the dual balls, which this shrinkage leaves out of `v`.
    pub(crate) fn ball(&self) -> &L2Ball<T> {
        &self.ball
    }

    /// The same in another precision.
    pub fn cast<U: Real>(&self) -> GroupL2<U> {
        GroupL2 { ball: self.ball.cast() }
    }
}

impl<T: Real> Prox<T> for GroupL2<T> {
    fn validate(&self) -> Result<()> {
        self.ball.validate()
    }

    fn planes(&self) -> Option<usize> {
        self.ball.planes()
    }

    fn scale(&mut self, factor: T) {
        self.ball.scale(factor);
    }

    fn value(&self, u: &[T]) -> T {
        self.ball.conjugate_value(u)
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        self.ball.value(w)
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let mut factors = [T::zero(); BLOCK];
        for block in self.ball.groups.blocks(v.len()) {
            let t = tau * block.threshold;
            block.norms(v, &mut factors);
            for factor in &mut factors {
                *factor = if *factor <= t { T::zero() } else { T::one() - t / *factor };
            }
            block.scale(&factors, v);
        }
    }

    /// The projection on the balls, for every `tau`.
    fn prox_conjugate(&self, tau: T, v: &[T], out: &mut [T]) {
        self.ball.prox(tau, v, out);
    }

    /// `sum t ||u|| - <u, v - p>`, since `t ||p|| = <p, v - p>` for `t = tau lambda`.
    fn penalty_distance(&self, tau: T, u: &[T], v: &[T], p: &[T]) -> T {
        let (mut norms, mut slopes) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
        let sums = self.ball.groups.blocks(u.len()).map(|block| {
            let t = tau * block.threshold;
            block.norms(u, &mut norms);
            slopes.fill(T::zero());
            for range in block.ranges() {
                let fields = u[range.clone()].iter().zip(&v[range.clone()]).zip(&p[range]);
                slopes.iter_mut().zip(fields).for_each(|(slope, ((&u, &v), &p))| *slope += u * (v - p));
            }
            // Never negative by Cauchy-Schwarz; what rounding leaves below zero is cut.
            let terms = norms[..block.len].iter().zip(&slopes);
            terms.map(|(&norm, &slope)| (t * norm - slope).to_double().max(0.0)).sum::<f64>()
        });
        T::of(sums.sum())
    }

    /// Above the threshold `(1 - t / ||v||) g + t <v, g> / ||v||^3 v`, below it zero.
    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        pull_groups(&self.ball.groups, (v, g, out), |threshold, norm, along| {
            let t = tau * threshold;
            if t == T::zero() {
                (T::one(), T::zero())
            } else if norm > t {
                (T::one() - t / norm, t * along / (norm * norm * norm))
            } else {
                (T::zero(), T::zero())
            }
        });
    }
}
