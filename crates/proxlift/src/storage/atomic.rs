//! Files that are whole or absent.

use super::partial::Partial;
use super::{calls, regular};
use crate::{Error, Result};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::Path;

/// Lets `fill` write a partial file beside `path`, syncs it, and renames it over `path`.
///
/// If `fill` fails or the program dies, whatever was at `path` before is still there, complete. A file that is replaced
/// hands on its permissions, and its owner where the system allows that.
pub fn write_atomically(path: impl AsRef<Path>, fill: impl FnOnce(&mut Partial) -> Result<()>) -> Result<()> {
    replace(path.as_ref(), None, fill)
}

/// [`write_atomically`], with what was there before kept at `previous`.
pub(crate) fn write_keeping(
    path: &Path,
    previous: &Path,
    fill: impl FnOnce(&mut Partial) -> Result<()>,
) -> Result<()> {
    replace(path, Some(previous), fill)
}

fn replace(
    path: &Path,
    previous: Option<&Path>,
    fill: impl FnOnce(&mut Partial) -> Result<()>,
) -> Result<()> {
    let before = path.metadata().ok();
    refuse_special(path, before.as_ref())?;
    let folder = folder_of(path);
    let mut partial = Partial::new(folder, before.is_some()).map_err(Error::io(path))?;
    if let Some(before) = &before {
        hand_on(before, partial.file(), path);
    }
    fill(&mut partial)?;
    partial.persist(path, previous).map_err(Error::io(path))?;
    sync_folder(folder);
    Ok(())
}

fn refuse_special(path: &Path, before: Option<&Metadata>) -> Result<()> {
    match before {
        Some(before) if !before.is_file() && !before.is_dir() => {
            Err(Error::file(path, "this is a device or a pipe, which cannot be replaced: name a file"))
        }
        _ => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The rename itself reaches the disk with the folder; some systems cannot sync folders, and the file is whole.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| calls::sync(&folder));
    #[cfg(not(unix))]
    let _ = folder;
}

/// Permissions and owner of the file that will be replaced: nobody else shall be able to read its successor.
#[cfg(unix)]
fn hand_on(before: &Metadata, file: &File, path: &Path) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let Ok(now) = file.metadata() else { return };
    let (owner, group) = (before.uid(), before.gid());
    if (now.uid(), now.gid()) != (owner, group) && fchown(file, Some(owner), Some(group)).is_err() {
        // The group alone may still be allowed.
        let _ = fchown(file, None, Some(group));
        tracing::warn!("{}: the file belongs to you from now on: its owner cannot be kept", path.display());
    }
    let _ = file.set_permissions(before.permissions());
}

#[cfg(not(unix))]
fn hand_on(_: &Metadata, _: &File, _: &Path) {}

/// Copies a file, whole or not at all.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut source = regular::open(from)?;
    write_atomically(to, |file| io::copy(&mut source, file).map(drop).map_err(Error::io(to)))
}

/// Writes on at the end of a file; what it held before stays, whatever happens.
pub fn append(path: &Path, bytes: &[u8]) -> Result<()> {
    // Folders of runs may come from strangers.
    regular::refuse_link(path)?;
    let written = calls::append(path).and_then(|mut file| {
        let before = file.metadata()?.len();
        Appended(&mut file).write_all(bytes).inspect_err(|_| {
            // A line that was cut would spoil those after it.
            let _ = calls::truncate(&file, before);
        })
    });
    written.map_err(Error::io(path))
}

/// Waits until what was written to a file has reached the disk.
pub fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| calls::sync(&file)).map_err(Error::io(path))
}

struct Appended<'a>(&'a mut File);

impl Write for Appended<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        calls::write(self.0, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
