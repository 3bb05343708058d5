//! Files that a command makes beside what it prints.

use proxlift::storage::{self, write_atomically};
use proxlift::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Refuses a file that cannot be made, or would be replaced without `overwrite`; to be asked before the work starts.
pub fn check_free(path: &Path, overwrite: bool) -> Result<()> {
    if path.is_dir() {
        return Err(Error::file(path, "this is a folder, but a file should be written there"));
    }
    if path.exists() && !overwrite {
        return Err(Error::file(path, "this file exists: give --overwrite to replace it"));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => Err(Error::file(folder, format!("there is no such folder for {}", path.display()))),
        None => Ok(()),
    }
}

/// Refuses a file whose extension is none of `allowed`.
pub fn check_extension(path: &Path, allowed: &[&str]) -> Result<()> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if allowed.iter().any(|a| extension.eq_ignore_ascii_case(a)) {
        return Ok(());
    }
    Err(Error::file(path, format!("the name of this file must end with .{}", allowed.join(" or ."))))
}

/// The last part of a path: what a file or folder is called where its place is nobody's business.
pub fn short_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Writes a whole file or none.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(path, |file| file.write_all(bytes).map_err(Error::io(path)))
}

/// Writes a value as JSON, indented.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::file(path, e.to_string()))?;
    write(path, format!("{text}\n").as_bytes())
}

/// What a JSON file holds; none if it cannot be read as that.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&storage::read_text(path).ok()?).ok()
}

/// Writes a value that later runs go on from, with its checksum.
pub fn keep(path: &Path, value: &impl Serialize) -> Result<()> {
    let value = serde_json::to_value(value).map_err(|e| Error::file(path, e.to_string()))?;
    write_json(path, &json!({"crc32": checksum(&value), "value": value}))
}

/// What [`keep`] wrote; none if it is damaged. What version 0.4 wrote, without a checksum, is read too.
pub fn recall<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_value(sound(&storage::read_text(path).ok()?)?).ok()
}

/// The value of such a text, if its checksum is right or it has none.
pub fn sound(text: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    match value.get("crc32") {
        Some(known) => (*known == checksum(&value["value"])).then(|| value["value"].take()),
        None => Some(value),
    }
}

pub fn checksum(value: &Value) -> String {
    format!("{:08x}", crc32fast::hash(value.to_string().as_bytes()))
}
