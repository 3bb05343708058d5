//! `proxlift train`: settings -> configuration -> data, network, trainer -> a run with its folder.

pub(crate) mod build;
pub(crate) mod config;
pub(crate) mod data;
mod folder;
pub(crate) mod interrupt;
pub(crate) mod preset;
mod report;
pub(crate) mod settings;
mod watch;

use crate::flags::pool;
use crate::output;
use anyhow::Result;
use config::Config;
use data::Data;
use folder::Folder;
use proxlift::Error;
use proxlift::dataset::{Order, Patches};
use proxlift::engine::Cpu;
use proxlift::network::{Network, Provenance};
use proxlift::training::{Checkpoint, EpochRecord, Go, Observer, Plan, Trainer, train};
use settings::Settings;
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
  proxlift train --trainer adam                         back-propagation, to compare
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
    build::trainer(&config, &Network::glorot(config.architecture, config.lambda, config.seed)?, 1)?;
    let run = Run { config, out: told.out, stopped, stop_after: arguments.stop_after };
    pool(told.threads)?.install(|| run.work())
}

struct Run {
    config: Config,
    out: Option<PathBuf>,
    stopped: Option<(Folder, Checkpoint)>,
    stop_after: Option<usize>,
}

impl Run {
    fn work(self) -> Result<()> {
        let Self { mut config, out, stopped, stop_after } = self;
        let data = Data::load(&mut config)?;
        let count = data.patches.len();
        let fingerprint = config.fingerprint()?;
        let mut network = Network::glorot(config.architecture, config.lambda, config.seed)?;
        let mut trainer = build::trainer(&config, &network, count)?;
        let (folder, checkpoint) = stopped.unzip();
        if let (Some(folder), Some(checkpoint)) = (&folder, &checkpoint) {
            if checkpoint.settings != fingerprint {
                let reason = "the checkpoint is of other settings than this config.toml: restore the file";
                return Err(Error::file(folder.path("config.toml"), reason).into());
            }
            let of_folder = |e: Error| Error::file(folder.root(), e.to_string());
            network = checkpoint.network.clone();
            trainer.restore(&checkpoint.state).map_err(of_folder)?;
        }
        let first = checkpoint.as_ref().map(|c| c.record.clone()).unwrap_or_default();
        announce(&config, &data, trainer.as_ref(), &first)?;
        let folder = match folder {
            Some(folder) => {
                folder.rewind(first.epoch)?;
                output::note(format_args!(
                    "going on after epoch {} of {}",
                    first.epoch,
                    folder.root().display()
                ));
                folder
            }
            None => Folder::create(out.as_deref(), &config.name, &config.to_toml()?)?,
        };
        interrupt::listen();
        let described = trainer.describe();
        let provenance = provenance(&config, &data, &described, &fingerprint);
        let plan = plan(&config, config.epochs);
        let validation = &data.validation;
        let mut watch = Watch::new(
            &config,
            &folder,
            validation,
            fingerprint,
            provenance,
            checkpoint.as_ref(),
            stop_after,
        );
        drop(checkpoint);
        train(&Cpu::new(), &mut network, trainer.as_mut(), &data.patches, &plan, &first, &mut watch)?;
        if let Some(epoch) = watch.stopped() {
            output::note(format_args!(
                "stopped after epoch {epoch} of {}; go on with: proxlift train --resume {}",
                config.epochs,
                folder.root().display()
            ));
            if interrupt::asked() {
                std::process::exit(interrupt::EXIT_CODE);
            }
            return Ok(());
        }
        report::finish(&config, &data, &folder, watch.best(), &described)
    }
}

/// How `config` runs through its patches.
pub(crate) fn plan(config: &Config, epochs: usize) -> Plan {
    Plan {
        epochs,
        batch: config.batch,
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

/// Says what will be done and how long it will take.
fn announce(config: &Config, data: &Data, trainer: &dyn Trainer, first: &EpochRecord) -> Result<()> {
    let (sizes, count) = (config.architecture, data.patches.len());
    let kernel = sizes.kernel;
    output::note(format_args!(
        "network   K={}, J={}, {kernel}x{kernel} kernels, {}: {} parameters",
        sizes.depth,
        sizes.features,
        if sizes.channels == 1 { "gray" } else { "RGB" },
        sizes.parameters()
    ));
    output::note(format_args!("trainer   {}", trainer.describe()));
    output::note(format_args!(
        "data      {}; {count} patches of {1} x {1} pixels, sigma {2:.4}",
        data.described, config.patch, config.sigma
    ));
    output::note(format_args!("          {} epochs in batches of {}", config.epochs, config.batch));
    let kept = build::persistent_bytes(config, count);
    let kept_text = match kept {
        0 => String::new(),
        // A checkpoint copies u before it writes.
        kept => format!(", of it {} for persistent u and as much again at checkpoints", size(kept)),
    };
    let all = data.bytes + build::batch_bytes(config) + 2 * kept;
    output::note(format_args!("memory    about {}{kept_text}", size(all)));
    let seconds = estimate(config, data)? * (config.epochs - first.epoch.min(config.epochs)) as f64;
    output::note(format_args!(
        "time      about {} on {} threads",
        duration(seconds),
        rayon::current_num_threads()
    ));
    Ok(())
}

/// Batches that the time of a training is told from, and the seconds that they may take.
const TRIAL: (usize, f64) = (50, 0.5);

/// Seconds that an epoch will take, from some batches on a network that is thrown away; the first one only warms up.
fn estimate(config: &Config, data: &Data) -> Result<f64> {
    struct Clock {
        first: Option<f64>,
        mean: f64,
    }
    impl Observer for Clock {
        fn batch(&mut self, _: usize, _: usize, _: f64) {}
        fn epoch(&mut self, record: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> proxlift::Result<Go> {
            let first = *self.first.get_or_insert(record.seconds);
            self.mean = (record.seconds - first) / (record.epoch - 1).max(1) as f64;
            Ok(if record.epoch > 1 && record.seconds > TRIAL.1 { Go::Stop } else { Go::On })
        }
    }
    let count = config.batch.min(data.patches.len());
    let few: Patches = data.patches.first(count);
    let mut network = Network::glorot(config.architecture, config.lambda, config.seed)?;
    let mut trainer = build::trainer(config, &network, count)?;
    let mut clock = Clock { first: None, mean: 0.0 };
    let plan = plan(config, TRIAL.0);
    // The same batch again and again may diverge where the training does not: the time is told all the same.
    let _ =
        train(&Cpu::new(), &mut network, trainer.as_mut(), &few, &plan, &EpochRecord::default(), &mut clock);
    let network = Network::glorot(config.architecture, config.lambda, config.seed)?;
    let start = std::time::Instant::now();
    data.validation.score(&crate::denoiser::Denoiser::from_network(network, config.sigma))?;
    let scoring = start.elapsed().as_secs_f64() / config.evaluate_every as f64;
    Ok(clock.mean * data.patches.len().div_ceil(config.batch) as f64 + scoring)
}

fn size(bytes: usize) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b => format!("{:.0} MB", (b / 1e6).max(1.0)),
    }
}

/// A time, in words.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
