//! The calls that change the disk: all of them, so that tests can make any one fail.

use super::faults::{Call, before};
use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write};
use std::path::Path;

/// A new file; fails where there is one.
pub fn create(path: &Path, private: bool) -> Result<File> {
    before(Call::Create, 0)?;
    let mut options = OpenOptions::new();
    options.write(true).read(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if private { 0o600 } else { 0o666 });
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path)
}

/// A file to be written on at its end.
pub fn append(path: &Path) -> Result<File> {
    before(Call::Create, 0)?;
    OpenOptions::new().create(true).append(true).open(path)
}

pub fn write(file: &mut File, bytes: &[u8]) -> Result<usize> {
    let most = before(Call::Write, bytes.len())?;
    file.write(&bytes[..most])
}

pub fn truncate(file: &File, length: u64) -> Result<()> {
    before(Call::Write, 0)?;
    file.set_len(length)
}

pub fn sync(file: &File) -> Result<()> {
    before(Call::Sync, 0)?;
    file.sync_all()
}

pub fn rename(from: &Path, to: &Path) -> Result<()> {
    before(Call::Rename, 0)?;
    fs::rename(from, to)
}

/// A second name for a file.
pub fn link(from: &Path, to: &Path) -> Result<()> {
    before(Call::Rename, 0)?;
    fs::hard_link(from, to)
}

pub fn remove(path: &Path) -> Result<()> {
    before(Call::Remove, 0)?;
    fs::remove_file(path)
}
