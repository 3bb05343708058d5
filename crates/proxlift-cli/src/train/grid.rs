//! `--rate grid`: every rate of the grid trains in a folder of its own below `grid/`, and the best becomes the run's.
//!
//! `grid.json` holds the rates that are done. A search that is resumed does not repeat them, and continues the one that
//! was interrupted from its checkpoint.

use super::session::{Material, Outcome, train_in};
use super::{announce::announce, file, folder::Folder};
use crate::{files::write_json, output};
use proxlift::training::{Config, Grid, Session, Trial, best_trial, search_rates};
use proxlift::{Error, Result};
use serde_json::json;

/// The trials, and the winner once it is known.
const TRIALS: &str = "grid.json";

/// Tries the rates, then makes the best the run's; `config` becomes that of the winner.
pub fn search(
    config: &mut Config,
    grid: &Grid,
    material: &Material<'_>,
    folder: Option<&Folder>,
    quietly: bool,
) -> anyhow::Result<Outcome> {
    let ranks = material.ranks;
    let trial_of = |rate: f64| {
        let trial = config.with_rate(rate, grid.epochs)?;
        let place = folder.map(|folder| folder.path("grid").join(format!("{rate:e}")));
        let place = place.map(|place| Folder::at(place, &file::text(&trial)?)).transpose();
        Ok::<_, Error>((ranks.agree(place)?, trial))
    };
    let (mut stopped, mut first) = (None, true);
    let mut try_rate = |rate: f64| {
        let (place, trial) = trial_of(rate)?;
        let tell = |session: &Session<'_>| {
            if std::mem::take(&mut first) {
                announce(session, material.data);
                let rates: Vec<String> = grid.rates.iter().map(|rate| format!("{rate:e}")).collect();
                output::note(format_args!("rates     {}, {} epochs each", rates.join(", "), grid.epochs));
            }
            output::note(format_args!("rate      {rate:e}"));
        };
        let outcome = train_in(place.as_ref(), &trial, material, tell)?;
        if outcome.stopped.is_some() {
            stopped = Some(outcome);
            return Ok(None);
        }
        ranks.from_first(|| {
            let mut history = place.map_or(Ok(Vec::new()), |place| place.history())?;
            let last = history.pop().map(|entry| entry.record).unwrap_or_default();
            Ok(Some((last.loss, last.seconds)))
        })
    };
    let tried = ranks.from_first(|| folder.map_or(Ok(Vec::new()), done))?;
    let keep = |trials: &[Trial], winner| {
        let kept = folder.map_or(Ok(()), |folder| keep(folder, trials, winner));
        ranks.agree(kept)
    };
    let trials = search_rates(&grid.rates, tried, &mut try_rate, |trials| keep(trials, None))?;
    let (Some(trials), None) = (trials, stopped.as_ref()) else {
        return stopped.ok_or_else(|| anyhow::anyhow!("the search was stopped by nobody"));
    };
    let winner = best_trial(&trials)?.rate;
    keep(&trials, Some(winner))?;
    if ranks.is_first() {
        print(&trials, winner, quietly)?;
    }
    if grid.epochs == config.plan.epochs {
        let trial = trial_of(winner)?.0;
        let adopted = folder.zip(trial.as_ref()).map_or(Ok(()), |(folder, trial)| folder.adopt(trial));
        ranks.agree(adopted)?;
    }
    *config = config.with_rate(winner, config.plan.epochs)?;
    Ok(train_in(folder, config, material, |_| ())?)
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
    let text = proxlift::storage::read_text(&path)?;
    let kept: Kept = serde_json::from_str(&text).map_err(|e| Error::file(&path, e.to_string()))?;
    Ok(kept.trials)
}

fn keep(folder: &Folder, trials: &[Trial], winner: Option<f64>) -> Result<()> {
    write_json(&folder.path(TRIALS), &json!({"trials": trials, "winner": winner}))
}

/// The table of all rates: a result, or only a note beside a JSON object.
fn print(trials: &[Trial], winner: f64, quietly: bool) -> anyhow::Result<()> {
    let mut lines = vec![format!("{:>10} {:>14} {:>10}", "rate", "training loss", "seconds")];
    lines.extend(trials.iter().map(|Trial { rate, loss, seconds }| {
        let loss = loss.map_or("diverged".to_string(), |loss| format!("{loss:.5}"));
        let mark = if *rate == winner { "  chosen" } else { "" };
        format!("{rate:>10.0e} {loss:>14} {seconds:>10.1}{mark}")
    }));
    if quietly {
        output::note(lines.join("\n"));
        return Ok(());
    }
    output::line(lines.join("\n"))
}
