//! Running means of the gradients and of their squares, and the step that they make.

use super::eigenbasis::Eigenbasis;
use crate::engine::cpu::dense::Update;
use crate::{Result, training::Snapshot};
use rayon::prelude::*;

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

    /// One step of all `parameters` along `scale` times their gradients: along their means with the first of
    /// `betas`, over the root of mean squares with the second if there is one (Adam). Blocks without a gradient stay.
    pub(crate) fn descend<'a>(
        &mut self,
        parameters: impl IntoIterator<Item = &'a mut [f32]>,
        gradients: impl IntoIterator<Item = &'a [f32]>,
        scale: f32,
        rate: f32,
        betas: (f32, Option<f32>),
    ) {
        let update = self.next(scale, rate, betas);
        for (k, (weights, gradient)) in parameters.into_iter().zip(gradients).enumerate() {
            let (mean, square) = (&mut self.mean[k], &mut self.square[k]);
            let Some(basis) = self.bases.get_mut(k) else {
                let moments = mean.par_chunks_mut(CHUNK).zip(square.par_chunks_mut(CHUNK));
                let weights = weights.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
                weights.zip(moments).for_each(|((w, g), (mean, square))| update.apply(w, g, mean, square));
                continue;
            };
            let step = &mut self.step;
            step.clear();
            step.extend(gradient.iter().map(|g| scale * g));
            basis.observe(step, mean);
            basis.turn(step);
            let moments = mean.par_chunks_mut(CHUNK).zip(square.par_chunks_mut(CHUNK));
            let steps = step.par_chunks_mut(CHUNK);
            steps.zip(moments).for_each(|(step, (mean, square))| update.step(step, mean, square));
            basis.back(step);
            let steps = step.par_chunks(CHUNK);
            weights.par_chunks_mut(CHUNK).zip(steps).for_each(|(weights, step)| {
                weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= step);
            });
        }
    }

    /// The constants of the next step, for those who take it block by block with [`Self::blocks_mut`].
    pub(crate) fn next(&mut self, scale: f32, rate: f32, betas: (f32, Option<f32>)) -> Update {
        self.steps += 1.0;
        Update::new(self.steps, scale, rate, betas)
    }

    /// The means of all blocks.
    pub(crate) fn blocks_mut(&mut self) -> impl Iterator<Item = (&mut [f32], &mut [f32])> {
        self.mean
            .iter_mut()
            .zip(&mut self.square)
            .map(|(mean, square)| (mean.as_mut_slice(), square.as_mut_slice()))
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
