//! Files that are whole or absent.

use crate::{Error, Result};
use std::{fs::File, path::Path};

/// Lets `fill` write a temporary file beside `path`, syncs it, and renames it over `path`.
///
/// If `fill` fails or the program dies, whatever was at `path` before is still there, complete.
pub fn write_atomically(path: impl AsRef<Path>, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let path = path.as_ref();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".proxlift-").suffix(".partial");
    // Temporary files are private by default; a result should follow the user's umask.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(folder).map_err(Error::io(path))?;
    fill(temporary.as_file_mut())?;
    temporary.as_file().sync_all().map_err(Error::io(path))?;
    temporary.persist(path).map_err(|e| Error::io(path)(e.error))?;
    // The rename itself reaches the disk with the folder; some systems cannot sync folders, and the file is whole.
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|f| f.sync_all());
    Ok(())
}
