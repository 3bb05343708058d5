//! The folder of a reproduction: made once, found again to go on.

use super::plan::Run;
use crate::files::write;
use proxlift::{Error, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Says what the folder is.
const MARK: &str = "reproduce.json";
/// The layout of the folder; another one cannot be gone on with.
const FORMAT: u64 = 1;
const FIGURES: &str = "figures";
const RUNS: &str = "runs";

/// Where everything goes.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder, or one that an earlier reproduction left.
    ///
    /// # Errors
    /// When it cannot be written, holds something else, or is of another version.
    pub fn open(path: &Path) -> Result<Self> {
        let mark = path.join(MARK);
        if mark.exists() {
            let text = std::fs::read_to_string(&mark).map_err(Error::io(&mark))?;
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            let (format, program) = (value["format"].as_u64(), value["program"].as_str());
            if format != Some(FORMAT) || program != Some(env!("CARGO_PKG_VERSION")) {
                let reason = format!(
                    "this reproduction was begun by proxlift {}, and this is {}: nothing was changed; choose another \
                     --out",
                    program.unwrap_or("of an unknown version"),
                    env!("CARGO_PKG_VERSION")
                );
                return Err(Error::file(path, reason));
            }
        } else {
            std::fs::create_dir_all(path).map_err(Error::io(path))?;
            if std::fs::read_dir(path).map_err(Error::io(path))?.next().is_some() {
                let reason = "this folder is not empty and holds no reproduction: choose another --out";
                return Err(Error::file(path, reason));
            }
        }
        let text = json!({"format": FORMAT, "program": env!("CARGO_PKG_VERSION")});
        // Written also where it is there already: an output that cannot be written is refused before any work.
        write(&mark, format!("{text:#}\n").as_bytes())?;
        for part in [FIGURES, RUNS] {
            let part = path.join(part);
            std::fs::create_dir_all(&part).map_err(Error::io(&part))?;
        }
        Ok(Self(path.to_path_buf()))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The folder of a run: other settings or pictures, other folder, so that nothing computed is ever lost.
    pub fn run(&self, run: &Run, fingerprint: &str) -> PathBuf {
        let short = fingerprint.split('-').map(|part| part.get(..8).unwrap_or(part));
        let parts: Vec<&str> = std::iter::once(run.name.as_str()).chain(short).collect();
        self.0.join(RUNS).join(parts.join("-"))
    }

    /// Writes a file at the top.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn top(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write(&self.0.join(name), bytes)
    }

    /// Writes a file of a figure.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn figure(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write(&self.0.join(FIGURES).join(name), bytes)
    }

    /// Writes a table as CSV.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn csv(&self, name: &str, head: &[&str], rows: &[Vec<String>]) -> Result<()> {
        let mut table = csv::Writer::from_writer(Vec::new());
        // Into memory, and as many cells in each row: neither can fail.
        let written =
            table.write_record(head).and_then(|()| rows.iter().try_for_each(|row| table.write_record(row)));
        let bytes = written
            .map_err(std::io::Error::from)
            .and_then(|()| table.into_inner().map_err(csv::IntoInnerError::into_error));
        self.figure(name, &bytes.map_err(Error::io(self.0.join(FIGURES).join(name)))?)
    }
}

/// A number of a table; empty if there is none.
pub fn cell(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or(String::new(), |v| v.to_string())
}
