//! One process a folder.

use super::{partial, regular};
use crate::{Error, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

/// The name of the file that is locked.
const NAME: &str = ".lock";

/// Keeps other processes out of a folder. The kernel releases it when the process ends, however it ends; the file
/// stays.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    /// Forgets the number of this process, which is nobody's any more. Closing the file alone would leave it locked while
    /// a process that another thread just started still has its copy.
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}

impl Lock {
    /// Locks a folder; fails if another process has, saying which. Where the system has no locks, nobody is kept out.
    pub fn take(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = folder.join(NAME);
        // What a link leads to would be written to.
        regular::refuse_link(&path)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(Error::io(&path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&file).take(20).read_to_string(&mut holder);
                let holder =
                    holder.trim().parse().map_or("another process".into(), |id: u32| format!("process {id}"));
                Err(Error::file(
                    folder,
                    format!("{holder} is working in this folder: wait for it, or stop it first"),
                ))
            }
            Ok(()) | Err(TryLockError::Error(_)) => {
                let id = format!("{:<10}\n", std::process::id());
                let noted = file.rewind().and_then(|()| file.write_all(id.as_bytes()));
                noted.map_err(Error::io(&path))?;
                Ok(Self(file))
            }
        }
    }

    /// Whether a folder holds nothing but its lock, and partial files, which the next writer sweeps.
    pub fn is_all_in(folder: impl AsRef<Path>) -> Result<bool> {
        let folder = folder.as_ref();
        let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?;
        Ok(entries.flatten().all(|entry| entry.file_name() == NAME || partial::is_one(&entry.file_name())))
    }
}
