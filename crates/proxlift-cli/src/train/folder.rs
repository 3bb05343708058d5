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
const OLD_MODEL: &str = "best.safetensors";
/// The network of the last checkpoint.
pub const LAST: &str = "last.safetensors";

/// One epoch in `history.jsonl`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// What the training said.
    #[serde(flatten)]
    pub record: EpochRecord,
    /// On the held-out pictures, when they were scored.
    pub psnr: Option<f64>,
    pub ssim: Option<f64>,
    /// On the test set, when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_psnr: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_ssim: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes the folder of a new run: `out`, which must be new or empty, or `runs/name-1` with the next free number.
    pub fn create(out: Option<&Path>, name: &str, config: &str) -> Result<Self> {
        let path = match out {
            Some(out) => {
                fs::create_dir_all(out).map_err(Error::io(out))?;
                if fs::read_dir(out).map_err(Error::io(out))?.next().is_some() {
                    let reason = "this folder is not empty: choose another --out, or resume it with --resume";
                    return Err(Error::file(out, reason));
                }
                out.to_path_buf()
            }
            None => claim(name)?,
        };
        Self::at(path, config)
    }

    /// The folder of a run or of a trial inside it: new, or with its checkpoint if it got so far.
    pub fn at(path: PathBuf, config: &str) -> Result<Self> {
        let folder = Self(path);
        let (checkpoints, history) = (folder.path("checkpoint"), folder.path(HISTORY));
        fs::create_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        // The settings of an earlier session stay: they say which version wrote the checkpoint.
        if !folder.checkpoint().is_file() {
            folder.write(CONFIG, config.as_bytes())?;
            if history.is_file() {
                fs::remove_file(&history).map_err(Error::io(&history))?;
            }
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

    pub fn config(&self) -> PathBuf {
        self.path(CONFIG)
    }

    pub fn checkpoint(&self) -> PathBuf {
        self.path(CHECKPOINT)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::write(&self.path(name), bytes)
    }

    pub fn finish(&self, result: &serde_json::Value) -> Result<()> {
        files::write_json(&self.path(RESULT), result)
    }

    /// Waits until the history has reached the disk; a checkpoint must not know of epochs that are not in it.
    pub fn sync_history(&self) -> Result<()> {
        let history = self.path(HISTORY);
        File::open(&history).and_then(|file| file.sync_all()).map_err(Error::io(&history))
    }

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
            let reason = format!("the checkpoint is of epoch {epochs}, but lines are missing here");
            return Err(Error::file(&path, reason));
        }
        let kept = kept.concat();
        if kept.len() < text.len() { self.write(HISTORY, kept.as_bytes()) } else { Ok(()) }
    }

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
    fs::create_dir_all(RUNS).map_err(Error::io(RUNS))?;
    let mut number = 1;
    loop {
        let path = Path::new(RUNS).join(format!("{name}-{number}"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path.clone()).map_err(Error::io(&path)),
        }
    }
}
