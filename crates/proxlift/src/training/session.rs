//! One training, from its configuration to a trained network: what every front end runs.

use super::{Checkpoint, Config, EpochRecord, Go, Observer, Progress, Snapshot, Trainer, train};
use crate::model::{Model, Provenance};
use crate::{Result, dataset::Patches, engine::Engine, network::Network, team::Ranks};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// At most so much work is lost, or one epoch where epochs are longer.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_secs(5);
/// Checkpoints may take one part in so many of the time.
const SHARE: u32 = 20;

/// A training: a network, its trainer, and how far they are.
///
/// ```
/// use proxlift::Denoiser;
/// use proxlift::dataset::ImageSet;
/// use proxlift::engine::Cpu;
/// use proxlift::image::Channels;
/// use proxlift::training::{Config, EpochRecord, Session, Settings};
///
/// let settings = Settings { depth: Some(4), features: Some(8), epochs: Some(2), ..Settings::default() };
/// let config = Config::resolve(&Settings { count: Some(60), ..settings })?;
/// let images = ImageSet::embedded_train(20, 64, Channels::Grey, 0)?;
/// let patches = config.patches(images.into())?;
/// let mut session = Session::new(&config, config.network()?, &patches)?;
/// let mut losses = Vec::new();
/// session.run(&Cpu::new(), &mut |epoch: &EpochRecord| losses.push(epoch.loss))?;
/// assert!(losses[1] < losses[0]);
/// let denoiser = Denoiser::from(session.model("20 built-in images"));
/// # let _ = denoiser;
/// # Ok::<(), proxlift::Error>(())
/// ```
pub struct Session<'a> {
    /// What it depends on.
    pub config: &'a Config,
    /// What it is trained on.
    pub patches: &'a Patches,
    /// The network as it is now.
    pub network: Network<f32>,
    /// What trains it.
    pub trainer: Box<dyn Trainer + Send>,
    /// The last epoch; zeros at the start.
    pub record: EpochRecord,
    checkpoints: Option<Keeping>,
}

/// Where checkpoints are kept, the name of their settings, and whether the one before the last is kept too.
type Keeping = (PathBuf, String, bool);

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All epochs are done.
    Done,
    /// The observer stopped it after this epoch.
    Stopped(usize),
}

impl<'a> Session<'a> {
    /// A training of `network`, that of [`Config::network`], on `patches`, from the start.
    pub fn new(config: &'a Config, network: Network<f32>, patches: &'a Patches) -> Result<Self> {
        let trainer = config.trainer(&network, patches.len())?;
        Ok(Self::with_trainer(config, network, patches, trainer))
    }

    /// The same with any trainer.
    pub fn with_trainer(
        config: &'a Config,
        network: Network<f32>,
        patches: &'a Patches,
        trainer: Box<dyn Trainer + Send>,
    ) -> Self {
        Self { config, patches, network, trainer, record: EpochRecord::default(), checkpoints: None }
    }

    /// Continues from a checkpoint, to the same bits as if it had never been stopped.
    /// Fails when the checkpoint is of another trainer or network; then this session is of no use any more.
    pub fn resume(&mut self, checkpoint: Checkpoint) -> Result<()> {
        refuse!(checkpoint.network.architecture() != self.network.architecture() =>
            "the checkpoint is of another network");
        self.trainer.restore(&checkpoint.state)?;
        (self.network, self.record) = (checkpoint.network, checkpoint.record);
        Ok(())
    }

    /// Keeps checkpoints at `path`, each of which names its `settings`: after the first epoch, every few seconds, and when
    /// the session ends or is stopped.
    pub fn keep_checkpoints(&mut self, path: impl AsRef<Path>, settings: impl Into<String>) {
        self.checkpoints = Some((path.as_ref().to_path_buf(), settings.into(), false));
    }

    /// The same, and the checkpoint before the last too, at [`Checkpoint::previous`]: should the last be damaged, the
    /// training can go on from there.
    pub fn keep_two_checkpoints(&mut self, path: impl AsRef<Path>, settings: impl Into<String>) {
        self.checkpoints = Some((path.as_ref().to_path_buf(), settings.into(), true));
    }

    /// Trains to the end, or until the observer stops it.
    /// In a [team](crate::team), all members run, each with a session of its own; checkpoints are kept by the first.
    /// Fails when the training [diverges](crate::Error::Diverged), the observer fails, or a checkpoint cannot be written.
    pub fn run(&mut self, engine: &dyn Engine<f32>, observer: &mut dyn Observer) -> Result<Ended> {
        let first = self.record.clone();
        let plan = &self.config.plan;
        let mut keeper = Keeper {
            observer,
            checkpoints: self.checkpoints.as_ref(),
            epochs: plan.epochs,
            ranks: engine.ranks(),
            record: &mut self.record,
            saved: None,
            cost: Duration::ZERO,
            stopped: None,
        };
        train(engine, &mut self.network, self.trainer.as_mut(), self.patches, plan, &first, &mut keeper)?;
        Ok(keeper.stopped.map_or(Ended::Done, Ended::Stopped))
    }

    /// How the network comes to be, trained on `data`.
    pub fn provenance(&self, data: &str) -> Provenance {
        let (config, count) = (self.config, self.patches.len());
        let entries = [
            ("trainer", self.trainer.describe()),
            ("data", format!("{count} of {0} x {0} pixels from {data}", config.patch)),
            ("batch", config.plan.batch.to_string()),
            ("seed", config.seed.to_string()),
            ("settings", config.fingerprint()),
            ("program", format!("proxlift {}", env!("CARGO_PKG_VERSION"))),
        ];
        entries.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    /// The network as it is now, with what its users must know; `data` says what it was trained on.
    pub fn model(&self, data: &str) -> Model {
        self.config.model(self.provenance(data), self.record.epoch, &self.network)
    }
}

/// Passes everything on to the observer, and keeps checkpoints.
struct Keeper<'a> {
    observer: &'a mut dyn Observer,
    checkpoints: Option<&'a Keeping>,
    epochs: usize,
    ranks: &'a Ranks,
    record: &'a mut EpochRecord,
    saved: Option<Instant>,
    cost: Duration,
    stopped: Option<usize>,
}

impl Keeper<'_> {
    fn is_due(&self) -> bool {
        self.saved.is_none_or(|saved| saved.elapsed() >= BETWEEN_CHECKPOINTS.max(SHARE * self.cost))
    }

    fn save(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<()> {
        let start = Instant::now();
        let mut state = Snapshot::default();
        trainer.save(&mut state);
        let state = state.gathered(self.ranks);
        let written = self.write(record, network, state);
        self.ranks.agree(written)?;
        (self.cost, self.saved) = (start.elapsed(), Some(Instant::now()));
        Ok(())
    }

    /// Writes the checkpoint, where one is kept.
    fn write(&mut self, record: &EpochRecord, network: &Network<f32>, state: Snapshot) -> Result<()> {
        let Some((path, settings, two)) = self.checkpoints else { return Ok(()) };
        let Some(notes) = self.observer.checkpoint(record, network)? else { return Ok(()) };
        let (network, record, settings) = (network.clone(), record.clone(), settings.clone());
        let checkpoint = Checkpoint { network, state, record, notes, settings };
        if *two { checkpoint.save_keeping_previous(path) } else { checkpoint.save(path) }
    }
}

impl Observer for Keeper<'_> {
    fn begin(&mut self, epoch: usize) {
        self.observer.begin(epoch);
    }

    fn batch(&mut self, progress: &Progress) -> Go {
        self.observer.batch(progress)
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, trainer: &dyn Trainer) -> Result<Go> {
        let seen = self.observer.epoch(record, network, trainer);
        let go = self.ranks.agree(seen)?;
        *self.record = record.clone();
        let last = record.epoch == self.epochs;
        // In a team, the first member decides: it has the observer and the clock.
        let (due, kept) = (last || go == Go::Stop || self.is_due(), self.checkpoints.is_some());
        let (stop, save) = self.ranks.from_first(|| Ok((go == Go::Stop, due && kept)))?;
        self.stopped = (stop && !last).then_some(record.epoch);
        if save {
            self.save(record, network, trainer)?;
        }
        Ok(if stop { Go::Stop } else { Go::On })
    }
}
