//! `proxlift train`: settings -> configuration -> data, network, trainer -> a run with its folder.

pub(crate) mod announce;
pub(crate) mod build;
pub(crate) mod config;
pub(crate) mod data;
mod folder;
mod grid;
pub(crate) mod interrupt;
pub(crate) mod preset;
mod relevance;
mod report;
pub(crate) mod settings;
mod watch;

use crate::flags::pool;
use crate::output;
use announce::announce;
use anyhow::Result;
use config::Config;
use data::Data;
use folder::Folder;
use proxlift::Error;
use proxlift::dataset::Order;
use proxlift::engine::Cpu;
use proxlift::model::Checkpoint;
use proxlift::model::Provenance;
use proxlift::training::{EpochRecord, Plan, train};
use settings::{Rate, Settings};
use std::path::PathBuf;
use watch::Watch;

/// Train a network to remove noise, by default without back-propagation.
///
/// Without arguments, the network of the paper is trained on built-in pictures in about a minute. A run keeps all it
/// does in a folder: config.toml (repeats it), history.jsonl, checkpoint/ (to go on from), best.safetensors and
/// last.safetensors (models), before-after.png, training.svg and result.json.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift train                                        the paper's network, on built-in pictures
  proxlift train --data photos/ --test kodak/           on your pictures, scored on others
  proxlift train --data photos/ --sigma 25/255 --channels 3 --epochs 100
  proxlift train --preset paper                         lifted Bregman as printed: backtracking
  proxlift train --metric gauss-newton --rate backtracking  the same in a variable metric
  proxlift train --trainer adam                         back-propagation, to compare
  proxlift train --trainer sgd --rate grid              the paper's SGD: the best rate of a grid
  proxlift train --config runs/lb-1/config.toml         the same run again, to the bit
  proxlift train --config mine.toml --seed 2            a file of settings; flags win over it
  proxlift train --resume runs/lb-1                     go on after Ctrl-C, a crash or a power cut

In a file, the keys are the names of the flags: depth = 15, fresh-noise = false, rate = \"backtracking\".
Ctrl-C stops after the epoch with a checkpoint; twice stops at once. A crash costs about 5 seconds of work, or one
epoch where epochs are longer. Resumed runs reach the same bits as those that were never stopped.
The best model is chosen on pictures held out of --data, never on those of --test.")]
pub struct Arguments {
    /// A TOML file of settings; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Go on with the run in this folder, with its settings; only --threads may be given too
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    resume: Option<PathBuf>,
    /// Stop after epoch N with a checkpoint, as Ctrl-C would
    #[arg(long, value_name = "N", help_heading = "Run")]
    stop_after: Option<usize>,
    #[command(flatten)]
    settings: Settings,
}

/// Settles the settings, then trains in a pool of threads.
pub fn run(arguments: &Arguments) -> Result<()> {
    let told = &arguments.settings;
    let (told, stopped) = match (&arguments.resume, &arguments.config) {
        (Some(path), _) => {
            if let Some(name) = told.table()?.keys().find(|name| *name != "threads") {
                return Err(Error::invalid(format!(
                    "--resume goes on with the settings of the run: leave out --{name}"
                ))
                .into());
            }
            let (folder, kept, checkpoint) = Folder::resume(path)?;
            (told.over(&kept)?, Some((folder, checkpoint)))
        }
        (None, Some(path)) => (told.over(&Settings::load(path)?)?, None),
        (None, None) => (told.clone(), None),
    };
    let config = Config::resolve(&told)?;
    // Settings that contradict each other are refused before any picture is read or painted.
    build::trainer(&config, &build::network(&config)?, 1)?;
    let run = Run { config, out: told.out, stopped, stop_after: arguments.stop_after };
    pool(told.threads)?.install(|| run.work())
}

struct Run {
    config: Config,
    out: Option<PathBuf>,
    stopped: Option<(Folder, Option<Checkpoint>)>,
    stop_after: Option<usize>,
}

impl Run {
    fn work(self) -> Result<()> {
        let Self { mut config, out, stopped, stop_after } = self;
        let data = Data::load(&mut config)?;
        let (folder, checkpoint) = stopped.unzip();
        let checkpoint = checkpoint.flatten();
        let network = build::network(&config)?;
        if let (Some(folder), Some(checkpoint), Rate::Value(_) | Rate::Backtracking) =
            (&folder, &checkpoint, config.rate)
        {
            check_settings(folder, checkpoint, &config.fingerprint()?)?;
        }
        let first = checkpoint.as_ref().map(|c| c.record.clone()).unwrap_or_default();
        announce(&config, &data, build::trainer(&config, &network, 1)?.as_ref(), &first)?;
        let folder = match folder {
            Some(folder) => folder,
            None => Folder::create(out.as_deref(), &config.name, &config.to_toml()?)?,
        };
        interrupt::listen();
        let ended = match config.rate {
            Rate::Grid => grid::search(&mut config, &data, &folder, stop_after)?,
            _ => session(&config, &data, &folder, checkpoint, stop_after)?,
        };
        match ended {
            Ended::Done { best, trainer } => report::finish(&config, &data, &folder, best, &trainer),
            Ended::Stopped { epoch } => {
                output::note(format_args!(
                    "stopped after epoch {epoch} of {}; go on with: proxlift train --resume {}",
                    config.epochs,
                    folder.root().display()
                ));
                if interrupt::asked() {
                    std::process::exit(interrupt::EXIT_CODE);
                }
                Ok(())
            }
        }
    }
}

/// How a session ended.
enum Ended {
    /// All epochs are done.
    Done {
        /// The best PSNR on the held-out pictures, and its epoch.
        best: Option<(f64, usize)>,
        /// The trainer, in a line.
        trainer: String,
    },
    /// It was stopped after an epoch.
    Stopped {
        /// The epoch.
        epoch: usize,
    },
}

/// Trains with one rate in one folder, from the start or from a checkpoint.
fn session(
    config: &Config,
    data: &Data,
    folder: &Folder,
    checkpoint: Option<Checkpoint>,
    stop_after: Option<usize>,
) -> proxlift::Result<Ended> {
    let fingerprint = config.fingerprint()?;
    let mut network = build::network(config)?;
    let mut trainer = build::trainer(config, &network, data.patches.len())?;
    let mut first = EpochRecord::default();
    if let Some(checkpoint) = &checkpoint {
        check_settings(folder, checkpoint, &fingerprint)?;
        network = checkpoint.network.clone();
        first = checkpoint.record.clone();
        trainer.restore(&checkpoint.state).map_err(|e| Error::file(folder.root(), e.to_string()))?;
        folder.rewind(first.epoch)?;
        let root = folder.root().display();
        output::note(format_args!("going on after epoch {} of {root}", first.epoch));
    }
    let described = trainer.describe();
    let provenance = provenance(config, data, &described, &fingerprint);
    let mut watch =
        Watch::new(config, folder, data, fingerprint, provenance, checkpoint.as_ref(), stop_after);
    drop(checkpoint);
    let plan = plan(config, config.epochs);
    train(&Cpu::new(), &mut network, trainer.as_mut(), &data.patches, &plan, &first, &mut watch)?;
    Ok(match watch.stopped() {
        Some(epoch) => Ended::Stopped { epoch },
        None => Ended::Done { best: watch.best(), trainer: described },
    })
}

/// Refuses a checkpoint of other settings than those of its folder.
fn check_settings(folder: &Folder, checkpoint: &Checkpoint, fingerprint: &str) -> proxlift::Result<()> {
    if checkpoint.settings == fingerprint {
        return Ok(());
    }
    let reason = "the checkpoint is of other settings than this config.toml: restore the file";
    Err(Error::file(folder.path("config.toml"), reason))
}

/// How `config` runs through its patches.
pub(crate) fn plan(config: &Config, epochs: usize) -> Plan {
    Plan {
        epochs,
        batch: config.batch,
        last_batch: config.last_batch,
        order: Order::Shuffled(config.seed),
        fresh_noise: config.settings.fresh_noise == Some(true),
        fresh_places: config.settings.fresh_places == Some(true),
    }
}

fn provenance(config: &Config, data: &Data, trainer: &str, fingerprint: &str) -> Provenance {
    let patches = format!("{} of {2} x {2} pixels from {}", data.patches.len(), data.described, config.patch);
    Provenance::from([
        ("trainer".into(), trainer.into()),
        ("data".into(), patches),
        ("batch".into(), config.batch.to_string()),
        ("seed".into(), config.seed.to_string()),
        ("settings".into(), fingerprint.into()),
        ("program".into(), format!("proxlift {}", env!("CARGO_PKG_VERSION"))),
    ])
}
