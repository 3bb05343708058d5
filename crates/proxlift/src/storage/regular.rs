//! Only regular files are read: a pipe could keep the program waiting for ever, and a device never end.

use crate::{Error, Result};
use std::{fs::File, io::Read, path::Path};

/// Opens a regular file. Refuses folders, pipes, sockets and devices before they are opened, which already might wait.
pub fn open(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    let kind = std::fs::metadata(path).map_err(Error::io(path))?;
    if kind.is_dir() {
        return Err(Error::file(path, "this is a folder, not a file"));
    }
    if !kind.is_file() {
        return Err(Error::file(path, "this is a pipe or a device, not a file: standard input is read as -"));
    }
    File::open(path).map_err(Error::io(path))
}

/// The bytes of a regular file; refuses one of more than `most`, `what` it should be told.
pub fn read(path: impl AsRef<Path>, most: u64, what: &str) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let file = open(path)?;
    let length = file.metadata().map_err(Error::io(path))?.len();
    let too_large = || Error::file(path, format!("this file is too large to be {what}"));
    if length > most {
        return Err(too_large());
    }
    let room = crate::memory::try_room(length as usize + 1);
    let mut bytes =
        room.ok_or_else(|| Error::file(path, format!("there is no memory for its {length} bytes")))?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// The most that a file of text may hold.
const MOST_TEXT: u64 = 64 << 20;

/// The text of a regular file.
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let bytes = read(path, MOST_TEXT, "a file of text")?;
    String::from_utf8(bytes).map_err(|_| Error::file(path, "this is no text in UTF-8"))
}

/// Refuses a link, a pipe or a device where a file of a run's folder should be: it would be written to.
pub(super) fn refuse_link(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(there) if !there.is_file() => {
            Err(Error::file(path, "this is a link or no file, and is not written to: remove it"))
        }
        _ => Ok(()),
    }
}
