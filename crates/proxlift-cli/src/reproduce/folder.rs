//! The folder of a reproduction: made once, found again to go on.

use crate::files::{read_json, write, write_json};
use proxlift::{Error, Result, storage::Lock};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Says what the folder is.
const MARK: &str = "reproduce.json";
/// The layout of the folder; another one cannot be gone on with.
const FORMAT: u64 = 1;

#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Keeps other processes out.
    _lock: Lock,
}

impl Folder {
    /// A new folder, or one that an earlier reproduction left.
    pub fn open(path: &Path) -> Result<Self> {
        let (mark, version) = (path.join(MARK), env!("CARGO_PKG_VERSION"));
        // Asked before the lock is taken, so that no file is made in a foreign folder, and again when nobody else is there.
        Self::check(path)?;
        std::fs::create_dir_all(path).map_err(Error::io(path))?;
        let folder = Self { path: path.to_path_buf(), _lock: Lock::take(path)? };
        Self::check(path)?;
        // Written also where it is there already: an output that cannot be written is refused before any work.
        write_json(&mark, &json!({"format": FORMAT, "program": version}))?;
        for part in [folder.path("figures"), folder.runs()] {
            std::fs::create_dir_all(&part).map_err(Error::io(&part))?;
        }
        Ok(folder)
    }

    /// Refuses a folder of another version, and one that holds something else.
    fn check(path: &Path) -> Result<()> {
        let (mark, version) = (path.join(MARK), env!("CARGO_PKG_VERSION"));
        if mark.exists() {
            let value: Value = read_json(&mark).unwrap_or_default();
            let (format, program) = (value["format"].as_u64(), value["program"].as_str());
            if format != Some(FORMAT) || program != Some(version) {
                let reason = format!(
                    "this reproduction was begun by proxlift {}, and this is {version}: nothing was changed; choose \
                     another --out",
                    program.unwrap_or("of an unknown version"),
                );
                return Err(Error::file(path, reason));
            }
        } else if path.exists() && !Lock::is_all_in(path)? {
            let reason = "this folder is not empty and holds no reproduction: choose another --out";
            return Err(Error::file(path, reason));
        }
        Ok(())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn runs(&self) -> PathBuf {
        Self::runs_in(&self.path)
    }

    /// Where the trainings are in such a folder, for processes that do not hold it.
    pub fn runs_in(path: &Path) -> PathBuf {
        path.join("runs")
    }

    fn figure_path(&self, name: &str) -> PathBuf {
        self.path("figures").join(name)
    }

    pub fn figure(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write(&self.figure_path(name), bytes)
    }

    pub fn json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        write_json(&self.figure_path(name), value)
    }

    /// Writes a table that is behind a figure; `head` has the names of its columns with spaces between them.
    pub fn csv(&self, name: &str, head: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Result<()> {
        let mut table = csv::Writer::from_writer(Vec::new());
        // Into memory, and as many cells in each row: neither can fail.
        let written = table
            .write_record(head.split(' '))
            .and_then(|()| rows.into_iter().try_for_each(|row| table.write_record(row)));
        let bytes = written
            .map_err(std::io::Error::from)
            .and_then(|()| table.into_inner().map_err(csv::IntoInnerError::into_error));
        self.figure(name, &bytes.map_err(Error::io(self.figure_path(name)))?)
    }
}

/// A number of a table; empty if there is none.
pub fn cell(value: impl Into<Option<f64>>) -> String {
    value.into().filter(|v| v.is_finite()).map_or(String::new(), |v| v.to_string())
}
