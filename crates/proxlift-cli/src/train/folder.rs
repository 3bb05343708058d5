//! The folder of a run: made once, filled while training, found again to go on.

use super::file;
use crate::files;
use proxlift::storage::{self, Lock};
use proxlift::training::{Checkpoint, EpochRecord, Settings, StepRule};
use proxlift::{Error, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
pub struct Folder {
    path: PathBuf,
    /// Keeps other processes out; a trial lies in the folder of its run, which has the lock.
    _lock: Option<Arc<Lock>>,
}

impl Folder {
    /// Makes the folder of a new run: `out`, which must be new or empty, or `runs/name-1` with the next free number.
    pub fn create(out: Option<&Path>, name: &str, config: &str) -> Result<Self> {
        let path = match out {
            Some(out) => {
                fs::create_dir_all(out).map_err(Error::io(out))?;
                out.to_path_buf()
            }
            None => claim(name)?,
        };
        let occupied = || {
            let reason = "this folder is not empty: choose another --out, or resume it with --resume";
            Err(Error::file(&path, reason))
        };
        // Asked before and after the lock is taken: no file is made in a foreign folder, and no other process is there.
        if !Lock::is_all_in(&path)? {
            return occupied();
        }
        let lock = Lock::take(&path)?;
        if !Lock::is_all_in(&path)? {
            return occupied();
        }
        Ok(Self { _lock: Some(Arc::new(lock)), ..Self::at(path, config)? })
    }

    /// The folder of a run or of a trial inside it: new, or with its checkpoint if it got so far.
    pub fn at(path: PathBuf, config: &str) -> Result<Self> {
        let folder = Self { path, _lock: None };
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
            storage::copy(&trial.path(name), &self.path(name))?;
        }
        Ok(())
    }

    /// The last checkpoint, or the one before it. If the last is damaged, the other is offered.
    pub fn latest(&self, previous: bool) -> Result<Option<Checkpoint>> {
        let path = self.checkpoint();
        let before = Checkpoint::previous(&path);
        if previous {
            return Checkpoint::load(before).map(Some);
        }
        if !path.is_file() {
            return Ok(None);
        }
        Checkpoint::load(path).map(Some).map_err(|error| match Checkpoint::load(before) {
            Ok(Checkpoint { record, .. }) => Error::invalid(format!(
                "{error}; the checkpoint before it, of epoch {}, is whole: resume from it with --previous",
                record.epoch
            )),
            Err(_) => error,
        })
    }

    /// A run that was stopped, with its settings; a grid search can be resumed without a checkpoint.
    pub fn resume(path: &Path) -> Result<(Self, Settings)> {
        let mut folder = Self { path: path.to_path_buf(), _lock: None };
        if !path.is_dir() || !folder.path(CONFIG).is_file() {
            return Err(Error::file(path, format!("this is not the folder of a run: it has no {CONFIG}")));
        }
        if folder.path(RESULT).is_file() {
            let reason = "this run is finished: there is nothing to resume; its models are in the folder";
            return Err(Error::file(path, reason));
        }
        folder._lock = Some(Arc::new(Lock::take(path)?));
        let settings = Self::settings(path)?;
        if !folder.checkpoint().is_file() && settings.rate != Some(StepRule::Grid) {
            let reason = "this run has no checkpoint yet: start again with --config and its config.toml";
            return Err(Error::file(path, reason));
        }
        Ok((folder, settings))
    }

    /// The settings of the run in a folder.
    pub fn settings(path: &Path) -> Result<Settings> {
        file::load(&path.join(CONFIG))
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
        self.path.join(name)
    }

    pub fn root(&self) -> &Path {
        &self.path
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::write(&self.path(name), bytes)
    }

    pub fn finish(&self, result: &serde_json::Value) -> Result<()> {
        files::write_json(&self.path(RESULT), result)
    }

    /// Waits until the history has reached the disk, and gives its checksum: a checkpoint must not know of epochs that are
    /// not in it.
    pub fn sync_history(&self) -> Result<u32> {
        let history = self.path(HISTORY);
        storage::sync(&history)?;
        Ok(crc32fast::hash(storage::read_text(&history)?.as_bytes()))
    }

    pub fn append(&self, entry: &Entry) -> Result<()> {
        let path = self.path(HISTORY);
        let text = serde_json::to_string(entry).map_err(|e| Error::file(&path, e.to_string()))?;
        storage::append(&path, format!("{text}\n").as_bytes())
    }

    /// Forgets the epochs after the first `epochs`, which are to be done again; those before have this checksum, if it is
    /// known.
    pub fn rewind(&self, epochs: usize, checksum: Option<u32>) -> Result<()> {
        let path = self.path(HISTORY);
        let text = storage::read_text(&path)?;
        let kept: Vec<&str> = text.split_inclusive('\n').take(epochs).collect();
        if kept.len() < epochs || kept.iter().any(|line| !line.ends_with('\n')) {
            let reason = format!("the checkpoint is of epoch {epochs}, but lines are missing here");
            return Err(Error::file(&path, reason));
        }
        let kept = kept.concat();
        if checksum.is_some_and(|checksum| checksum != crc32fast::hash(kept.as_bytes())) {
            let reason =
                "this file is not as the run left it: restore it, or start again with the run's config.toml";
            return Err(Error::file(&path, reason));
        }
        if kept.len() < text.len() { self.write(HISTORY, kept.as_bytes()) } else { Ok(()) }
    }

    pub fn history(&self) -> Result<Vec<Entry>> {
        let path = self.path(HISTORY);
        let text = storage::read_text(&path)?;
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
