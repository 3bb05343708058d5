//! What happens while a training runs: progress, scores, history, models.

use super::folder::{Entry, Folder, LAST, MODEL};
use super::{announce::duration, data::Data, interrupt};
use crate::output::{self, Progress};
use proxlift::model::{Model, Provenance};
use proxlift::training::{self, Config, EpochRecord, Go, Notes, Observer, Session, Trainer};
use proxlift::{Denoiser, Result, network::Network};
use std::time::{Duration, Instant};

/// The note of a checkpoint that holds the checksum of the history.
pub const HISTORY_CHECKSUM: &str = "history_crc32";

/// The time that a training takes is told after so long, or after its first epoch.
const TRIAL: Duration = Duration::from_millis(500);

pub struct Watch<'a> {
    config: &'a Config,
    folder: &'a Folder,
    data: &'a Data,
    provenance: Provenance,
    stop_after: Option<usize>,
    clock: Clock,
    bar: Option<Progress>,
    /// The best PSNR on the held-out images, and its epoch.
    pub best: Option<(f64, usize)>,
    psnr: Option<f64>,
    loss: Option<f64>,
}

impl<'a> Watch<'a> {
    pub fn new(folder: &'a Folder, session: &Session<'a>, data: &'a Data, stop_after: Option<usize>) -> Self {
        Self {
            config: session.config,
            folder,
            data,
            provenance: session.provenance(&data.described),
            stop_after,
            clock: Clock::Waiting,
            bar: None,
            best: None,
            psnr: None,
            loss: None,
        }
    }

    pub fn recall(&mut self, notes: &Notes) {
        let note = |name: &str| notes.get(name).copied();
        self.best = note("best_psnr").zip(note("best_epoch")).map(|(psnr, epoch)| (psnr, epoch as usize));
    }

    fn model(&self, network: &Network<f32>, epoch: usize) -> Model {
        self.config.model(self.provenance.clone(), epoch, network)
    }

    fn score(&mut self, epoch: usize, network: &Network<f32>) -> Result<(Option<f64>, Option<f64>)> {
        if !epoch.is_multiple_of(self.config.evaluate_every) && epoch != self.config.plan.epochs {
            return Ok((None, None));
        }
        let scores = self.data.validation.score(&Denoiser::from(self.model(network, epoch)))?;
        let psnr = scores.psnr.mean;
        self.psnr = Some(psnr);
        if self.best.is_none_or(|(best, _)| psnr > best) {
            self.best = Some((psnr, epoch));
            self.model(network, epoch).save(self.folder.path(MODEL))?;
        }
        Ok((Some(psnr), scores.ssim))
    }

    fn test(&self, epoch: usize, network: &Network<f32>) -> Result<(Option<f64>, Option<f64>)> {
        if !self.config.settings.test_every.is_some_and(|every| epoch.is_multiple_of(every)) {
            return Ok((None, None));
        }
        let scores = self.data.test().score(&Denoiser::from(self.model(network, epoch)))?;
        Ok((Some(scores.psnr.mean), scores.ssim))
    }
}

impl Observer for Watch<'_> {
    fn batch(&mut self, progress: &training::Progress) -> Go {
        let smooth = self.loss.map_or(progress.loss, |before| 0.98 * before + 0.02 * progress.loss);
        self.loss = Some(smooth);
        self.clock.tick(progress);
        let bar = self.bar.get_or_insert_with(|| Progress::with_text(progress.done, progress.all));
        let psnr = self.psnr.map_or(String::new(), |psnr| format!(", {psnr:.2} dB"));
        let (epoch, epochs) = (progress.epoch, self.config.plan.epochs);
        bar.show(progress.done, format!("epoch {epoch}/{epochs}, loss {smooth:.4}{psnr}"));
        Go::On
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        let (psnr, ssim) = self.score(record.epoch, network)?;
        let (test_psnr, test_ssim) = self.test(record.epoch, network)?;
        self.folder.append(&Entry { record: record.clone(), psnr, ssim, test_psnr, test_ssim })?;
        let last = record.epoch == self.config.plan.epochs;
        let stop = !last && (interrupt::asked() || self.stop_after.is_some_and(|most| record.epoch >= most));
        if last || stop {
            self.bar = None;
        }
        Ok(if stop { Go::Stop } else { Go::On })
    }

    fn checkpoint(&mut self, record: &EpochRecord, network: &Network<f32>) -> Result<Option<Notes>> {
        self.model(network, record.epoch).save(self.folder.path(LAST))?;
        let checksum = (HISTORY_CHECKSUM.to_string(), f64::from(self.folder.sync_history()?));
        let notes = self.best.into_iter().flat_map(|(psnr, epoch)| {
            [("best_psnr".to_string(), psnr), ("best_epoch".to_string(), epoch as f64)]
        });
        Ok(Some(notes.chain([checksum]).collect()))
    }
}

/// Tells once how long a training will take, from its own first batches; the very first only warms up.
enum Clock {
    Waiting,
    Running { since: Instant, done: usize, epoch: usize },
    Told,
}

impl Clock {
    fn tick(&mut self, &training::Progress { epoch, done, all, .. }: &training::Progress) {
        match *self {
            Self::Waiting => *self = Self::Running { since: Instant::now(), done, epoch },
            Self::Running { since, done: first, epoch: start }
                if since.elapsed() > TRIAL || epoch > start || done == all =>
            {
                let seconds = since.elapsed().as_secs_f64() * (all - first) as f64 / (done - first) as f64;
                let threads = rayon::current_num_threads();
                output::note(format_args!("time      about {} on {threads} threads", duration(seconds)));
                *self = Self::Told;
            }
            _ => {}
        }
    }
}
