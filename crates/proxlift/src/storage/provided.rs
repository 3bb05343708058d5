//! In a browser, where there is no disk: files that the page provides.

use std::sync::{Mutex, PoisonError};

static PROVIDED: Mutex<Vec<(String, &'static [u8])>> = Mutex::new(Vec::new());

/// Gives the file of this name in `crates/proxlift/models`, without its extension, for good: pages load them when they are
/// needed.
pub fn provide(file: &str, bytes: Vec<u8>) {
    PROVIDED.lock().unwrap_or_else(PoisonError::into_inner).push((file.into(), bytes.leak()));
}

/// Panics when it was not provided.
pub(crate) fn provided(file: &str) -> &'static [u8] {
    let provided = PROVIDED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = provided.iter().find(|(name, _)| name == file);
    found.unwrap_or_else(|| panic!("the file {file} was not provided")).1
}
