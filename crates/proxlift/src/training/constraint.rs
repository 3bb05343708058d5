//! What the filters are held to: a term of `E` in `theta`, whose backward step is a projection.

use crate::network::{Activation, Network};
use crate::operator::Filters;

/// The set that the filters stay in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Constraint {
    /// All filters, as the paper has it.
    #[default]
    Free,
    /// Filters that do not see a constant, `sum_t w[j,c,t] = 0`. The mean of an image is far larger than its details:
    /// a filter that sees it has a block of large curvature, in which the majorant allows short steps only.
    ZeroMean,
}

impl Constraint {
    /// The gradient along the set. The set is a subspace, so steps along it stay in it.
    pub fn along(self, gradient: &mut Filters<f32>) {
        if self == Self::ZeroMean {
            gradient.center();
        }
    }

    /// The backward step: projects the filters of `network`, and its activations onto proxes.
    pub fn project(self, network: &mut Network<f32>) {
        if self == Self::ZeroMean {
            network.theta.iter_mut().for_each(Filters::center);
        }
        network.activation.iter_mut().for_each(Activation::project);
    }
}

impl std::fmt::Display for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Self::ZeroMean { ", filters of zero mean" } else { "" })
    }
}
