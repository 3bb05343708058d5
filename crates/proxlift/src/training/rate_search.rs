//! A learning rate by grid search, as the paper chooses that of SGD: every rate trains a network of its own, and the one
//! with the least training loss at the end wins.

use crate::{Error, Result};

/// The grid of the paper's range `[1e-6, 5e-4]`.
pub const PAPER_RATES: [f64; 6] = [1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4];

/// A rate and what it led to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Trial {
    /// The rate.
    pub rate: f64,
    /// The feed-forward loss of a sample in the last epoch; none if the training diverged.
    pub loss: Option<f64>,
    /// Seconds spent training.
    pub seconds: f64,
}

/// Tries every rate that is not in `done` yet. `train` trains with a rate and returns the loss and the time of its last
/// epoch, or nothing to stop the search there; `finished` hears of all trials after each.
///
/// Returns all trials in the order of `rates`, or nothing if the search was stopped. A training that diverges is a
/// trial without a loss.
pub fn search_rates(
    rates: &[f64],
    done: Vec<Trial>,
    mut train: impl FnMut(f64) -> Result<Option<(f64, f64)>>,
    mut finished: impl FnMut(&[Trial]) -> Result<()>,
) -> Result<Option<Vec<Trial>>> {
    let mut trials: Vec<Trial> = done.into_iter().filter(|trial| rates.contains(&trial.rate)).collect();
    for &rate in rates {
        if trials.iter().any(|trial| trial.rate == rate) {
            continue;
        }
        let trial = match train(rate) {
            Ok(Some((loss, seconds))) => Trial { rate, loss: Some(loss), seconds },
            Ok(None) => return Ok(None),
            Err(Error::Diverged { .. }) => Trial { rate, loss: None, seconds: 0.0 },
            Err(error) => return Err(error),
        };
        trials.push(trial);
        finished(&trials)?;
    }
    let place = |trial: &Trial| rates.iter().position(|rate| *rate == trial.rate);
    trials.sort_by_key(place);
    Ok(Some(trials))
}

/// The trial with the least loss.
pub fn best_trial(trials: &[Trial]) -> Result<&Trial> {
    let finite = trials.iter().filter_map(|trial| Some((trial, trial.loss?)));
    let best = finite.min_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(trial, _)| trial).ok_or_else(|| {
        Error::invalid("the training diverged with every rate of the grid: choose smaller ones")
    })
}
