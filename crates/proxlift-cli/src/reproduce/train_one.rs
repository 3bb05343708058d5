//! One run: a session of the library, and what is noted after every epoch.

use super::machine::{COMMIT, thread_seconds};
use super::outcome::{Epoch, HISTORY, MODEL, Outcome};
use super::pictures::Pictures;
use super::plan::Run;
use crate::files::write;
use crate::train::{file, interrupt};
use proxlift::Denoiser;
use proxlift::dataset::{PatchSpec, Patches, Visit};
use proxlift::engine;
use proxlift::evaluation::{Peak, psnr};
use proxlift::field::Field;
use proxlift::image::Image;
use proxlift::network::Network;
use proxlift::training::{Checkpoint, EpochRecord, Go, Notes, Observer, Progress, Session, Trainer};
use proxlift::{Error, Result};
use std::path::Path;

/// A run that was stopped is resumed from here.
const CHECKPOINT: &str = "checkpoint.safetensors";
/// The epochs up to there.
const PARTIAL: &str = "partial.json";
/// Patches that the loss is taken of at once.
const AT_ONCE: usize = 50;

/// Trains; none if it was stopped by Ctrl-C. `advance` is told the share of the run that is done.
///
/// # Errors
/// When something cannot be read or written. A training that diverges is an outcome, not an error.
pub fn train_one(
    run: &Run,
    fingerprint: &str,
    pictures: &Pictures,
    noisy: &[Image],
    folder: &Path,
    advance: &dyn Fn(f64),
) -> Result<Option<Outcome>> {
    let config = &run.config;
    std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    write(&folder.join("config.toml"), file::text(config)?.as_bytes())?;
    let patches = config.patches(pictures.train.clone())?;
    let plain = PatchSpec { augment: false, ..*patches.spec() };
    let network = config.network()?;
    let mut clerk = Clerk {
        run,
        fixed: Fixed::new(&Patches::new(pictures.train.clone(), plain)?, &network)?,
        clean: pictures.test.images(),
        noisy,
        folder,
        advance,
        epochs: Vec::new(),
        clock: None,
        stopped: false,
    };
    let mut session = Session::new(config, network.clone(), &patches)?;
    let resumed = clerk.recall(fingerprint).is_some_and(|checkpoint| session.resume(checkpoint).is_ok());
    if !resumed {
        clerk.start(&network)?;
        session = Session::new(config, network, &patches)?;
    }
    session.keep_checkpoints(folder.join(CHECKPOINT), fingerprint);
    let trained = session.run(&*engine::standard(), &mut clerk);
    if clerk.stopped {
        return Ok(None);
    }
    let diverged = match trained {
        Ok(_) => None,
        Err(error @ Error::Diverged { .. }) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    if diverged.is_none() {
        session.model(&pictures.described).save(folder.join(MODEL))?;
    }
    let outcome = Outcome {
        fingerprint: fingerprint.into(),
        trainer: session.trainer.describe(),
        commit: COMMIT.into(),
        diverged,
        epochs: clerk.epochs,
    };
    let text = serde_json::to_string_pretty(&outcome).map_err(|e| Error::file(folder, e.to_string()))?;
    write(&folder.join(HISTORY), text.as_bytes())?;
    for left in [CHECKPOINT, PARTIAL] {
        // What is finished needs them no more; that they stay does no harm.
        let _ = std::fs::remove_file(folder.join(left));
    }
    Ok(Some(outcome))
}

/// The training patches as they were first cut, with their first noise: the loss of every method is taken of them.
struct Fixed {
    batches: Vec<(Field<f32>, Field<f32>)>,
    count: usize,
}

impl Fixed {
    fn new(patches: &Patches, network: &Network<f32>) -> Result<Self> {
        let size = patches.spec().size;
        let grid = network.architecture().grid(size, size)?;
        let indices: Vec<usize> = (0..patches.len()).collect();
        let batches = indices.chunks(AT_ONCE).map(|some| {
            let mut x = vec![0.0; some.len() * patches.values()];
            let mut z = x.clone();
            patches.fill(some, Visit::default(), &mut x, &mut z);
            let field = |values: &[f32]| Field::from_planar(some.len(), patches.channels(), grid, values);
            Ok((field(&z)?, field(&x)?))
        });
        Ok(Self { batches: batches.collect::<Result<_>>()?, count: indices.len() })
    }

    /// The mean of `1/2 ||x^ - x||^2`.
    fn loss(&self, network: &Network<f32>) -> f64 {
        let engine = engine::standard();
        let losses = self.batches.iter().map(|(z, x)| {
            let mut estimate = z.clone();
            engine.denoise(network, z, &mut estimate);
            let pairs = estimate.data().iter().zip(x.data());
            0.5 * pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
        });
        losses.sum::<f64>() / self.count as f64
    }
}

/// Notes what happens; its time does not count as training.
struct Clerk<'a> {
    run: &'a Run,
    fixed: Fixed,
    clean: &'a [Image],
    noisy: &'a [Image],
    folder: &'a Path,
    advance: &'a dyn Fn(f64),
    epochs: Vec<Epoch>,
    /// The processor time of this thread when the epoch began.
    clock: Option<f64>,
    stopped: bool,
}

impl Clerk<'_> {
    /// The checkpoint of this very run, with the epochs up to it.
    fn recall(&mut self, fingerprint: &str) -> Option<Checkpoint> {
        let checkpoint = Checkpoint::load(self.folder.join(CHECKPOINT)).ok()?;
        let text = std::fs::read_to_string(self.folder.join(PARTIAL)).ok()?;
        let mut epochs: Vec<Epoch> = serde_json::from_str(&text).ok()?;
        // The epochs are written first: there may be more of them than the checkpoint knows.
        epochs.truncate(checkpoint.record.epoch + 1);
        let fits = checkpoint.settings == fingerprint && epochs.len() == checkpoint.record.epoch + 1;
        fits.then(|| {
            self.epochs = epochs;
            checkpoint
        })
    }

    /// Epoch 0.
    fn start(&mut self, network: &Network<f32>) -> Result<()> {
        let psnr = self.psnr(0, network)?;
        self.epochs = vec![Epoch { loss: self.fixed.loss(network), psnr, ..Epoch::default() }];
        Ok(())
    }

    fn psnr(&self, epoch: usize, network: &Network<f32>) -> Result<Option<f64>> {
        let due = epoch <= 5 || epoch.is_multiple_of(5) || epoch == self.run.config.plan.epochs;
        if !due || !self.run.is_scored() {
            return Ok(None);
        }
        let denoiser = Denoiser::from(network.clone());
        let scores = self
            .clean
            .iter()
            .zip(self.noisy)
            .map(|(clean, noisy)| psnr(clean, &denoiser.denoise(noisy)?, Peak::ONE));
        let scores = scores.collect::<Result<Vec<_>>>()?;
        Ok(Some(scores.iter().sum::<f64>() / scores.len() as f64))
    }
}

impl Observer for Clerk<'_> {
    fn begin(&mut self, _: usize) {
        self.clock = thread_seconds();
    }

    fn batch(&mut self, progress: &Progress) {
        (self.advance)(progress.done as f64 / progress.all as f64);
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        let before = self.epochs.last().cloned().unwrap_or_default();
        let passed = thread_seconds().zip(self.clock).map(|(now, then)| now - then);
        self.epochs.push(Epoch {
            epoch: record.epoch,
            seconds: before.seconds + passed.unwrap_or(record.seconds - before.wall_seconds),
            wall_seconds: record.seconds,
            loss: self.fixed.loss(network),
            running_loss: Some(record.loss),
            energy: record.energy,
            energy_steps: record.energy_steps,
            energy_rises: record.energy_rises,
            backtracks: record.backtracks,
            psnr: self.psnr(record.epoch, network)?,
        });
        self.stopped = record.epoch < self.run.config.plan.epochs && interrupt::asked();
        Ok(if self.stopped { Go::Stop } else { Go::On })
    }

    fn checkpoint(&mut self, record: &EpochRecord, _: &Network<f32>) -> Result<Option<Notes>> {
        if record.epoch == self.run.config.plan.epochs {
            // The outcome is written next.
            return Ok(None);
        }
        let text =
            serde_json::to_string(&self.epochs).map_err(|e| Error::file(self.folder, e.to_string()))?;
        write(&self.folder.join(PARTIAL), text.as_bytes())?;
        Ok(Some(Notes::new()))
    }
}
