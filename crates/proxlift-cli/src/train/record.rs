//! What a run was trained on: names, sizes and checksums of its files, so that it is not resumed on other ones.

use crate::files;
use proxlift::dataset::images_below;
use proxlift::{Error, Result, storage, team::Ranks, training::Settings};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// In the folder of a run.
const NAME: &str = "data.json";

/// Names that a sentence tells at most.
const TOLD: usize = 3;

/// The files of each folder: its flag, then names within it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record(BTreeMap<String, Files>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Files {
    count: usize,
    /// Over all names and files.
    crc32: String,
    files: BTreeMap<String, Facts>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    bytes: u64,
    crc32: String,
}

impl Record {
    /// Of the folders that the settings name; built-in pictures are always the same.
    /// In a team, all must see the same names and sizes; every process sums up its share of the files and, so that a copy that
    /// differs is seen, that of the process before it.
    pub fn of(settings: &Settings, ranks: &Ranks) -> Result<Self> {
        let folders = [("data", &settings.data), ("noisy", &settings.noisy), ("test", &settings.test)];
        let folders = folders.into_iter().filter_map(|(flag, folder)| Some((flag, folder.as_ref()?)));
        folders
            .map(|(flag, folder)| Ok((flag.to_string(), Files::below(folder, ranks)?)))
            .collect::<Result<_>>()
            .map(Self)
    }

    /// Checks it against what the folder of the run has, if it has one; else it is kept there.
    pub fn check(&self, folder: &Path, accept: bool) -> Result<()> {
        let path = folder.join(NAME);
        if path.is_file() {
            let text = storage::read_text(&path)?;
            let before = Self::parse(&text).map_err(|e| {
                Error::file(&path, format!("this file is damaged ({e}): remove it to resume"))
            })?;
            match self.differs(&before) {
                None => return Ok(()),
                Some(_) if accept => {}
                Some(difference) => {
                    let reason = format!(
                        "the pictures are not those that the run was begun with: {difference}; restore them, or give \
                         --accept-changed-data"
                    );
                    return Err(Error::file(folder, reason));
                }
            }
        }
        files::write_json(&path, self)
    }

    /// What the text of the file says.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// In what the files differ, if they do.
    pub fn differs(&self, before: &Self) -> Option<String> {
        let difference = before.0.iter().find_map(|(flag, before)| match self.0.get(flag) {
            Some(now) => Some(format!("in --{flag}, {}", now.differs(before)?)),
            None => Some(format!("--{flag} is missing")),
        });
        let added = || self.0.keys().find(|flag| !before.0.contains_key(*flag));
        difference.or_else(|| Some(format!("--{} is new", added()?)))
    }
}

impl Files {
    fn below(folder: &Path, ranks: &Ranks) -> Result<Self> {
        let name =
            |path: &Path| path.strip_prefix(folder).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let facts = |path: &std::path::PathBuf| Ok((name(path), Facts::of(path)?));
        let mut paths = ranks.agree(images_below(folder))?;
        if ranks.size() > 1 {
            let list = paths
                .iter()
                .map(|path| format!("{} {}\n", name(path), path.metadata().map_or(0, |m| m.len())));
            let list = (paths.len(), crc32fast::hash(list.collect::<String>().as_bytes()));
            let first = ranks.from_first(|| Ok(list))?;
            let reason = format!(
                "process {} sees {} files here, of which some differ from the {} that the first process sees: give all \
                 machines the same pictures",
                ranks.rank(),
                list.0,
                first.0
            );
            ranks.agree(if list == first { Ok(()) } else { Err(Error::file(folder, reason)) })?;
            let mut number = 0..;
            let is_ours = |i: usize| (0..2).any(|after| (i + after) % ranks.size() == ranks.rank());
            paths.retain(|_| number.next().is_some_and(is_ours));
        }
        let own = paths.par_iter().map(facts).collect::<Result<BTreeMap<String, Facts>>>();
        let own = ranks.agree(own)?;
        let text = serde_json::to_vec(&own).map_err(|e| Error::file(folder, e.to_string()))?;
        let all = ranks.bytes_of_all(&text).into_iter();
        let all = all.map(|text| serde_json::from_slice::<BTreeMap<String, Facts>>(&text));
        let all =
            all.collect::<serde_json::Result<Vec<_>>>().map_err(|e| Error::file(folder, e.to_string()))?;
        let mut files: BTreeMap<String, Facts> = BTreeMap::new();
        for (name, facts) in all.into_iter().flatten() {
            if files.get(&name).is_some_and(|other| *other != facts) {
                let reason = "two processes read different contents: give all machines the same pictures";
                return ranks.agree(Err(Error::file(folder.join(name), reason)));
            }
            files.insert(name, facts);
        }
        let mut all = crc32fast::Hasher::new();
        files.iter().for_each(|(name, facts)| all.update(format!("{name}\0{}\0", facts.crc32).as_bytes()));
        Ok(Self { count: files.len(), crc32: format!("{:08x}", all.finalize()), files })
    }

    fn differs(&self, before: &Self) -> Option<String> {
        let only = |one: &Self, other: &Self| -> Vec<String> {
            one.files.keys().filter(|name| !other.files.contains_key(*name)).cloned().collect()
        };
        let changed =
            before.files.iter().filter(|(name, facts)| self.files.get(*name).is_some_and(|f| f != *facts));
        let changed: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        let parts = [("missing", only(before, self)), ("new", only(self, before)), ("changed", changed)];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| told(what, names))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Such as `3 missing (a.png, b.png, c.png)`.
fn told(what: &str, names: &[String]) -> String {
    let more = if names.len() > TOLD { ", .." } else { "" };
    format!("{} {what} ({}{more})", names.len(), names[..names.len().min(TOLD)].join(", "))
}

impl Facts {
    fn of(path: &Path) -> Result<Self> {
        let mut file = match storage::open(path) {
            Ok(file) => file,
            // What cannot be read takes no part in the training, which warns of it.
            Err(_) => return Ok(Self { bytes: 0, crc32: "unreadable".into() }),
        };
        let (mut hasher, mut buffer, mut bytes) = (crc32fast::Hasher::new(), vec![0; 1 << 16], 0);
        loop {
            match file.read(&mut buffer).map_err(Error::io(path))? {
                0 => return Ok(Self { bytes, crc32: format!("{:08x}", hasher.finalize()) }),
                length => {
                    hasher.update(&buffer[..length]);
                    bytes += length as u64;
                }
            }
        }
    }
}
