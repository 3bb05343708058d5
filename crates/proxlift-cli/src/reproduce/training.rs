//! One training: a session of the library, what is noted after every epoch, and what is left in its folder.

use super::machine::{COMMIT, thread_seconds};
use super::pictures::Pictures;
use super::runs::{Experiment, Run};
use crate::files::{keep, recall, write};
use crate::train::{file, interrupt};
use proxlift::dataset::{PatchSpec, Patches, Visit};
use proxlift::training::{Checkpoint, EpochRecord, Go, Notes, Observer, Progress, Session, Trainer};
use proxlift::{Denoiser, Error, Result, engine, evaluation::mean_psnr, field::Field, image::Image};
use proxlift::{model::Model, network::Network};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::OnceLock;

const MODEL: &str = "model.safetensors";
/// The outcome; written last, so that its presence says that the training is finished.
const HISTORY: &str = "history.json";
/// A training that was stopped is resumed from here.
const CHECKPOINT: &str = "checkpoint.safetensors";
/// The epochs up to there.
const PARTIAL: &str = "partial.json";
/// Patches that the loss is taken of at once.
const AT_ONCE: usize = 50;

/// The state after an epoch; epoch 0 is the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Epoch {
    pub epoch: usize,
    /// Seconds spent training on one thread, without any evaluation: processor time where it is known, else wall time.
    pub seconds: f64,
    pub wall_seconds: f64,
    /// The mean feed-forward loss `1/2 ||x^ - x||^2` on the fixed training patches, after the epoch.
    pub loss: f64,
    /// The mean loss of the samples when they were visited.
    pub running_loss: Option<f64>,
    /// The mean of `E` after the steps, where there is one.
    pub energy: Option<f64>,
    /// Batches whose `E` is known before and after their step, and those whose `E` the step raised.
    pub energy_steps: usize,
    pub energy_rises: usize,
    pub backtracks: usize,
    /// Mean PSNR at peak 1 on the test images, where it was taken.
    pub psnr: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Settings and data in a word: a training with another one is another training.
    pub fingerprint: String,
    pub trainer: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// Why it ended early, if it did.
    pub diverged: Option<String>,
    pub epochs: Vec<Epoch>,
}

impl Outcome {
    /// The loss at the end; infinite where the training diverged.
    pub fn final_loss(&self) -> f64 {
        let last = self.epochs.last().filter(|_| self.diverged.is_none());
        last.map_or(f64::INFINITY, |epoch| epoch.loss)
    }

    pub fn seconds(&self) -> f64 {
        self.epochs.last().map_or(0.0, |epoch| epoch.seconds)
    }
}

/// A run in its folder, with its outcome once it is done.
pub struct Training {
    pub run: Run,
    fingerprint: String,
    folder: PathBuf,
    outcome: OnceLock<Outcome>,
}

impl Training {
    /// A run below `runs`, done already if an earlier session has finished it there. Other settings or pictures have
    /// another folder, so that nothing computed is ever lost.
    pub fn new(run: Run, pictures: &Pictures, runs: PathBuf) -> Self {
        let parts = [&run.config.fingerprint(), &pictures.fingerprint];
        let [settings, data] = parts.map(|part| part.get(..8).unwrap_or(part));
        let folder = runs.join(format!("{}-{settings}-{data}", run.name));
        let fingerprint = format!("{}-{}", parts[0], parts[1]);
        let training = Self { run, fingerprint, folder, outcome: OnceLock::new() };
        training.recall();
        training
    }

    /// Takes over what was finished in its folder.
    pub fn recall(&self) {
        let finished = recall(&self.folder.join(HISTORY)).filter(|outcome: &Outcome| {
            let is_whole = outcome.diverged.is_some() || self.folder.join(MODEL).is_file();
            is_whole && outcome.fingerprint == self.fingerprint
        });
        if let Some(outcome) = finished {
            let _ = self.outcome.set(outcome);
        }
    }

    /// Its folder, which is named after settings and pictures.
    pub fn full_name(&self) -> String {
        self.folder.display().to_string()
    }

    pub fn is_done(&self) -> bool {
        self.outcome.get().is_some()
    }

    pub fn outcome(&self) -> &Outcome {
        self.outcome.get().expect("only trainings that are done are reported on")
    }

    /// The trained network; none if the training diverged.
    pub fn model(&self) -> Option<Result<Model>> {
        self.outcome().diverged.is_none().then(|| Model::load(self.folder.join(MODEL)))
    }

    /// Trains; `advance` is told the share that is done. Without an outcome if it was stopped by Ctrl-C; that it diverges
    /// is one.
    pub fn train(&self, pictures: &Pictures, noisy: &[Image], advance: &dyn Fn(f64)) -> Result<()> {
        let (config, folder) = (&self.run.config, &self.folder);
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        write(&folder.join("config.toml"), file::text(config)?.as_bytes())?;
        let patches = config.patches(pictures.train.clone())?;
        let plain = PatchSpec { augment: false, ..*patches.spec() };
        let network = config.network()?;
        let mut clerk = Clerk {
            training: self,
            fixed: first_visit(&Patches::new(pictures.train.clone(), plain)?, &network)?,
            clean: pictures.test.images(),
            noisy,
            advance,
            epochs: Vec::new(),
            clock: None,
            stopped: false,
        };
        let mut session = Session::new(config, network.clone(), &patches)?;
        if clerk.recall().is_none_or(|checkpoint| session.resume(checkpoint).is_err()) {
            let (loss, psnr) = (fixed_loss(&clerk.fixed, &network), clerk.psnr(0, &network)?);
            clerk.epochs = vec![Epoch { loss, psnr, ..Epoch::default() }];
            session = Session::new(config, network, &patches)?;
        }
        session.keep_checkpoints(folder.join(CHECKPOINT), &self.fingerprint);
        let trained = session.run(&*engine::standard(), &mut clerk);
        if clerk.stopped {
            return Ok(());
        }
        let diverged = match trained {
            Ok(_) => None,
            Err(error @ Error::Diverged { .. }) => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        if diverged.is_none() {
            session.model(&pictures.described).save(folder.join(MODEL))?;
        }
        let (trainer, commit) = (session.trainer.describe(), COMMIT.into());
        let fingerprint = self.fingerprint.clone();
        let outcome = Outcome { fingerprint, trainer, commit, diverged, epochs: clerk.epochs };
        keep(&folder.join(HISTORY), &outcome)?;
        self.outcome.get_or_init(|| outcome);
        for left in [CHECKPOINT, PARTIAL] {
            // What is finished needs them no more; that they stay does no harm.
            let _ = std::fs::remove_file(folder.join(left));
        }
        Ok(())
    }
}

/// The training patches as they were first cut, with their first noise: the loss of every method is taken of them.
pub fn first_visit(patches: &Patches, network: &Network<f32>) -> Result<Vec<(Field<f32>, Field<f32>)>> {
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
    batches.collect()
}

/// The mean feed-forward loss on patches that stay the same.
pub fn fixed_loss(fixed: &[(Field<f32>, Field<f32>)], network: &Network<f32>) -> f64 {
    let engine = engine::standard();
    let losses = fixed.iter().map(|(z, x)| {
        let mut estimate = z.clone();
        engine.denoise(network, z, &mut estimate);
        let pairs = estimate.data().iter().zip(x.data());
        0.5 * pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
    });
    losses.sum::<f64>() / fixed.iter().map(|(z, _)| z.samples()).sum::<usize>() as f64
}

/// Notes what happens; its time does not count as training.
struct Clerk<'a> {
    training: &'a Training,
    fixed: Vec<(Field<f32>, Field<f32>)>,
    clean: &'a [Image],
    noisy: &'a [Image],
    advance: &'a dyn Fn(f64),
    epochs: Vec<Epoch>,
    /// The processor time of this thread when the epoch began.
    clock: Option<f64>,
    stopped: bool,
}

impl Clerk<'_> {
    fn is_last(&self, epoch: usize) -> bool {
        epoch == self.training.run.config.plan.epochs
    }

    /// The checkpoint of this very training; takes over the epochs up to it.
    fn recall(&mut self) -> Option<Checkpoint> {
        let checkpoint = Checkpoint::load(self.training.folder.join(CHECKPOINT)).ok()?;
        let mut epochs: Vec<Epoch> = recall(&self.training.folder.join(PARTIAL))?;
        // The epochs are written first: there may be more of them than the checkpoint knows.
        let known = checkpoint.record.epoch + 1;
        epochs.truncate(known);
        let fits = checkpoint.settings == self.training.fingerprint && epochs.len() == known;
        self.epochs = epochs;
        fits.then_some(checkpoint)
    }

    fn psnr(&self, epoch: usize, network: &Network<f32>) -> Result<Option<f64>> {
        let is_due = epoch <= 5 || epoch.is_multiple_of(5) || self.is_last(epoch);
        if !is_due || !matches!(self.training.run.experiment, Experiment::Compare { .. }) {
            return Ok(None);
        }
        let estimates = Denoiser::from(network.clone()).denoise_all(self.noisy)?;
        mean_psnr(self.clean, &estimates).map(Some)
    }
}

impl Observer for Clerk<'_> {
    fn begin(&mut self, _: usize) {
        self.clock = thread_seconds();
    }

    fn batch(&mut self, progress: &Progress) -> Go {
        (self.advance)(progress.done as f64 / progress.all as f64);
        Go::On
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        let before = self.epochs.last().cloned().unwrap_or_default();
        let passed = thread_seconds().zip(self.clock).map(|(now, then)| now - then);
        self.epochs.push(Epoch {
            epoch: record.epoch,
            seconds: before.seconds + passed.unwrap_or(record.seconds - before.wall_seconds),
            wall_seconds: record.seconds,
            loss: fixed_loss(&self.fixed, network),
            running_loss: Some(record.loss),
            energy: record.energy,
            energy_steps: record.energy_steps,
            energy_rises: record.energy_rises,
            backtracks: record.backtracks,
            psnr: self.psnr(record.epoch, network)?,
        });
        self.stopped = !self.is_last(record.epoch) && interrupt::asked();
        Ok(if self.stopped { Go::Stop } else { Go::On })
    }

    fn checkpoint(&mut self, record: &EpochRecord, _: &Network<f32>) -> Result<Option<Notes>> {
        if self.is_last(record.epoch) {
            // The outcome is written next.
            return Ok(None);
        }
        keep(&self.training.folder.join(PARTIAL), &self.epochs)?;
        Ok(Some(Notes::new()))
    }
}
