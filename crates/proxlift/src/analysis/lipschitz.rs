//! How much a network can amplify a difference between two images of any size: a bound that is proven.
//!
//! Let `dz` be the difference of two inputs and `du_k`, `dx^` those of what the network makes of them. A layer is
//! `u_k = s_k(u_{k-1} - tau_k L_k (L_k* u_{k-1} - z))`, and an activation `s_k` with slopes in `[0, p_k]` stretches no
//! difference by more than `p_k`. So
//!
//! ```text
//! ||du_0|| <= ||L_0|| ||dz||
//! ||du_k|| <= p_k (rho_k ||du_{k-1}|| + tau_k ||L_k|| ||dz||)       rho_k = max(1, tau_k ||L_k||^2 - 1)
//! ||dx^||  <= ||dz|| + ||L_K|| ||du_{K-1}||
//! ```
//!
//! where `rho_k >= ||I - tau_k L_k L_k*||`, because the eigenvalues of `L_k L_k*` lie in `[0, ||L_k||^2]`; it is no
//! more than 1 where `tau_k ||L_k||^2 <= 2`. With momentum or bounds the same is done with every difference of
//! [`Unrolling`](crate::network::Unrolling) by the triangle inequality, which is coarser; so it is where layers have a synthesis
//! `M_k` of their own, whose norm then stands for that of `L_k*`. The recursion ends in a bound of the Lipschitz constant of the whole
//! network. It supposes that every layer meets its worst input, which all cannot at once: the constant at an image,
//! the norm of the [`Jacobian`](super::Jacobian) there, is far less.
//!
//! Where all layers have the same operator, far more is true: see `analysis/tied.rs`. The bound is the lesser of the two.
//!
//! Images are those that the network is given. Around a picture it may be given a mirrored [border](Network::border), whose
//! pixels count here like the others.

use super::tied;
use crate::network::{Architecture, LayerMemory, Network};
use crate::operator::{Filters, convolution_norm_bound};
use crate::{Real, Result};
use rayon::prelude::*;

/// Frequencies along each axis at which norms are taken: within 0.12 % of the truth for 3x3 kernels.
const FREQUENCIES: usize = 128;

/// The same where all layers have one operator, whose step may be as long as its norm allows: the finest that takes no more than
/// about so many operations.
const FINE: [usize; 2] = [512, 256];
const MOST_FOR_FINE: f64 = 1e9;

/// The bound, and the norms that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LipschitzBound {
    /// `||L_0||..||L_K||`, each no less than the norm on images of any size.
    pub norms: Vec<f64>,
    /// `||M_k||` of layer `k = 1..K-1`, at index `k - 1`, where layers have a synthesis of their own.
    pub of_synthesis: Vec<f64>,
    /// `tau_k ||L_k|| ||M_k||` of layer `k = 1..K-1`, at index `k - 1`; `tau_k ||L_k||^2` where the synthesis is the adjoint.
    pub steps: Vec<f64>,
    /// `||dx^|| <= bound ||dz||`.
    pub bound: f64,
    /// Whether it is proven that `||dx^||^2 <= <dz, dx^>`; then `bound` is 1.
    pub firmly_non_expansive: bool,
}

impl LipschitzBound {
    /// The bound for `network`, on images of any size.
    /// Fails when kernels are so large that their norms cannot be bounded.
    pub fn of<T: Real>(network: &Network<T>) -> Result<Self> {
        Self::at(network, grids(network).next().unwrap_or(FREQUENCIES))
    }

    /// The same with about so many operations at most: at fewer frequencies, which makes the bound coarser, or none where
    /// that does not help.
    pub fn within<T: Real>(network: &Network<T>, most: f64) -> Result<Option<Self>> {
        let (sizes, operators) = (network.architecture(), operators(network));
        let mut fine = grids(network)
            .filter(|&grid| grid > 4 * (sizes.kernel - 1) && operations(operators, &sizes, grid) <= most);
        fine.next().map(|grid| Self::at(network, grid)).transpose()
    }

    fn at<T: Real>(network: &Network<T>, frequencies: usize) -> Result<Self> {
        let norm = |theta: &Filters<T>| Ok(convolution_norm_bound(theta, frequencies)?.upper);
        let norms = match network.has_one_operator() {
            true => vec![norm(&network.theta[0])?; network.theta.len()],
            false => network.theta.par_iter().map(norm).collect::<Result<_>>()?,
        };
        let of_synthesis: Vec<f64> = network.synthesis.par_iter().map(norm).collect::<Result<_>>()?;
        let synthesis = |k: usize| of_synthesis.get(k - 1).copied().unwrap_or(norms[k]);
        let tau: Vec<f64> = network.tau.iter().map(|tau| tau.to_double()).collect();
        let steps: Vec<f64> = (1..).zip(&tau).map(|(k, tau)| tau * norms[k] * synthesis(k)).collect();
        let (mut before, mut u, mut image) = (0.0, norms[0], 0.0);
        for k in 1..norms.len() {
            let LayerMemory { inertia, memory, extrapolation } = network.unrolling.layer_memory::<f64>(k);
            let last = k + 1 == norms.len();
            let y = if last { u } else { (1.0 + inertia) * u + inertia * before };
            let next = (1.0 - memory) * (synthesis(k) * y + 1.0) + memory * image;
            if last {
                image = next;
                break;
            }
            let v = if network.is_plain() {
                (steps[k - 1] - 1.0).max(1.0) * y + tau[k - 1] * norms[k]
            } else {
                y + tau[k - 1] * norms[k] * ((1.0 + extrapolation) * next + extrapolation * image)
            };
            let slope = network.activation[k - 1].steepest().to_double();
            (before, u, image) = (u, slope * v, next);
        }
        let together = tied::Excess::of(network, norms[0]);
        let bound = together.map_or(image, |excess| image.min(excess.bound()));
        let firmly_non_expansive = together.is_some_and(tied::Excess::is_none);
        Ok(Self { norms, of_synthesis, steps, bound, firmly_non_expansive })
    }

    /// Whether `||I - tau_k L_k L_k*|| <= 1` in every layer.
    pub fn layers_are_non_expansive(&self) -> bool {
        self.steps.iter().all(|&step| step <= 2.0)
    }
}

/// A bound of the norm of the one operator that all layers of a network have: the one that [`LipschitzBound`] uses.
pub(crate) fn norm_of_one<T: Real>(network: &Network<T>) -> Result<f64> {
    let grid = grids(network).next().unwrap_or(FREQUENCIES);
    Ok(convolution_norm_bound(&network.theta[0], grid)?.upper)
}

/// Numbers of frequencies, the finest first.
fn grids<T: Real>(network: &Network<T>) -> impl Iterator<Item = usize> {
    let (sizes, one) = (network.architecture(), network.has_one_operator());
    let fine = FINE.into_iter().filter(move |&grid| one && operations(1, &sizes, grid) <= MOST_FOR_FINE);
    fine.chain([FREQUENCIES, FREQUENCIES / 2, FREQUENCIES / 4])
}

/// Operators that differ.
fn operators<T: Real>(network: &Network<T>) -> usize {
    if network.has_one_operator() { 1 } else { network.filters().count() }
}

/// About how many operations a bound takes for a network of so many operators of these sizes.
fn operations(operators: usize, sizes: &Architecture, grid: usize) -> f64 {
    let Architecture { features, kernel, channels, .. } = *sizes;
    let (planes, order) = ((features * channels) as f64, channels as f64);
    // Along rows, along columns, the product of the symbol with itself, and powers of that.
    let rows = planes * (kernel * kernel * grid) as f64;
    let powers = if channels > 1 { 330.0 * order.powi(3) } else { 0.0 };
    let each = planes * 8.0 * (kernel as f64 + order) + powers;
    operators as f64 * (rows + (grid * grid / 2) as f64 * each)
}
