//! Measurements that are kept as they are made: a report that was stopped goes on where it was.

use crate::files::{keep, recall};
use crate::reproduce::folder::Folder;
use crate::train::interrupt;
use anyhow::Result;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The measurements of a section by name, in one file.
pub struct Kept<T> {
    path: PathBuf,
    known: Mutex<BTreeMap<String, T>>,
}

impl<T: Clone + Serialize + DeserializeOwned> Kept<T> {
    /// With what an earlier session has found.
    pub fn open(folder: &Folder, name: &str) -> Self {
        let path = folder.runs().join(format!("{name}.json"));
        let known = Mutex::new(recall(&path).unwrap_or_default());
        Self { path, known }
    }

    /// What is known by this name, or else is measured now; none after Ctrl-C. The name has all that decides the result.
    pub fn or_measure(&self, name: &str, measure: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name) {
            return Ok(Some(found.clone()));
        }
        if interrupt::asked() {
            return Ok(None);
        }
        let found = measure()?;
        let mut known = known();
        known.insert(name.into(), found.clone());
        keep(&self.path, &*known)?;
        Ok(Some(found))
    }
}
