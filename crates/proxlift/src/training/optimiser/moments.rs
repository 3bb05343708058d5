//! Running means of the gradients and of their squares, and the step that they make.

use super::eigenbasis::Eigenbasis;
use crate::{Result, training::Snapshot};
use rayon::prelude::*;

/// What is added to the root of a mean square.
const EPSILON: f32 = 1e-8;

/// Numbers that a thread takes at once.
const CHUNK: usize = 1 << 14;

/// The means of every block of parameters.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    mean: Vec<Vec<f32>>,
    square: Vec<Vec<f32>>,
    steps: f64,
    /// The bases in which those of the first blocks are; empty if it is that of the parameters.
    bases: Vec<Eigenbasis>,
    step: Vec<f32>,
}

impl Moments {
    /// Zero means for blocks of so many numbers; in [eigenbases](Eigenbasis) for the first ones, of which `matrices` are the
    /// rows and columns.
    pub(crate) fn new(
        blocks: impl Iterator<Item = usize>,
        matrices: impl Iterator<Item = [usize; 2]>,
    ) -> Self {
        let zero: Vec<_> = blocks.map(|numbers| vec![0.0; numbers]).collect();
        let bases = matrices.map(Eigenbasis::new).collect();
        Self { mean: zero.clone(), square: zero, steps: 0.0, bases, step: Vec::new() }
    }

    /// One step of all `parameters` along `scale` times their gradients: along their means with `beta1`, over the root of mean
    /// squares with `beta2` if there is one (Adam). Blocks without a gradient stay.
    pub(crate) fn descend<'a>(
        &mut self,
        parameters: impl IntoIterator<Item = &'a mut [f32]>,
        gradients: impl IntoIterator<Item = &'a [f32]>,
        scale: f32,
        rate: f32,
        (beta1, beta2): (f32, Option<f32>),
    ) {
        self.steps += 1.0;
        let unbias = |beta: f32| (1.0 - f64::from(beta).powf(self.steps)) as f32;
        let (unbias1, unbias2) = (unbias(beta1), beta2.map(unbias));
        for (k, (weights, gradient)) in parameters.into_iter().zip(gradients).enumerate() {
            let step = &mut self.step;
            step.clear();
            step.extend(gradient.iter().map(|g| scale * g));
            if let Some(basis) = self.bases.get_mut(k) {
                basis.observe(step, &mut self.mean[k]);
                basis.turn(step);
            }
            let moments = self.mean[k].par_chunks_mut(CHUNK).zip(self.square[k].par_chunks_mut(CHUNK));
            step.par_chunks_mut(CHUNK).zip(moments).for_each(|(step, (mean, square))| {
                let moments = mean.iter_mut().zip(square);
                match beta2.zip(unbias2) {
                    None => {
                        for (g, (mean, _)) in step.iter_mut().zip(moments) {
                            *mean = beta1 * *mean + *g;
                            *g = *mean;
                        }
                    }
                    Some((beta2, unbias2)) => {
                        for (g, (mean, square)) in step.iter_mut().zip(moments) {
                            *mean = beta1 * *mean + (1.0 - beta1) * *g;
                            *square = beta2 * *square + (1.0 - beta2) * *g * *g;
                            *g = (*mean / unbias1) / ((*square / unbias2).sqrt() + EPSILON);
                        }
                    }
                }
            });
            if let Some(basis) = self.bases.get_mut(k) {
                basis.back(step);
            }
            let steps = step.par_chunks(CHUNK);
            weights.par_chunks_mut(CHUNK).zip(steps).for_each(|(weights, step)| {
                weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= rate * step);
            });
        }
    }

    pub(crate) fn save(&self, state: &mut Snapshot) {
        for (k, (mean, square)) in self.mean.iter().zip(&self.square).enumerate() {
            state.put(format!("mean_{k}"), mean);
            state.put(format!("square_{k}"), square);
        }
        self.bases.iter().enumerate().for_each(|(k, basis)| basis.save(k, state));
        state.put_scalar("steps", self.steps);
    }

    pub(crate) fn restore(&mut self, state: &Snapshot) -> Result<()> {
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
