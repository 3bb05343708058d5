//! One run: the trainer and the driver of `proxlift train`, and what is noted after every epoch.

use super::machine::{COMMIT, thread_seconds};
use super::outcome::{Epoch, HISTORY, MODEL, Outcome};
use super::pictures::Pictures;
use super::plan::Run;
use crate::files::write;
use crate::train::{build, interrupt, plan};
use proxlift::Denoiser;
use proxlift::dataset::{Patches, Visit};
use proxlift::engine::{Cpu, Engine};
use proxlift::evaluation::{Peak, psnr};
use proxlift::field::Field;
use proxlift::image::Image;
use proxlift::model::Checkpoint;
use proxlift::model::{Model, Provenance};
use proxlift::network::Network;
use proxlift::training::{EpochRecord, Go, Observer, Snapshot, Trainer, train};
use proxlift::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A run that was stopped goes on from here.
const CHECKPOINT: &str = "checkpoint.safetensors";
/// The epochs up to there.
const PARTIAL: &str = "partial.json";
/// At most so much work is lost.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_secs(10);
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
    write(&folder.join("config.toml"), config.to_toml()?.as_bytes())?;
    let patches = pictures.patches(config, config.settings.augment == Some(true))?;
    let mut network = build::network(config)?;
    let mut trainer = build::trainer(config, &network, patches.len())?;
    let mut clerk = Clerk {
        run,
        fingerprint,
        fixed: Fixed::new(&pictures.patches(config, false)?, &network)?,
        clean: pictures.test.images(),
        noisy,
        folder,
        advance,
        epochs: Vec::new(),
        saved: Instant::now(),
        clock: None,
        stopped: false,
    };
    let mut first = EpochRecord::default();
    match clerk.recall() {
        Some(checkpoint) if trainer.restore(&checkpoint.state).is_ok() => {
            network = checkpoint.network;
            first = checkpoint.record;
        }
        _ => {
            // A trainer that could not be restored may be half changed.
            trainer = build::trainer(config, &network, patches.len())?;
            clerk.start(&network)?;
        }
    }
    let described = trainer.describe();
    clerk.clock = thread_seconds();
    let trained = train(
        &Cpu::new(),
        &mut network,
        trainer.as_mut(),
        &patches,
        &plan(config, config.epochs),
        &first,
        &mut clerk,
    );
    if clerk.stopped {
        return Ok(None);
    }
    let diverged = match trained {
        Ok(()) => None,
        Err(error @ Error::Diverged { .. }) => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    if diverged.is_none() {
        let provenance = Provenance::from([
            ("trainer".into(), described.clone()),
            ("data".into(), pictures.described.clone()),
            ("settings".into(), fingerprint.into()),
            ("program".into(), format!("proxlift {}, reproduce", env!("CARGO_PKG_VERSION"))),
        ]);
        Model { network, sigma: config.sigma, provenance }.save(folder.join(MODEL))?;
    }
    let outcome = Outcome {
        fingerprint: fingerprint.into(),
        trainer: described,
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
        let engine = Cpu::new();
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
    fingerprint: &'a str,
    fixed: Fixed,
    clean: &'a [Image],
    noisy: &'a [Image],
    folder: &'a Path,
    advance: &'a dyn Fn(f64),
    epochs: Vec<Epoch>,
    saved: Instant,
    /// The processor time of this thread when the training went on.
    clock: Option<f64>,
    stopped: bool,
}

impl Clerk<'_> {
    /// The checkpoint of this very run, with the epochs up to it.
    fn recall(&mut self) -> Option<Checkpoint> {
        let checkpoint = Checkpoint::load(self.folder.join(CHECKPOINT)).ok()?;
        let text = std::fs::read_to_string(self.folder.join(PARTIAL)).ok()?;
        let mut epochs: Vec<Epoch> = serde_json::from_str(&text).ok()?;
        // The epochs are written first: there may be more of them than the checkpoint knows.
        epochs.truncate(checkpoint.record.epoch + 1);
        let fits = checkpoint.settings == self.fingerprint && epochs.len() == checkpoint.record.epoch + 1;
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
        let due = epoch <= 5 || epoch.is_multiple_of(5) || epoch == self.run.config.epochs;
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

    fn save(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<()> {
        let mut state = Snapshot::default();
        trainer.save(&mut state);
        let text =
            serde_json::to_string(&self.epochs).map_err(|e| Error::file(self.folder, e.to_string()))?;
        write(&self.folder.join(PARTIAL), text.as_bytes())?;
        let checkpoint = Checkpoint {
            network: network.clone(),
            state,
            record: record.clone(),
            notes: BTreeMap::new(),
            settings: self.fingerprint.into(),
        };
        checkpoint.save(self.folder.join(CHECKPOINT))?;
        self.saved = Instant::now();
        Ok(())
    }
}

impl Observer for Clerk<'_> {
    fn batch(&mut self, done: usize, all: usize, _: f64) {
        (self.advance)(done as f64 / all as f64);
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<Go> {
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
        let last = record.epoch == self.run.config.epochs;
        self.stopped = !last && interrupt::asked();
        if self.stopped || (!last && self.saved.elapsed() > BETWEEN_CHECKPOINTS) {
            self.save(record, network, trainer)?;
        }
        self.clock = thread_seconds();
        Ok(if self.stopped { Go::Stop } else { Go::On })
    }
}
