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
//! [`Unrolling`](crate::network::Unrolling) by the triangle inequality, which is coarser. The recursion ends in a bound of the Lipschitz constant of the whole
//! network. It supposes that every layer meets its worst input, which all cannot at once: the constant at an image,
//! the norm of the [`Jacobian`](super::Jacobian) there, is far less.

use crate::network::{LayerMemory, Network};
use crate::operator::convolution_norm_bound;
use crate::{Real, Result};
use rayon::prelude::*;

/// Frequencies along each axis at which norms are taken: within 0.12 % of the truth for 3x3 kernels.
const FREQUENCIES: usize = 128;

/// The bound, and the norms that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct LipschitzBound {
    /// `||L_0||..||L_K||`, each no less than the norm on images of any size.
    pub norms: Vec<f64>,
    /// `tau_k ||L_k||^2` of layer `k = 1..K-1`, at index `k - 1`.
    pub steps: Vec<f64>,
    /// `||dx^|| <= bound ||dz||`.
    pub bound: f64,
}

impl LipschitzBound {
    /// The bound for `network`, on images of any size.
    /// Fails when kernels are so large that their norms cannot be bounded.
    pub fn of<T: Real>(network: &Network<T>) -> Result<Self> {
        let norm = |theta| Ok(convolution_norm_bound(theta, FREQUENCIES)?.upper);
        let norms: Vec<f64> = network.theta.par_iter().map(norm).collect::<Result<_>>()?;
        let tau: Vec<f64> = network.tau.iter().map(|tau| tau.to_double()).collect();
        let steps: Vec<f64> = tau.iter().zip(&norms[1..]).map(|(tau, norm)| tau * norm * norm).collect();
        let (mut before, mut u, mut image) = (0.0, norms[0], 0.0);
        for k in 1..norms.len() {
            let LayerMemory { inertia, memory, extrapolation } = network.unrolling.layer_memory::<f64>(k);
            let last = k + 1 == norms.len();
            let y = if last { u } else { (1.0 + inertia) * u + inertia * before };
            let next = (1.0 - memory) * (norms[k] * y + 1.0) + memory * image;
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
        Ok(Self { norms, steps, bound: image })
    }

    /// Whether `||I - tau_k L_k L_k*|| <= 1` in every layer.
    pub fn layers_are_non_expansive(&self) -> bool {
        self.steps.iter().all(|&step| step <= 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Jacobian;
    use crate::engine::Reference;
    use crate::field::Field;
    use crate::laws::random_field;
    use crate::network::{Architecture, Unrolling};
    use crate::operator::{Filters, NormParams, PowerState, spectral_norm};

    fn jacobian_norm(network: &Network<f64>, seed: u64) -> f64 {
        let sizes = network.architecture();
        let grid = sizes.grid(12, 9).unwrap();
        let values = random_field::<f64>(sizes.channels * grid.pixels(), seed);
        let z = Field::from_planar(1, sizes.channels, grid, &values).unwrap();
        let jacobian = Jacobian::at(&Reference, network, &z).unwrap();
        spectral_norm(&jacobian, &mut PowerState::new(&jacobian, seed), &NormParams::default()).norm
    }

    #[test]
    fn no_jacobian_exceeds_it() {
        for (channels, seed) in [(1, 1), (3, 2)] {
            let sizes = Architecture { depth: 4, features: 4, kernel: 3, channels };
            // Thresholds that clip nothing and something; steps that are safe and that are not.
            for (lambda, stretch) in [(1e9, 1.0), (0.3, 1.0), (1e9, 2.5)] {
                let mut network = Network::<f32>::glorot(sizes, lambda, seed).unwrap().cast::<f64>();
                for unrolling in
                    [Unrolling::Inertial, Unrolling::ChambollePock, Unrolling::ChambollePockAccelerated]
                {
                    let other = Network { unrolling, bounded: true, ..network.clone().with_knots(3) };
                    let (norm, bound) = (jacobian_norm(&other, seed), LipschitzBound::of(&other).unwrap());
                    assert!(norm <= bound.bound * (1.0 + 1e-12), "{unrolling:?}: {norm} above {bound:?}");
                }
                network.tau.iter_mut().for_each(|tau| *tau *= stretch);
                let bound = LipschitzBound::of(&network).unwrap();
                assert_eq!(bound.layers_are_non_expansive(), stretch == 1.0, "{bound:?}");
                let norm = jacobian_norm(&network, seed);
                assert!(norm <= bound.bound * (1.0 + 1e-12), "{norm} above {bound:?}");
            }
        }
    }

    #[test]
    fn it_is_attained_where_every_layer_meets_its_worst_input() {
        // One tap, one feature: L_k is the number l_k, and x^ = z - l_2 ((1 - tau l_1^2) l_0 + tau l_1) z, with
        // tau l_1^2 = 3 and signs that let everything add up: 1 + 2 (2 * 0.5 + 1.5) = 6.
        let theta = [-0.5, 2.0, -2.0].map(|l| Filters::new(1, 1, 1, vec![l]).unwrap());
        let network = Network::new(theta.to_vec(), vec![0.75], vec![1e9]).unwrap();
        let bound = LipschitzBound::of(&network).unwrap();
        assert!((bound.bound - 6.0).abs() < 1e-12, "{bound:?}");
        assert!((jacobian_norm(&network, 1) - bound.bound).abs() < 1e-9);
    }

    /// One tap, one feature, nothing clipped: `L_k` is the number `l_k`.
    fn of_taps(unrolling: Unrolling, l: &[f64], tau: &[f64]) -> Network<f64> {
        let theta = l.iter().map(|l| Filters::new(1, 1, 1, vec![*l]).unwrap()).collect();
        let network = Network::new(theta, tau.to_vec(), vec![1e9]).unwrap();
        Network { unrolling, ..network }
    }

    #[test]
    fn with_memory_it_is_attained_as_well() {
        // From u_0 = 0: u_1 = tau l_1 z = 1.5 z, and x^ = (1 - beta)(1 + 2 * 1.5) z + beta z.
        let accelerated = 3f64.sqrt() / (1.0 + 3f64.sqrt());
        for (unrolling, beta) in [
            (Unrolling::Inertial, 0.0),
            (Unrolling::ChambollePock, 0.5),
            (Unrolling::ChambollePockAccelerated, accelerated),
        ] {
            let network = of_taps(unrolling, &[0.0, 1.0, -2.0], &[1.5]);
            let (bound, expected) = (LipschitzBound::of(&network).unwrap().bound, 4.0 - 3.0 * beta);
            assert!((bound - expected).abs() < 1e-12, "{unrolling}: {bound}");
            assert!((jacobian_norm(&network, 1) - expected).abs() < 1e-9, "{unrolling}");
        }
    }

    #[test]
    fn inertia_and_extrapolation_count() {
        // Small filters and long steps, so that L* y hardly changes the image: u_1 = 1, and with the inertia of 1/4
        // v_2 = 5/4 + 1 - 1/80, against 5/4 + 1 + 1/80 in the bound.
        let inertial = of_taps(Unrolling::Inertial, &[0.0, 0.01, 0.01, -2.0], &[100.0, 100.0]);
        let bound = LipschitzBound::of(&inertial).unwrap().bound;
        assert!((bound - (1.0 + 2.0 * 2.2625)).abs() < 1e-12, "{bound}");
        assert!((jacobian_norm(&inertial, 1) - (1.0 + 2.0 * 2.2375)).abs() < 1e-9);
        // Here r_2 = 1.005 in the bound, v_2 = 1 + 2 * 1.005 + 1, and half of r_2 is remembered.
        let extrapolated = of_taps(Unrolling::ChambollePock, &[0.0, 0.01, 0.01, -2.0], &[100.0, 100.0]);
        let bound = LipschitzBound::of(&extrapolated).unwrap().bound;
        assert!((bound - (0.5 * (1.0 + 2.0 * 4.01) + 0.5 * 1.005)).abs() < 1e-12, "{bound}");
        let norm = jacobian_norm(&extrapolated, 1);
        assert!((norm - (0.5 * (1.0 + 2.0 * 1.99) + 0.5 * 0.995)).abs() < 1e-9, "{norm}");
        // An activation that is steeper than 1 stretches by as much.
        let mut steep = of_taps(Unrolling::Inertial, &[0.0, 1.0, -2.0], &[1.5]);
        steep.activation[0] = crate::prox::PiecewiseLinear::new(1, vec![1e9], vec![3.0, 3.0]).unwrap().into();
        assert!((LipschitzBound::of(&steep).unwrap().bound - 10.0).abs() < 1e-12);
        assert!((jacobian_norm(&steep, 1) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_layer_that_is_more_than_a_step_long_expands() {
        let theta = [1.0, 1.0, 1.0].map(|l| Filters::new(1, 1, 1, vec![l]).unwrap());
        let network = |tau: f64| Network::new(theta.to_vec(), vec![tau], vec![1.0]).unwrap();
        assert_eq!(LipschitzBound::of(&network(1.0)).unwrap().bound, 3.0);
        assert_eq!(LipschitzBound::of(&network(4.0)).unwrap().bound, 8.0);
    }
}
