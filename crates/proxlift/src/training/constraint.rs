//! What the parameters are held to: terms of `E` in `theta` and the activations, whose backward step is a projection.

use super::Stability;
use crate::{engine::Gradients, network::Network, operator::Filters, prox::PiecewiseLinear};

/// The set that the parameters stay in; activations stay proxes whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Constraint {
    /// Filters that do not see a constant, `sum_t w[j,c,t] = 0`. The mean of an image is far larger than its details:
    /// a filter that sees it has a block of large curvature, in which the majorant allows short steps only.
    pub zero_mean: bool,
    /// One operator and one activation for all layers; the network must start so.
    pub tied: bool,
    /// One operator for all layers, and what else a proven Lipschitz constant needs.
    pub stable: Option<Stability>,
}

impl Constraint {
    /// All filters, as the paper has it.
    pub const FREE: Self = Self { zero_mean: false, tied: false, stable: None };
    /// Filters of zero mean.
    pub const ZERO_MEAN: Self = Self { zero_mean: true, ..Self::FREE };

    /// The gradient along the set. The set is a subspace, so steps along it stay in it.
    pub fn along(self, gradient: &mut Filters<f32>) {
        if self.zero_mean {
            gradient.center();
        }
    }

    /// For tied layers, replaces the gradients of all by their mean, so that all take the same step.
    pub fn tie(self, gradients: &mut Gradients<f32>) {
        if self.tied || self.stable.is_some() {
            average(gradients.theta.iter_mut().map(Filters::weights_mut).collect());
        }
        if self.tied {
            average(gradients.activation.iter_mut().map(|g| g.knots.as_mut_slice()).collect());
            average(gradients.activation.iter_mut().map(|g| g.slopes.as_mut_slice()).collect());
        }
    }

    /// The backward step: projects the filters of `network`, and its activations onto proxes.
    pub fn project(self, network: &mut Network<f32>) {
        if self.zero_mean {
            network.filters_mut().for_each(Filters::center);
        }
        network.learned_mut().for_each(PiecewiseLinear::project);
        if let Some(stable) = self.stable {
            stable.project(network);
        }
    }

    /// The rest of it, once the steps `tau_k` follow the filters.
    pub fn settle(self, network: &mut Network<f32>) {
        if let Some(stable) = self.stable {
            stable.settle(network);
        }
    }
}

fn average(mut rows: Vec<&mut [f32]>) {
    let count = rows.len() as f32;
    for i in 0..rows.first().map_or(0, |row| row.len()) {
        let mean = rows.iter().map(|row| row[i]).sum::<f32>() / count;
        rows.iter_mut().for_each(|row| row[i] = mean);
    }
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.zero_mean { ", filters of zero mean" } else { "" })?;
        match (self.tied, self.stable) {
            (true, _) => f.write_str(", all layers tied"),
            (false, Some(_)) => f.write_str(", all operators tied"),
            (false, None) => Ok(()),
        }
    }
}
