//! Training that begins with a teacher: the network learns what another one makes of the noisy patches, then the clean ones.
//!
//! A clean patch is what the best network would make of a noisy one, and all that nobody can know besides, which is far larger than
//! what a network in training still has to learn. As a target the teacher's picture leaves that noise out of the
//! gradients. What the teacher itself does not know, the rest of the training finds (Hinton, Vinyals and Dean 2015).

use super::{Batch, Report, Snapshot, Trainer};
use crate::field::{
    Field,
    phases::{apart, together},
};
use crate::{Result, engine::Engine, image::symmetry::Symmetry, network::Network};

/// A trainer whose batches are a teacher's for a share of the training.
pub struct Taught {
    teacher: Network<f32>,
    share: f64,
    trainer: Box<dyn Trainer + Send>,
    visits: u64,
}

impl Taught {
    /// `trainer`, taught by `teacher` until so much of the training is done.
    /// Fails when that is no share, or the teacher is for other pictures than `network`, or is no network of layers.
    pub fn new(
        trainer: Box<dyn Trainer + Send>,
        network: &Network<f32>,
        teacher: Network<f32>,
        share: f64,
    ) -> Result<Self> {
        check(&teacher, share, network.architecture().colours())?;
        Ok(Self { teacher, share, trainer, visits: 0 })
    }

    /// What the teacher makes of a batch. It sees every batch in another orientation, so that the mean of all of
    /// them is what is learned, which is better than each of them.
    fn lesson(&self, engine: &dyn Engine<f32>, stride: usize, batch: &Batch) -> Result<Batch> {
        let architecture = self.teacher.architecture();
        let (samples, grid) = (batch.z.samples(), batch.z.grid());
        let planes = (grid.height(), grid.width());
        let size = (planes.0 * stride, planes.1 * stride);
        let (own, turned) = (architecture.stride(), Symmetry::nth(self.visits as usize));
        refuse!(!size.0.is_multiple_of(own) || !size.1.is_multiple_of(own) =>
            "the teacher has stride {own}: give an even --patch");
        let grid = architecture.grid(size.0 / own, size.1 / own)?;
        let mut seen = Field::zeros(samples, architecture.channels, grid);
        seen.load(&apart(&together(batch.z.to_planar(), planes, stride), size, own))?;
        let mut made = seen.zeros_like();
        engine.denoise(&self.teacher.turned(turned), &seen, &mut made);
        let made = together(made.to_planar(), (grid.height(), grid.width()), own);
        let mut lesson =
            Batch { z: batch.z.zeros_like(), x: batch.x.zeros_like(), indices: batch.indices.clone() };
        lesson.z.copy_from(&batch.z);
        lesson.x.load(&apart(&made, size, stride))?;
        Ok(lesson)
    }
}

/// Refuses a teacher that cannot teach a network for pictures of so many channels, or not for this share of the training.
pub(super) fn check(teacher: &Network<f32>, share: f64, colours: usize) -> Result<()> {
    refuse!(!(share > 0.0 && share <= 1.0) =>
        "the share of the training that is taught is {share}, but it must be above 0 and at most 1");
    let own = teacher.architecture().colours();
    refuse!(own != colours => "the teacher is for pictures of {own} channels, but the network for {colours}");
    refuse!(teacher.redescends() =>
        "weakly convex functions are solved for and have no layers to teach by: choose another teacher");
    Ok(())
}

impl Trainer for Taught {
    fn describe(&self) -> String {
        format!("{}, taught by another network for {} of the epochs", self.trainer.describe(), self.share)
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        if progress >= self.share {
            return self.trainer.step(engine, network, batch, progress);
        }
        let lesson = self.lesson(engine, network.architecture().stride(), batch)?;
        self.visits += 1;
        self.trainer.step(engine, network, &lesson, progress)
    }

    fn join(&mut self, at_home: &dyn Fn(usize) -> bool) {
        self.trainer.join(at_home);
    }

    fn save(&self, state: &mut Snapshot) {
        state.put_scalar("lessons", self.visits as f64);
        state.put_scalar("teacher", f64::from(checksum(&self.teacher)));
        self.trainer.save(state);
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.visits = state.scalar("lessons")? as u64;
        refuse!(state.scalar("teacher")? != f64::from(checksum(&self.teacher)) =>
            "the teacher is not the one that the training began with: put its file back");
        self.trainer.restore(state)
    }
}

fn checksum(network: &Network<f32>) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    network.filters().flat_map(|theta| theta.weights()).for_each(|w| crc.update(&w.to_le_bytes()));
    crc.finalize()
}
