//! Running means of the gradients and of their squares, and the step that they make.

use super::eigenbasis::Eigenbasis;
use crate::{Result, engine::Gradients, network::Network, operator::Filters, training::Snapshot};

/// What is added to the root of a mean square.
const EPSILON: f32 = 1e-8;

/// The means of every block: the filters of all layers, then knots and slopes of learned activations.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    mean: Vec<Vec<f32>>,
    square: Vec<Vec<f32>>,
    steps: f64,
    /// The bases in which those of the filters are; empty if it is that of the weights.
    bases: Vec<Eigenbasis>,
    step: Vec<f32>,
}

impl Moments {
    /// Zero means for `network`, in the weights' own basis or in that of [`Eigenbasis`].
    pub(super) fn new(network: &Network<f32>, in_eigenbases: bool) -> Self {
        let filters = network.theta.iter().map(|theta| theta.weights().len());
        let activations = network.learned().flat_map(|s| [s.knots().len(), s.slopes().len()]);
        let zero: Vec<_> = filters.chain(activations).map(|numbers| vec![0.0; numbers]).collect();
        let of_bases: &[_] = if in_eigenbases { &network.theta } else { &[] };
        let bases = of_bases.iter().map(Eigenbasis::new).collect();
        Self { mean: zero.clone(), square: zero, steps: 0.0, bases, step: Vec::new() }
    }

    /// One step along `scale` times the gradients: along their means with `beta1`, over the root of mean squares with
    /// `beta2` if there is one (Adam).
    pub(super) fn descend(
        &mut self,
        network: &mut Network<f32>,
        gradients: &Gradients<f32>,
        scale: f32,
        rate: f32,
        (beta1, beta2): (f32, Option<f32>),
    ) {
        self.steps += 1.0;
        let unbias = |beta: f32| (1.0 - f64::from(beta).powf(self.steps)) as f32;
        let of_filters = gradients.theta.iter().map(Filters::weights);
        let of_activations = gradients.activation.iter().flat_map(|g| [g.knots.as_slice(), &g.slopes]);
        // Without gradients of the activations, these end with the filters.
        let blocks = network.trained_mut().into_iter().zip(of_filters.chain(of_activations));
        for (k, (weights, gradient)) in blocks.enumerate() {
            let step = &mut self.step;
            step.clear();
            step.extend(gradient.iter().map(|g| scale * g));
            if let Some(basis) = self.bases.get_mut(k) {
                basis.observe(step, &mut self.mean[k]);
                basis.turn(step);
            }
            let moments = self.mean[k].iter_mut().zip(&mut self.square[k]);
            for (g, (mean, square)) in step.iter_mut().zip(moments) {
                *g = match beta2 {
                    None => {
                        *mean = beta1 * *mean + *g;
                        *mean
                    }
                    Some(beta2) => {
                        *mean = beta1 * *mean + (1.0 - beta1) * *g;
                        *square = beta2 * *square + (1.0 - beta2) * *g * *g;
                        (*mean / unbias(beta1)) / ((*square / unbias(beta2)).sqrt() + EPSILON)
                    }
                };
            }
            if let Some(basis) = self.bases.get_mut(k) {
                basis.back(step);
            }
            weights.iter_mut().zip(&*step).for_each(|(weight, step)| *weight -= rate * step);
        }
    }

    pub(super) fn save(&self, state: &mut Snapshot) {
        for (k, (mean, square)) in self.mean.iter().zip(&self.square).enumerate() {
            state.put(format!("mean_{k}"), mean);
            state.put(format!("square_{k}"), square);
        }
        self.bases.iter().enumerate().for_each(|(k, basis)| basis.save(k, state));
        state.put_scalar("steps", self.steps);
    }

    pub(super) fn restore(&mut self, state: &Snapshot) -> Result<()> {
        for (k, (mean, square)) in self.mean.iter_mut().zip(&mut self.square).enumerate() {
            state.get(&format!("mean_{k}"), mean)?;
            state.get(&format!("square_{k}"), square)?;
        }
        for (k, basis) in self.bases.iter_mut().enumerate() {
            basis.restore(k, state)?;
        }
        self.steps = state.scalar("steps")?;
        Ok(())
    }
}
