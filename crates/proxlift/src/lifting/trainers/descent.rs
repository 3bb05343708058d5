//! Gradient descent by one reverse sweep: back-propagation, lifted or centred, in any metric of the parameters.

use super::{Batch, Step, Trainer};
use crate::lifting::{Network, Rule, fused::Fused, sweep};
use crate::training::optimiser::Moments;
use crate::training::{Descent, Metric};
use crate::{Error, Result};

/// Improves a network by mini-batches.
pub struct GradientDescent {
    rule: Rule<f32>,
    descent: Descent,
    moments: Moments,
    /// For networks of dense layers.
    fused: Option<Fused>,
}

impl GradientDescent {
    /// For `network`; plain SGD is the Euclidean metric, Adam the diagonal one.
    /// Fails when a number is out of range, or the metric is not for such networks.
    pub fn new(network: &Network<f32>, rule: Rule<f32>, descent: Descent) -> Result<Self> {
        descent.check()?;
        let matrices: Vec<[usize; 2]> = match descent.metric {
            Metric::Euclidean | Metric::Diagonal => Vec::new(),
            Metric::Kronecker => network.matrices(),
            Metric::GaussNewton => {
                return Err(Error::invalid(
                    "the Gauss-Newton metric is for the denoiser: choose another one",
                ));
            }
        };
        rule.check()?;
        // Weights first, then biases, so that the first blocks are matrices.
        let blocks = network.blocks().into_iter().map(<[f32]>::len);
        // In a basis of its own, a gradient is needed as a whole.
        let fused = if matrices.is_empty() { Fused::new(network) } else { None };
        Ok(Self { rule, descent, moments: Moments::new(blocks, matrices.into_iter()), fused })
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
        let count = batch.z.samples() as f64;
        let Descent { metric, momentum, beta2, rate } = self.descent;
        let betas = (momentum, (metric != Metric::Euclidean).then_some(beta2));
        let (rate, mean) = (rate.at(progress) as f32, |losses: &[f64]| losses.iter().sum::<f64>() / count);
        if let Some(fused) = &mut self.fused {
            network.check(batch.z, batch.x)?;
            let scale = (1.0 / (f64::from(self.rule.loss_weight()) * count)) as f32;
            let update = self.moments.next(scale, rate, betas);
            let losses = fused.step(network, self.rule, batch, &mut self.moments, update);
            return Ok(Step { loss: mean(losses), ..Step::default() });
        }
        let (losses, gradients) = sweep(network, self.rule, batch.z, batch.x)?;
        let depth = gradients.iter().map(Vec::len).max().unwrap_or(0);
        let in_order =
            (0..depth).flat_map(|i| gradients.iter().filter_map(move |layer| Some(layer.get(i)?.as_slice())));
        self.moments.descend(network.blocks_mut(), in_order, count.recip() as f32, rate, betas);
        network.project_activations();
        Ok(Step { loss: mean(&losses), ..Step::default() })
    }
}
