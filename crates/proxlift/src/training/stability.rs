//! Training with a Lipschitz constant that is proven: what the network is held to, after every step and in its file.
//!
//! All layers have one operator and one step, and slopes and steps are those of the proof (`analysis/tied.rs`):
//!
//! - for a constant of 1, averaged dual forward-backward, slopes of at most [`averaged_slope`] and `tau >= 1`;
//! - for a constant of `c > 1`, plain dual forward-backward. Its bound is at most `c` where `A_k <= 2 c (c - 1)` for all `k`, which
//!   `1 / (4 tau^2) <= 2 c (c - 1)` gives for `A_0`, and slopes of at most `p = 2 / (1 + q)`, `q = 1 + 1 / (4 c (c - 1))`, keep.
//!
//! Filters that would have too short a `tau` are made smaller. At the start and in the file thresholds are made larger by as much, which
//! leaves `g(L x)` as it is; after a step they are not, or they would grow with every step that lengthens the filters.

use crate::Result;
use crate::analysis::norm_of_one;
use crate::network::{AVERAGED_STEP, Network, STEP, Unrolling, averaged_slope};
use crate::operator::Filters;

/// From this constant on, plain dual forward-backward is unrolled; below, its activations would be too flat, and the average has a
/// constant of 1.
const LEAST_PLAIN: f64 = 1.2;

/// What is proven is proven for numbers of 32 bits, which are rounded.
const ROUNDED: f64 = 1.0 - 1e-6;

/// What a network is held to so that its Lipschitz constant is proven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stability {
    /// The algorithm that must be unrolled.
    pub unrolling: Unrolling,
    /// How long its steps are, as a multiple of what it takes by itself.
    pub step_scale: f64,
    /// The steepest slope of activations but the last, where it is the same for all.
    pub steepest: Option<f64>,
    /// The least `tau`.
    pub least_tau: f64,
}

impl Stability {
    /// What a Lipschitz constant of at most `most` needs. Fails when it is below 1: no useful denoiser has that.
    pub fn of(most: f64) -> Result<Self> {
        refuse!(!(most >= 1.0 && most.is_finite()) =>
            "--lipschitz is {most}, but it must be at least 1: what shrinks all differences dims every picture");
        let excess = 4.0 * most * (most - 1.0);
        if most < LEAST_PLAIN {
            return Ok(Self {
                unrolling: Unrolling::AveragedDualForwardBackward,
                step_scale: 1.0,
                steepest: None,
                least_tau: 1.0,
            });
        }
        Ok(Self {
            unrolling: Unrolling::DualForwardBackward,
            step_scale: AVERAGED_STEP / STEP,
            steepest: Some(2.0 / (2.0 + 1.0 / excess)),
            least_tau: (2.0 * excess).sqrt().recip(),
        })
    }

    /// Refuses a network that it cannot hold.
    pub fn check(&self, network: &Network<f32>) -> Result<()> {
        let free = !network.bounded && network.border == 0 && network.architecture().stride() == 1;
        refuse!(network.unrolling != self.unrolling || !network.has_one_operator() || !free =>
            "--lipschitz starts from a new network, or from one that was trained with the same --lipschitz");
        Ok(())
    }

    /// Makes a network what it is held to, before the first step.
    pub fn begin(&self, network: &mut Network<f32>) {
        let layers = network.activation.len();
        for (k, activation) in (1..).zip(&mut network.activation) {
            if let Some(functions) = activation.piecewise_mut() {
                functions.flatten(self.steepest_of(k, layers));
            }
        }
        let smaller = self.settle(network);
        network.scale_thresholds(smaller);
    }

    /// The backward step of the activations.
    pub fn project(&self, network: &mut Network<f32>) {
        let layers = network.activation.len();
        for (k, functions) in (1..).zip(network.learned_mut()) {
            let steepest = self.steepest_of(k, layers);
            functions.parts_mut()[1].iter_mut().for_each(|slope| *slope = slope.min(steepest));
        }
    }

    /// The steepest slope of layer `k` of so many; after the last one comes nothing that depends on it.
    fn steepest_of(&self, k: usize, layers: usize) -> f32 {
        let steepest = self.steepest.unwrap_or_else(|| averaged_slope(k));
        if k == layers { 1.0 } else { (ROUNDED * steepest) as f32 }
    }

    /// Gives all layers the shortest of their steps, which are to be those of the filters as they are. Where that is too short, the
    /// filters become smaller, by the factor that is returned, and the step longer.
    pub fn settle(&self, network: &mut Network<f32>) -> f32 {
        let tau = network.tau.iter().fold(f32::INFINITY, |least, &tau| least.min(tau));
        network.tau.fill(tau);
        let longer = self.least_tau / ROUNDED / f64::from(tau);
        if longer <= 1.0 {
            return 1.0;
        }
        let c = longer.sqrt() as f32;
        let smaller = |theta: &mut Filters<f32>| theta.weights_mut().iter_mut().for_each(|w| *w /= c);
        network.theta.iter_mut().for_each(smaller);
        network.tau.fill((f64::from(tau) * longer) as f32);
        c
    }

    /// The same with the bound of the norm that is proven: the network of a model file.
    /// Fails when kernels are so large that their norms cannot be bounded.
    pub fn prove(&self, network: &mut Network<f32>) -> Result<()> {
        let most = ROUNDED / norm_of_one(network)?.powi(2);
        network.tau.iter_mut().for_each(|tau| *tau = tau.min(most as f32));
        let smaller = self.settle(network);
        network.scale_thresholds(smaller);
        Ok(())
    }
}
