//! Files that are being written: beside their place, under a name that says so, and locked as long as their writer lives.
//!
//! The lock is the kernel's, which releases it when a process dies: a partial file without one was left behind, and the
//! next writer in its folder removes it.

use super::{calls, faults};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const PREFIX: &str = ".proxlift-";
const SUFFIX: &str = ".partial";

/// Those of this process.
static LIVING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file that is being written; it is removed unless it gets its name.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    named: bool,
}

impl Partial {
    /// A new one in `folder`; those that dead processes left there are removed first. A `private` one can be read by its
    /// owner only.
    pub(super) fn new(folder: &Path, private: bool) -> io::Result<Self> {
        sweep_once(folder);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id()));
            LIVING.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
            let file = match calls::create(&path, private) {
                Ok(file) => file,
                // There may be one that a dead process of the same number left.
                Err(e) => {
                    forget(&path);
                    if e.kind() == ErrorKind::AlreadyExists {
                        continue;
                    }
                    return Err(e);
                }
            };
            let partial = Self { file, path, named: false };
            // Some systems have no locks; there, nothing is swept either.
            let _ = partial.file.lock();
            // Whoever sweeps may have been here between the two calls.
            if partial.path.exists() || faults::is_dead() {
                return Ok(partial);
            }
        }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name, once all its bytes have reached the disk. What had that name before may be kept under
    /// another one.
    pub(super) fn persist(mut self, path: &Path, keep: Option<&Path>) -> io::Result<()> {
        calls::sync(&self.file)?;
        if let Some(keep) = keep.filter(|_| path.is_file()) {
            keep_as(path, keep)?;
        }
        calls::rename(&self.path, path)?;
        self.named = true;
        Ok(())
    }
}

/// Gives what is at `path` the name `previous` too, in the place of what had it.
fn keep_as(path: &Path, previous: &Path) -> io::Result<()> {
    let step = previous.with_extension("replacing");
    let _ = std::fs::remove_file(&step);
    if calls::link(path, &step).is_ok() {
        return calls::rename(&step, previous);
    }
    // Not all systems have links.
    let mut partial = Partial::new(previous.parent().unwrap_or(Path::new(".")), true)?;
    io::copy(&mut File::open(path)?, &mut partial)?;
    partial.persist(previous, None)
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.named {
            let _ = calls::remove(&self.path);
        }
        forget(&self.path);
    }
}

fn forget(partial: &Path) {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != partial);
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        calls::write(&mut self.file, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Partial {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Removes what this process is writing: to be called before it ends at once, on a signal say.
pub fn remove_partials() {
    for path in LIVING.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// The same where no thread is just beginning or ending one; else they stay for the next run to sweep.
pub fn remove_partials_if_free() {
    if let Ok(living) = LIVING.try_lock() {
        living.iter().for_each(|path| drop(fs::remove_file(path)));
    }
}

fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let known = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(known) {
        sweep(folder);
    }
}

/// Whether a file of this name is a partial one.
pub(super) fn is_one(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Removes the partial files in `folder` that no living process holds.
pub(super) fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_one(&entry.file_name()) {
            // Only a file that nobody holds can be locked; it is removed before the lock is released.
            let held =
                File::open(entry.path()).and_then(|file| file.try_lock().map(|()| file).map_err(Into::into));
            if held.is_ok() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
