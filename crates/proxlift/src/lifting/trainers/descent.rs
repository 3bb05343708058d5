//! Gradient descent by one reverse sweep: back-propagation, lifted or centred ([`Rule`]), in any metric of the parameters.
//!
//! ```text
//! theta <- theta - rate A^{-1} m,      m the moving mean of the gradients
//! ```
//!
//! `A` is the identity (SGD), the diagonal of root mean squares (Adam; Kingma and Ba 2015), or the same in an eigenbasis of each
//! matrix of weights (SOAP; Vyas and others 2024).

use super::{Batch, Step, Trainer};
use crate::Result;
use crate::lifting::network::in_order;
use crate::lifting::{Gradients, Network, Rule, fused::Fused, sweep};
use crate::training::optimiser::Moments;
use crate::training::{Descent, Metric};

/// Steps along gradients, whatever they come from.
pub(super) struct Steps {
    descent: Descent,
    moments: Moments,
}

impl Steps {
    /// For `network`. Fails when a number is out of range, or the metric is not for such networks.
    pub fn new(network: &Network<f32>, descent: Descent) -> Result<Self> {
        descent.check()?;
        refuse!(descent.metric == Metric::GaussNewton =>
            "the Gauss-Newton metric is for the denoiser: choose another one");
        let kronecker = descent.metric == Metric::Kronecker;
        let matrices = if kronecker { network.matrices() } else { Vec::new() };
        // Weights first, then biases, so that the first blocks are matrices.
        let blocks = network.blocks().into_iter().map(<[f32]>::len);
        Ok(Self { descent, moments: Moments::new(blocks, matrices.into_iter()) })
    }

    /// How long a step is, and the means of gradients and of their squares that it takes.
    fn settings(&self, progress: f64) -> (f32, (f32, Option<f32>)) {
        let Descent { metric, momentum, beta2, rate } = self.descent;
        (rate.at(progress) as f32, (momentum, (metric != Metric::Euclidean).then_some(beta2)))
    }

    /// One step along the mean of gradients that are sums over the batch; tells the mean of its `losses`.
    pub fn take(
        &mut self,
        network: &mut Network<f32>,
        (losses, gradients): (Vec<f64>, Gradients<f32>),
        progress: f64,
    ) -> Step {
        let (count, (rate, betas)) = (losses.len() as f64, self.settings(progress));
        let blocks = gradients.iter().map(|layer| layer.iter().map(Vec::as_slice).collect()).collect();
        self.moments.descend(network.blocks_mut(), in_order(blocks), count.recip() as f32, rate, betas);
        network.project_activations();
        Step { loss: losses.iter().sum::<f64>() / count, ..Step::default() }
    }
}

/// Improves a network by mini-batches.
pub struct GradientDescent {
    rule: Rule<f32>,
    steps: Steps,
    /// For networks of dense layers.
    fused: Option<Fused>,
}

impl GradientDescent {
    /// For `network`; plain SGD is the Euclidean metric, Adam the diagonal one.
    /// Fails when a number is out of range, or the metric is not for such networks.
    pub fn new(network: &Network<f32>, rule: Rule<f32>, descent: Descent) -> Result<Self> {
        rule.check()?;
        let steps = Steps::new(network, descent)?;
        // In a basis of its own, a gradient is needed as a whole.
        let fused = if descent.metric == Metric::Kronecker { None } else { Fused::new(network) };
        Ok(Self { rule, steps, fused })
    }

    /// Goes on by another rule: for a weight of the loss that falls, say. Fails when its weight is not above zero.
    pub fn set_rule(&mut self, rule: Rule<f32>) -> Result<()> {
        rule.check()?;
        self.rule = rule;
        Ok(())
    }
}

impl Trainer<f32> for GradientDescent {
    fn step(&mut self, network: &mut Network<f32>, batch: Batch<'_, f32>, progress: f64) -> Result<Step> {
        let Some(fused) = &mut self.fused else {
            let swept = sweep(network, self.rule, batch.z, batch.x)?;
            return Ok(self.steps.take(network, swept, progress));
        };
        network.check_sizes(batch.z, batch.x)?;
        if !fused.pass(network, self.rule, batch.z, batch.x) {
            network.check(batch.z, batch.x)?;
        }
        let (count, (rate, betas)) = (batch.z.samples() as f64, self.steps.settings(progress));
        let scale = (1.0 / (f64::from(self.rule.loss_weight()) * count)) as f32;
        let moments = &mut self.steps.moments;
        let update = moments.next(scale, rate, betas);
        fused.update(network, moments, update, batch.z.data());
        Ok(Step { loss: fused.losses().iter().sum::<f64>() / count, ..Step::default() })
    }
}
