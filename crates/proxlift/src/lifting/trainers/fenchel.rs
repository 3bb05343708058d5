//! Fenchel lifted networks (Gu, Askari and El Ghaoui, *Fenchel lifted networks: a Lagrange relaxation of neural network training*,
//! AISTATS 2020; for relu, Askari, Negiar, Sambharya and El Ghaoui, *Lifted neural networks*, 2018).
//!
//! Their penalty of a layer is Fenchel-Young's inequality for the potential of the activation, the Bregman penalty of the paper,
//! and their energy is the paper's with a weight for every layer:
//!
//! ```text
//! E = mu l(F_K(u_{K-1}), x) + sum_k lambda_k B_k(u_k, F_k(u_{k-1}))
//! ```
//!
//! It is convex in each `u_k` and in each `theta_k` of an affine map that is linear in it. Where LB-FB takes one step of each
//! block, this method takes so many that the convex block is all but minimised: first every `u_k`, from the last layer to the
//! first, then every `theta_k`, which do not see each other. Steps are those of LB-FB, so `E` cannot rise on a batch. For whole
//! sets `u` is kept; for mini-batches it starts at the forward pass.

use super::{Batch, LbFb, LbFbOptions, Step, Trainer};
use crate::lifting::blocks::{theta_step, u_step};
use crate::lifting::{Lifted, Network};
use crate::training::Auxiliary;
use crate::{Real, Result};

/// The settings of [`Fenchel`].
#[derive(Clone, Debug, PartialEq)]
pub struct FenchelOptions {
    /// The weight of the loss.
    pub mu: f64,
    /// The weights `lambda_k` of the layers: one for each, or one for all.
    pub lambda: Vec<f64>,
    /// Where `u` starts: at the forward pass, or where the last visit to the sample left it.
    pub auxiliary: Auxiliary,
    /// Steps on a block before the next.
    pub steps: usize,
    /// Alternations on a batch before the next.
    pub inner: usize,
}

impl Default for FenchelOptions {
    fn default() -> Self {
        Self { mu: 1.0, lambda: vec![1.0], auxiliary: Auxiliary::Anchored, steps: 5, inner: 1 }
    }
}

/// The trainer.
pub struct Fenchel<T> {
    options: FenchelOptions,
    /// The steps of all blocks, and `u` of all samples.
    blocks: LbFb<T>,
}

impl<T: Real> Fenchel<T> {
    /// A trainer for `network` on a set of `samples`. Fails when an option is out of range.
    pub fn new(network: &Network<T>, mut options: FenchelOptions, samples: usize) -> Result<Self> {
        let depth = network.depth();
        if options.lambda.len() == 1 {
            options.lambda = vec![options.lambda[0]; depth];
        }
        refuse!(options.lambda.len() != depth =>
            "{} weights given for {depth} layers: give one, or one for each", options.lambda.len());
        refuse!(options.lambda.iter().any(|l| !(l.is_finite() && *l > 0.0)) => "a weight of a layer is not above zero");
        refuse!(options.steps == 0 || options.inner == 0 => "every block needs at least one step, and a batch one iteration");
        let FenchelOptions { mu, auxiliary, inner, .. } = options;
        let shared = LbFbOptions { mu, auxiliary, inner, ..LbFbOptions::default() };
        let mut blocks = LbFb::new(network, shared, samples)?;
        // The curvature of lambda q is lambda.
        blocks.gamma.iter_mut().zip(&options.lambda).for_each(|(gamma, lambda)| {
            (gamma.step, gamma.longest) = (gamma.step / lambda, gamma.longest / lambda);
        });
        Ok(Self { options, blocks })
    }
}

/// Every `u_k`, then every `theta_k`, with so many steps of each.
fn alternate<T: Real>(
    blocks: &mut LbFb<T>,
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    steps: usize,
) -> usize {
    let mut refused = 0;
    for k in (0..lifted.depth()).rev() {
        for _ in 0..steps {
            refused += u_step(lifted, network, k, mu, &mut blocks.gamma[k]);
        }
    }
    for k in 0..=lifted.depth() {
        for _ in 0..steps {
            refused += theta_step(lifted, network, k, mu, &mut blocks.beta[k]);
        }
    }
    refused
}

impl<T: Real> Trainer<T> for Fenchel<T> {
    fn step(&mut self, network: &mut Network<T>, batch: Batch<'_, T>, _progress: f64) -> Result<Step> {
        let FenchelOptions { mu, steps, ref lambda, .. } = self.options;
        let lifted = Lifted::new(network, batch.z, batch.x)?.with_weights(lambda.clone());
        self.blocks.train(network, lifted, batch.indices, mu, |blocks, lifted, network| {
            alternate(blocks, lifted, network, mu, steps)
        })
    }
}
