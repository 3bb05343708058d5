//! `proxlift train`: flags and files -> the library's configuration -> a run with its folder.

pub(crate) mod announce;
pub(crate) mod data;
pub(crate) mod file;
mod flags;
pub(crate) mod folder;
mod grid;
pub(crate) mod interrupt;
pub(crate) mod record;
mod report;
mod session;
mod watch;

use crate::{flags::pool, output};
use announce::announce;
use anyhow::Result;
use data::Data;
use flags::Flags;
use folder::Folder;
use proxlift::team::Ranks;
use proxlift::training::{Config, Settings};
use proxlift::{Error, network::Network};
use record::Record;
use report::Say;
use serde_json::json;
use session::{Material, train_in};
use std::path::PathBuf;
use std::sync::Arc;

const EXAMPLES: &str = include_str!("../help/train.txt").trim_ascii_end();
const MORE: &str = include_str!("../help/train-more.txt").trim_ascii_end();

/// Train a network to remove noise.
///
/// Without arguments, the network of the paper is trained on built-in pictures in less than a minute, by lifted Bregman. A
/// run keeps everything in a folder: config.toml (repeats it), history.jsonl, checkpoint/ (to resume from),
/// model.safetensors (the best on held-out pictures), last.safetensors, before-after.png, training.svg and result.json.
#[derive(clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\nMore flags: --help"))]
#[command(after_long_help = format!("{EXAMPLES}\n\n{MORE}"))]
pub struct Arguments {
    /// TOML file of settings; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Resume the run in this folder, with its settings; only --threads may be given too
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    resume: Option<PathBuf>,
    /// With --resume: go on from the checkpoint before the last one, should that be damaged
    #[arg(long, requires = "resume", hide_short_help = true)]
    previous: bool,
    /// With --resume: go on although the pictures were changed since the run was begun
    #[arg(long, requires = "resume", hide_short_help = true)]
    accept_changed_data: bool,
    /// Print one JSON object at the end instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Flags,
    /// Stop after epoch N with a checkpoint, as Ctrl-C would
    #[arg(long, value_name = "N", help_heading = "Run", hide_short_help = true)]
    stop_after: Option<usize>,
}

/// Trains, as one of several processes if there are more.
pub fn run(arguments: &Arguments, ranks: &Arc<Ranks>) -> Result<()> {
    let (given, folder) = ranks.agree(settings(arguments, ranks))?;
    let config = ranks.agree(Config::resolve(&given))?;
    // Settings that contradict each other are refused before any picture is read or painted.
    let network = ranks.agree(config.network())?;
    let same = ranks.text_of_first(&config.fingerprint()) == config.fingerprint();
    ranks.agree(if same {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "process {} has other settings than the first: start all with the same flags",
            ranks.rank()
        )))
    })?;
    ranks.agree(pool(given.threads))?.install(|| work(arguments, config, network, given.out, folder, ranks))
}

/// The settings, and the folder of the run if it is resumed, for the first process.
fn settings(arguments: &Arguments, ranks: &Ranks) -> proxlift::Result<(Settings, Option<Folder>)> {
    let given = arguments.settings.0.clone();
    Ok(match (&arguments.resume, &arguments.config) {
        (Some(path), _) => {
            if let Some(other) = given.given().find(|setting| setting.field != "threads") {
                let reason = format!("--resume uses the settings of the run: leave out --{}", other.name());
                return Err(Error::invalid(reason));
            }
            let (folder, kept) = if ranks.is_first() {
                let (folder, kept) = Folder::resume(path)?;
                (Some(folder), kept)
            } else {
                (None, Folder::settings(path)?)
            };
            (given.over(kept), folder)
        }
        (None, Some(path)) => (given.over(file::load(path)?), None),
        (None, None) => (given, None),
    })
}

/// Trains by one process in a folder, to the end, without a word.
pub fn train_whole(mut config: Config, folder: &Folder, alone: &Arc<Ranks>) -> Result<()> {
    let network = config.network()?;
    let data = Data::load(&mut config, alone)?;
    Record::of(&config.settings, alone)?.check(folder.root(), false)?;
    let material = Material { data: &data, network, stop_after: None, previous: false, ranks: alone };
    let outcome = match config.grid.clone() {
        Some(grid) => grid::search(&mut config, &grid, &material, Some(folder), true)?,
        None => train_in(Some(folder), &config, &material, |_| ())?,
    };
    report::finish(&config, &data, folder, &outcome, Say::Nothing)
}

fn work(
    arguments: &Arguments,
    mut config: Config,
    network: Network<f32>,
    out: Option<PathBuf>,
    folder: Option<Folder>,
    ranks: &Arc<Ranks>,
) -> Result<()> {
    let record = ranks.agree(Record::of(&config.settings, ranks))?;
    let data = ranks.agree(Data::load(&mut config, ranks))?;
    // The first process has the folder.
    let folder = ranks.agree(match folder {
        None if ranks.is_first() && arguments.resume.is_none() => {
            file::text(&config).and_then(|text| Folder::create(out.as_deref(), &config.name, &text)).map(Some)
        }
        folder => Ok(folder),
    })?;
    let folder = folder.as_ref();
    let checked = folder.map(|folder| record.check(folder.root(), arguments.accept_changed_data));
    ranks.agree(checked.unwrap_or(Ok(())))?;
    if ranks.size() == 1 {
        interrupt::listen();
    } else {
        interrupt::leave_as_a_team("resume the run with --resume");
    }
    let (stop_after, previous) = (arguments.stop_after, arguments.previous);
    let material = Material { data: &data, network, stop_after, previous, ranks };
    let outcome = match config.grid.clone() {
        Some(grid) => grid::search(&mut config, &grid, &material, folder, arguments.json)?,
        None => train_in(folder, &config, &material, |session| announce(session, &data))?,
    };
    let Some(folder) = folder else { return Ok(ranks.agree(Ok(()))?) };
    let Some(epoch) = outcome.stopped else {
        let say = if arguments.json { Say::Json } else { Say::Table };
        report::finish(&config, &data, folder, &outcome, say)?;
        return Ok(ranks.agree(Ok(()))?);
    };
    ranks.agree(Ok(()))?;
    if arguments.json {
        output::json(&json!({"folder": folder.root(), "stopped_after": epoch}))?;
    }
    output::note(format_args!(
        "stopped after epoch {epoch} of {}; resume with: proxlift train --resume {}",
        config.plan.epochs,
        folder.root().display()
    ));
    if interrupt::asked() {
        std::process::exit(interrupt::EXIT_CODE);
    }
    Ok(())
}
