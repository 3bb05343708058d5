//! Total variation as the prior: a convex problem, solved to its optimum by a primal-dual method.

use super::data::{DataTerm, Likelihood};
use super::degradation::Forward;
use crate::image::Channels;
use crate::operator::{FiniteDifferences, LinearOperator, Stacked};
use crate::prox::{BoxClip, GroupL2, Joined, KullbackLeibler, Prox};
use crate::solver::{Course, Flat, PrimalDualSteps, Until, Watcher, condat_vu, safe_norm};
use crate::{Error, Result};

/// `sigma_dual / tau`: pictures change by about a tenth where the dual variables change by the weight.
const BALANCE: f64 = 0.01;

/// `lambda / sigma` in `1/2 ||A x - y||^2 + lambda TV(x)`.
pub(super) fn weight_per_sigma(channels: Channels) -> f64 {
    match channels {
        Channels::Grey => 0.11,
        Channels::Rgb => 0.16,
    }
}

/// A prior with a convex penalty `h(D x)`, `h` a sum of norms of the differences at each pixel.
pub(super) struct Variation {
    differences: FiniteDifferences,
    norm: GroupL2<f32>,
}

impl Variation {
    pub fn new(forward: &Forward, lambda: f64) -> Result<Self> {
        let planes = 2 * forward.channels;
        Ok(Self {
            differences: FiniteDifferences::new(forward.channels, forward.scene.0, forward.scene.1)?,
            norm: GroupL2::new(planes, planes, vec![lambda as f32])?,
        })
    }

    pub fn value(&self, x: &[f32]) -> f64 {
        let mut differences = vec![0.0; LinearOperator::<f32>::range_len(&self.differences)];
        self.differences.apply(x, &mut differences);
        f64::from(self.norm.value(&differences))
    }

    /// `argmin_x f(x) + TV(x)`, from the `x` that it is given.
    pub fn solve(
        &self,
        (data, seen, likelihood): (&DataTerm, &[f32], Likelihood),
        forward: &Forward,
        x: &mut Vec<f32>,
        until: &Until,
        watch: &mut Watcher<'_, f32>,
    ) -> Result<Course> {
        let Self { differences, norm } = self;
        match (data, likelihood) {
            (DataTerm::Gaussian { fit, .. }, _) => {
                let steps = PrimalDualSteps::for_norms(0.0, differences.norm(), BALANCE);
                condat_vu((&Flat, fit, norm), differences, x, steps, until, watch)
            }
            (DataTerm::Poisson(_), Likelihood::Poisson { gain }) => {
                let counts = seen.iter().map(|y| y.max(0.0)).collect();
                let counts = KullbackLeibler::new(counts, (1.0 / gain) as f32)?;
                let both = Stacked::new::<f32>(forward.operator.clone(), *differences)?;
                let joined = Joined::new(counts, seen.len(), norm.clone());
                let positive = BoxClip::interval(vec![0.0], vec![f32::MAX])?;
                // The weights of counts are large: so are their dual variables.
                let steps =
                    PrimalDualSteps::for_norms(0.0, safe_norm::<f32>(&both), BALANCE / gain.powi(2).min(1.0));
                condat_vu((&Flat, &positive, &joined), &both, x, steps, until, watch)
            }
            _ => Err(Error::invalid("counts need a gain")),
        }
    }
}
