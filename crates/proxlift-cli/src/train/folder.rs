//! The folder of a run: made once, filled while training, found again to go on.

use super::file;
use crate::files;
use proxlift::training::{Checkpoint, EpochRecord, Settings, StepRule};
use proxlift::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Where runs go when nothing is said.
const RUNS: &str = "runs";
const CONFIG: &str = "config.toml";
const HISTORY: &str = "history.jsonl";
const CHECKPOINT: &str = "checkpoint/latest.safetensors";
const RESULT: &str = "result.json";

/// The network with the best score on the held-out pictures.
pub const MODEL: &str = "model.safetensors";
/// What version 0.1 called it.
const OLD_MODEL: &str = "best.safetensors";
/// The network of the last checkpoint.
pub const LAST: &str = "last.safetensors";

/// One epoch in `history.jsonl`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// What the training said.
    #[serde(flatten)]
    pub record: EpochRecord,
    /// PSNR on the held-out pictures, when it was taken.
    pub psnr: Option<f64>,
    /// SSIM on them.
    pub ssim: Option<f64>,
    /// PSNR on the test set, when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_psnr: Option<f64>,
    /// SSIM on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_ssim: Option<f64>,
}

/// A run's folder.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder of a new run: `out`, which must be new or empty, or `runs/name-1` with the next free number.
    pub fn create(out: Option<&Path>, name: &str, config: &str) -> Result<Self> {
        let folder = match out {
            Some(out) => {
                fs::create_dir_all(out).map_err(Error::io(out))?;
                if fs::read_dir(out).map_err(Error::io(out))?.next().is_some() {
                    let reason = "this folder is not empty: choose another --out, or resume it with --resume";
                    return Err(Error::file(out, reason));
                }
                Self(out.to_path_buf())
            }
            None => {
                fs::create_dir_all(RUNS).map_err(Error::io(RUNS))?;
                Self(claim(name)?)
            }
        };
        let checkpoints = folder.0.join("checkpoint");
        fs::create_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        folder.write(CONFIG, config.as_bytes())?;
        Ok(folder)
    }

    /// The folder of a trial inside a run: new, or with its checkpoint if it got so far.
    pub fn trial(path: PathBuf, config: &str) -> Result<Self> {
        let folder = Self(path);
        let checkpoints = folder.path("checkpoint");
        fs::create_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        // That of an earlier session stays: it says which version wrote the checkpoint.
        if !folder.checkpoint().is_file() {
            folder.write(CONFIG, config.as_bytes())?;
        }
        if folder.path(HISTORY).is_file() && !folder.checkpoint().is_file() {
            let history = folder.path(HISTORY);
            fs::remove_file(&history).map_err(Error::io(&history))?;
        }
        Ok(folder)
    }

    /// Takes over the history, the models and the checkpoint of a trial.
    pub fn adopt(&self, trial: &Self) -> Result<()> {
        for name in [MODEL, LAST, HISTORY, CHECKPOINT] {
            let from = trial.path(name);
            fs::copy(&from, self.path(name)).map_err(Error::io(&from))?;
        }
        Ok(())
    }

    /// The checkpoint, if there is one.
    pub fn latest(&self) -> Result<Option<Checkpoint>> {
        let path = self.checkpoint();
        if path.is_file() { Checkpoint::load(path).map(Some) } else { Ok(None) }
    }

    /// A run that was stopped, with its settings; a grid search can be resumed without a checkpoint.
    pub fn resume(path: &Path) -> Result<(Self, Settings)> {
        let folder = Self(path.to_path_buf());
        if !path.is_dir() || !folder.path(CONFIG).is_file() {
            return Err(Error::file(path, format!("this is not the folder of a run: it has no {CONFIG}")));
        }
        if folder.path(RESULT).is_file() {
            let reason = "this run is finished: there is nothing to resume; its models are in the folder";
            return Err(Error::file(path, reason));
        }
        let settings = file::load(&folder.config())?;
        if !folder.checkpoint().is_file() && settings.rate != Some(StepRule::Grid) {
            let reason = "this run has no checkpoint yet: start again with --config and its config.toml";
            return Err(Error::file(path, reason));
        }
        Ok((folder, settings))
    }

    /// Gives the model of a run of version 0.1 its new name.
    pub fn rename_old_model(&self) -> Result<()> {
        let (old, new) = (self.path(OLD_MODEL), self.path(MODEL));
        if old.is_file() && !new.exists() { fs::rename(&old, new).map_err(Error::io(&old)) } else { Ok(()) }
    }

    /// The settings.
    pub fn config(&self) -> PathBuf {
        self.path(CONFIG)
    }

    /// The place of the checkpoint.
    pub fn checkpoint(&self) -> PathBuf {
        self.path(CHECKPOINT)
    }

    /// A file of the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Writes a whole file or none.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::write(&self.path(name), bytes)
    }

    /// Marks the run as finished.
    pub fn finish(&self, result: &serde_json::Value) -> Result<()> {
        self.write(RESULT, format!("{result:#}\n").as_bytes())
    }

    /// Waits until the history has reached the disk; a checkpoint must not know of epochs that are not in it.
    pub fn sync_history(&self) -> Result<()> {
        let history = self.path(HISTORY);
        File::open(&history).and_then(|file| file.sync_all()).map_err(Error::io(&history))
    }

    /// Adds an epoch to the history.
    pub fn append(&self, entry: &Entry) -> Result<()> {
        let path = self.path(HISTORY);
        let text = serde_json::to_string(entry).map_err(|e| Error::file(&path, e.to_string()))?;
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(&path))?;
        file.write_all(format!("{text}\n").as_bytes()).map_err(Error::io(&path))
    }

    /// Forgets the epochs after the first `epochs`, which are to be done again.
    pub fn rewind(&self, epochs: usize) -> Result<()> {
        let path = self.path(HISTORY);
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let kept: Vec<&str> = text.split_inclusive('\n').take(epochs).collect();
        if kept.len() < epochs || kept.iter().any(|line| !line.ends_with('\n')) {
            return Err(Error::file(
                &path,
                format!("the checkpoint is of epoch {epochs}, but lines are missing here"),
            ));
        }
        let kept = kept.concat();
        if kept.len() < text.len() { self.write(HISTORY, kept.as_bytes()) } else { Ok(()) }
    }

    /// The history so far.
    pub fn history(&self) -> Result<Vec<Entry>> {
        let path = self.path(HISTORY);
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let lines = text.lines().enumerate();
        let read = lines.map(|(i, line)| {
            serde_json::from_str(line).map_err(|e| Error::file(&path, format!("line {}: {e}", i + 1)))
        });
        read.collect()
    }
}

/// Makes `runs/name-N` with the least N that is free.
fn claim(name: &str) -> Result<PathBuf> {
    for number in 1.. {
        let path = Path::new(RUNS).join(format!("{name}-{number}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(&path)(error)),
        }
    }
    unreachable!("numbers do not end")
}
