//! The images of a folder.

use crate::{Error, Result, image::io::Format};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// All images below `folder`, recursively, sorted by path: files with the extension of an image format. Hidden files and
/// folders are passed over, and so are linked folders, which could lead back, and what is no file at all, such as pipes.
///
/// ```no_run
/// for path in proxlift::dataset::images_below("photos")? {
///     println!("{}", path.display());
/// }
/// # Ok::<(), proxlift::Error>(())
/// ```
pub fn images_below(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    // A file is refused in the system's words.
    std::fs::read_dir(folder).map_err(Error::io(folder))?;
    let is_hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    let mut found = Vec::new();
    for entry in
        WalkDir::new(folder).into_iter().filter_entry(|e| e.depth() == 0 || !is_hidden(e.file_name()))
    {
        let entry = entry.map_err(|e| {
            let path = e.path().unwrap_or(folder).to_path_buf();
            // Links are not followed, so there are no loops, the only errors that are not the system's.
            let source = e.into_io_error().unwrap_or_else(|| std::io::ErrorKind::Other.into());
            Error::Io { path, source }
        })?;
        // What a broken link points to is told when it is read.
        let is_file = || entry.path().metadata().map_or(true, |target| target.is_file());
        if Format::from_path(entry.path()).is_some() && is_file() {
            found.push(entry.into_path());
        }
    }
    found.sort_unstable();
    Ok(found)
}
