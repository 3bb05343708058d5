//! `--rate grid`: every rate of the grid trains in a folder of its own below `grid/`, and the best becomes the run's.
//!
//! `grid.json` holds the rates that are done. A search that goes on does not repeat them, and goes on with the one that
//! was interrupted from its checkpoint.

use super::config::Config;
use super::data::Data;
use super::folder::Folder;
use super::watch::{BEST, LAST};
use super::{Ended, session};
use crate::output;
use proxlift::training::{Trial, best_trial, search_rates};
use proxlift::{Error, Result};
use serde_json::json;

/// The trials, and the winner once it is known.
const TRIALS: &str = "grid.json";

/// Tries the rates, then makes the best the run's; `config` becomes that of the winner.
///
/// # Errors
/// When a file cannot be written or read, or the training diverges with every rate.
pub fn search(
    config: &mut Config,
    data: &Data,
    folder: &Folder,
    stop_after: Option<usize>,
) -> anyhow::Result<Ended> {
    let mut stopped = 0;
    let trial_of = |rate: f64| {
        let trial = config.with_rate(rate, config.grid_epochs);
        let place = folder.path("grid").join(format!("{rate:e}"));
        let (place, checkpoint) = Folder::trial(place, &trial.to_toml()?)?;
        Ok::<_, Error>((trial, place, checkpoint))
    };
    let trials = search_rates(
        &config.rates,
        done(folder)?,
        |rate| {
            output::note(format_args!("rate {rate:e}"));
            let (trial, place, checkpoint) = trial_of(rate)?;
            match session(&trial, data, &place, checkpoint, stop_after)? {
                Ended::Stopped { epoch } => {
                    stopped = epoch;
                    Ok(None)
                }
                Ended::Done { .. } => {
                    let last = place.history()?.pop().map(|entry| entry.record).unwrap_or_default();
                    Ok(Some((last.loss, last.seconds)))
                }
            }
        },
        |trials| keep(folder, trials, None),
    )?;
    let Some(trials) = trials else {
        return Ok(Ended::Stopped { epoch: stopped });
    };
    let winner = best_trial(&trials)?.rate;
    keep(folder, &trials, Some(winner))?;
    print(&trials, winner)?;
    if config.grid_epochs == config.epochs {
        let (_, place, _) = trial_of(winner)?;
        folder.adopt(&place, &[BEST, LAST])?;
    }
    *config = config.with_rate(winner, config.epochs);
    Ok(session(config, data, folder, folder.latest()?, stop_after)?)
}

fn done(folder: &Folder) -> Result<Vec<Trial>> {
    #[derive(serde::Deserialize)]
    struct Kept {
        trials: Vec<Trial>,
    }
    let path = folder.path(TRIALS);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
    let kept: Kept = serde_json::from_str(&text).map_err(|e| Error::file(&path, e.to_string()))?;
    Ok(kept.trials)
}

fn keep(folder: &Folder, trials: &[Trial], winner: Option<f64>) -> Result<()> {
    folder.write(TRIALS, format!("{:#}\n", json!({"trials": trials, "winner": winner})).as_bytes())
}

fn print(trials: &[Trial], winner: f64) -> anyhow::Result<()> {
    output::line(format_args!("{:>10} {:>14} {:>10}", "rate", "training loss", "seconds"))?;
    for Trial { rate, loss, seconds } in trials {
        let loss = loss.map_or("diverged".to_string(), |loss| format!("{loss:.5}"));
        let mark = if *rate == winner { "  chosen" } else { "" };
        output::line(format_args!("{rate:>10.0e} {loss:>14} {seconds:>10.1}{mark}"))?;
    }
    Ok(())
}
