//! Contrastive lifting (Zach and Estellers, *Contrastive learning for lifted networks*, BMVC 2019; Hoier, Staudt and Zach, *Dual
//! propagation: accelerating contrastive Hebbian learning with dyadic neurons*, ICML 2023).
//!
//! Two lifted minimisations, one that pulls the output towards the target and one that pushes it away, and the difference of the
//! gradients where they end:
//!
//! ```text
//! u(mu) = argmin_u mu l(F_K(u_{K-1}), x) + sum_k B_k(u_k, F_k(u_{k-1}))
//! g     = (dE_mu/dtheta at u(mu)  -  dE_{-mu}/dtheta at u(-mu)) / (2 mu)
//! ```
//!
//! An error of either is of the order of `mu`; in the difference the first order is gone, so `g` is back-propagation's gradient
//! up to `mu^2`. The minimisations start at the forward pass with a sweep of unit steps, `u_k = s_k(v_k - A_{k+1}* d_{k+1})`, and
//! go on by backtracked ones. After one sweep of a network with one hidden layer, `g` is that of [`Rule::Centred`](crate::lifting::Rule),
//! which takes the difference layer by layer, as dual propagation does.

use super::descent::Steps;
use super::{Batch, Step, Trainer};
use crate::lifting::blocks::{u_search, u_step};
use crate::lifting::{Gradients, Lifted, Network, Rows};
use crate::training::Descent;
use crate::{Real, Result};

/// The settings of [`Contrastive`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContrastiveOptions {
    /// The weight of the loss on either side.
    pub mu: f64,
    /// Sweeps over `u` on either side.
    pub sweeps: usize,
}

impl Default for ContrastiveOptions {
    fn default() -> Self {
        Self { mu: 0.1, sweeps: 2 }
    }
}

impl ContrastiveOptions {
    fn check(&self) -> Result<()> {
        refuse!(!(self.mu.is_finite() && self.mu > 0.0) => "mu is {}, but it must be above zero", self.mu);
        refuse!(self.sweeps == 0 => "a contrast needs at least one sweep");
        Ok(())
    }
}

/// The loss of each sample, and the difference of both sides, summed over the batch.
/// Fails when the samples do not fit the network, or an option is out of range.
pub fn contrast<T: Real>(
    network: &Network<T>,
    options: ContrastiveOptions,
    z: &Rows<T>,
    x: &Rows<T>,
) -> Result<(Vec<f64>, Gradients<T>)> {
    options.check()?;
    let lifted = Lifted::new(network, z, x)?;
    let losses = lifted.block(network, lifted.depth(), 1.0);
    let mut gradients = side(lifted, network, options.mu, options.sweeps);
    let away = side(Lifted::new(network, z, x)?, network, -options.mu, options.sweeps);
    let scale = T::of(0.5 / options.mu);
    let pairs = gradients.iter_mut().flatten().flatten().zip(away.iter().flatten().flatten());
    pairs.for_each(|(g, &away)| *g = scale * (*g - away));
    Ok((losses, gradients))
}

/// `dE/dtheta` of each layer in the last sweep, before the layer below moves.
fn side<T: Real>(mut lifted: Lifted<'_, T>, network: &Network<T>, mu: f64, sweeps: usize) -> Gradients<T> {
    let depth = lifted.depth();
    let mut gammas = vec![u_search(); depth];
    let mut gradients = Vec::with_capacity(depth + 1);
    for sweep in 1..=sweeps {
        for k in (0..=depth).rev() {
            if sweep == sweeps {
                gradients.push(lifted.theta_gradient(network, k, T::of(mu)));
            }
            if k > 0 && sweep == 1 {
                let down = lifted.u_gradient(network, k - 1, T::of(mu));
                lifted.pass.u[k - 1].zip(&down, |u, g| u - g);
                lifted.pass.u[k - 1] = network.activate(k - 1, &lifted.pass.u[k - 1]);
                lifted.follow(network, k);
            } else if k > 0 {
                u_step(&mut lifted, network, k - 1, mu, &mut gammas[k - 1]);
            }
        }
    }
    gradients.reverse();
    gradients
}

/// The trainer: descent along contrasts, in any metric of the parameters.
pub struct Contrastive {
    options: ContrastiveOptions,
    steps: Steps,
}

impl Contrastive {
    /// For `network`; plain SGD is the Euclidean metric, Adam the diagonal one.
    /// Fails when a number is out of range, or the metric is not for such networks.
    pub fn new(network: &Network<f32>, options: ContrastiveOptions, descent: Descent) -> Result<Self> {
        options.check()?;
        Ok(Self { options, steps: Steps::new(network, descent)? })
    }
}

impl Trainer<f32> for Contrastive {
    fn step(&mut self, network: &mut Network<f32>, batch: Batch<'_, f32>, progress: f64) -> Result<Step> {
        let contrasted = contrast(network, self.options, batch.z, batch.x)?;
        Ok(self.steps.take(network, contrasted, progress))
    }
}
