//! What happens while a training runs: progress, scores, history, models, checkpoints.

use super::config::Config;
use super::data::Data;
use super::folder::{Entry, Folder};
use super::interrupt;
use crate::output::Progress;
use crate::scores::score;
use proxlift::Denoiser;
use proxlift::Result;
use proxlift::model::Checkpoint;
use proxlift::model::{Model, Provenance};
use proxlift::network::Network;
use proxlift::training::{EpochRecord, Go, Observer, Snapshot, Trainer};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The best network so far.
pub const BEST: &str = "best.safetensors";
/// The network of the last checkpoint.
pub const LAST: &str = "last.safetensors";

/// The seed of the noise on the test set, that of `proxlift evaluate`.
pub const TEST_SEED: u64 = 0;

/// Short epochs share a checkpoint, so that at most so much work is lost.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_secs(5);
/// Checkpoints may take one part in so many of the time.
const SHARE: u32 = 20;

/// Watches a run.
pub struct Watch<'a> {
    config: &'a Config,
    folder: &'a Folder,
    data: &'a Data,
    settings: String,
    provenance: Provenance,
    /// Epochs to do before stopping of one's own accord.
    stop_after: Option<usize>,
    bar: Option<Progress>,
    best: Option<(f64, usize)>,
    psnr: Option<f64>,
    loss: Option<f64>,
    saved: Option<Instant>,
    cost: Duration,
    stopped: Option<usize>,
}

impl<'a> Watch<'a> {
    /// A watch over a run that starts, or that goes on from `checkpoint`.
    pub fn new(
        config: &'a Config,
        folder: &'a Folder,
        data: &'a Data,
        settings: String,
        provenance: Provenance,
        checkpoint: Option<&Checkpoint>,
        stop_after: Option<usize>,
    ) -> Self {
        let note = |name: &str| checkpoint.and_then(|c| c.notes.get(name).copied());
        let best = note("best_psnr").zip(note("best_epoch")).map(|(psnr, epoch)| (psnr, epoch as usize));
        Self {
            config,
            folder,
            data,
            settings,
            provenance,
            stop_after,
            bar: None,
            best,
            psnr: None,
            loss: None,
            saved: None,
            cost: Duration::ZERO,
            stopped: None,
        }
    }

    /// The epoch after which the run was stopped, if it was.
    pub fn stopped(&self) -> Option<usize> {
        self.stopped
    }

    /// The best PSNR on the held-out pictures, and its epoch.
    pub fn best(&self) -> Option<(f64, usize)> {
        self.best
    }

    fn model(&self, network: &Network<f32>, epoch: usize) -> Model {
        let mut provenance = self.provenance.clone();
        provenance.insert("epochs".into(), format!("{epoch} of {}", self.config.epochs));
        Model { network: network.clone(), sigma: self.config.sigma, provenance }
    }

    fn score(&mut self, epoch: usize, network: &Network<f32>) -> Result<(Option<f64>, Option<f64>)> {
        if !epoch.is_multiple_of(self.config.evaluate_every) && epoch != self.config.epochs {
            return Ok((None, None));
        }
        let denoiser = Denoiser::from(network.clone());
        let (psnr, ssim) = self.data.validation.score(&denoiser)?;
        self.psnr = Some(psnr);
        if self.best.is_none_or(|(best, _)| psnr > best) {
            self.best = Some((psnr, epoch));
            self.model(network, epoch).save(self.folder.path(BEST))?;
        }
        Ok((Some(psnr), ssim))
    }

    /// PSNR and SSIM on the test set in the epochs that were asked for.
    fn test(&self, epoch: usize, network: &Network<f32>) -> Result<Option<(f64, f64)>> {
        if !self.config.settings.test_every.is_some_and(|every| epoch.is_multiple_of(every)) {
            return Ok(None);
        }
        let denoiser = Denoiser::from(network.clone());
        let scores = score(&denoiser, &self.data.test, self.config.sigma, TEST_SEED)?;
        Ok(Some((scores.summary(|s| s.psnr).mean, scores.summary(|s| s.ssim).mean)))
    }

    fn is_due(&self) -> bool {
        self.saved.is_none_or(|saved| saved.elapsed() >= BETWEEN_CHECKPOINTS.max(SHARE * self.cost))
    }

    fn save(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<()> {
        let start = Instant::now();
        let mut state = Snapshot::default();
        trainer.save(&mut state);
        let notes = self.best.into_iter().flat_map(|(psnr, epoch)| {
            [("best_psnr".to_string(), psnr), ("best_epoch".to_string(), epoch as f64)]
        });
        let checkpoint = Checkpoint {
            network: network.clone(),
            state,
            record: record.clone(),
            notes: notes.collect::<BTreeMap<_, _>>(),
            settings: self.settings.clone(),
        };
        self.model(network, record.epoch).save(self.folder.path(LAST))?;
        self.folder.checkpoint(&checkpoint)?;
        self.cost = start.elapsed();
        self.saved = Some(Instant::now());
        Ok(())
    }
}

impl Observer for Watch<'_> {
    fn batch(&mut self, done: usize, all: usize, loss: f64) {
        let smooth = self.loss.map_or(loss, |before| 0.98 * before + 0.02 * loss);
        self.loss = Some(smooth);
        let bar = self.bar.get_or_insert_with(|| Progress::with_text(done - 1, all));
        let per_epoch = all / self.config.epochs;
        let epoch = done.div_ceil(per_epoch.max(1));
        let psnr = self.psnr.map_or(String::new(), |psnr| format!(", {psnr:.2} dB"));
        bar.show(done, format!("epoch {epoch}/{}, loss {smooth:.4}{psnr}", self.config.epochs));
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<Go> {
        let (psnr, ssim) = self.score(record.epoch, network)?;
        let (test_psnr, test_ssim) = self.test(record.epoch, network)?.unzip();
        self.folder.append(&Entry { record: record.clone(), psnr, ssim, test_psnr, test_ssim })?;
        let last = record.epoch == self.config.epochs;
        let stop = !last && (interrupt::asked() || self.stop_after.is_some_and(|most| record.epoch >= most));
        if last || stop || self.is_due() {
            self.save(record, network, trainer)?;
        }
        if last || stop {
            self.bar = None;
        }
        self.stopped = stop.then_some(record.epoch);
        Ok(if stop { Go::Stop } else { Go::On })
    }
}
