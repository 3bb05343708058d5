//! What a run leaves behind, in its folder and in memory.

use super::plan::Run;
use proxlift::Result;
use proxlift::model::Model;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The state after an epoch; epoch 0 is the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Epochs done.
    pub epoch: usize,
    /// Seconds spent training on one thread, without any evaluation: processor time where it is known, else wall time.
    pub seconds: f64,
    /// The same by the clock on the wall.
    pub wall_seconds: f64,
    /// The mean feed-forward loss `1/2 ||x^ - x||^2` on the fixed training patches, after the epoch.
    pub loss: f64,
    /// The mean loss of the samples when they were visited.
    pub running_loss: Option<f64>,
    /// The mean of `E` after the steps, where there is one.
    pub energy: Option<f64>,
    /// Batches whose `E` is known before and after their step.
    pub energy_steps: usize,
    /// Those whose `E` the step raised.
    pub energy_rises: usize,
    /// Steps that were tried and refused.
    pub backtracks: usize,
    /// Mean PSNR at peak 1 on the test images, where it was taken.
    pub psnr: Option<f64>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Settings and data in a word: a run with another one is another run.
    pub fingerprint: String,
    /// The trainer, in a line.
    pub trainer: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// Why it ended early, if it did.
    pub diverged: Option<String>,
    /// Its course.
    pub epochs: Vec<Epoch>,
}

impl Outcome {
    /// The loss at the end; infinite where the training diverged.
    pub fn final_loss(&self) -> f64 {
        let last = self.epochs.last().filter(|_| self.diverged.is_none());
        last.map_or(f64::INFINITY, |epoch| epoch.loss)
    }

    /// Seconds of training.
    pub fn seconds(&self) -> f64 {
        self.epochs.last().map_or(0.0, |epoch| epoch.seconds)
    }
}

/// A run with its outcome and its folder.
#[derive(Clone, Debug)]
pub struct Done {
    /// The run.
    pub run: Run,
    /// What came of it.
    pub outcome: Outcome,
    /// Where it is.
    pub folder: PathBuf,
}

/// The trained network.
pub const MODEL: &str = "model.safetensors";
/// The outcome; written last, so that its presence says that the run is finished.
pub const HISTORY: &str = "history.json";

impl Done {
    /// The trained network; none if the training diverged.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn model(&self) -> Result<Option<Model>> {
        match self.outcome.diverged {
            Some(_) => Ok(None),
            None => Model::load(self.folder.join(MODEL)).map(Some),
        }
    }
}

/// The outcome in `folder`, if the run with this fingerprint is finished there.
pub fn finished(folder: &Path, fingerprint: &str) -> Option<Outcome> {
    let text = std::fs::read_to_string(folder.join(HISTORY)).ok()?;
    let outcome: Outcome = serde_json::from_str(&text).ok()?;
    let whole = outcome.diverged.is_some() || folder.join(MODEL).is_file();
    (whole && outcome.fingerprint == fingerprint).then_some(outcome)
}
