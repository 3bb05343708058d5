//! Pictures of a folder of which a member of a team has its share: in memory, or in a file where they do not fit.
//!
//! Every member knows the sizes of all pictures, and has the values of its own: those that it was the one to read. A patch is
//! cut where its picture is.

use super::ImageSet;
use super::folder::images_below;
use super::set::read_as;
use super::spool::{Slot, Spool};
use crate::image::{Channels, Image};
use crate::{Error, Result, memory, team::Ranks};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pictures of each thread that are read side by side before it is asked whether there is memory for them.
const CHUNK: usize = 2;

/// What a member tells the others of a picture: its number, and its size or why it cannot be read.
type Told = (usize, std::result::Result<(usize, usize), String>);

/// What becomes of the pictures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// They stay as they are, in memory or in a file; one that cannot be read is skipped.
    Kept,
    /// They are changed, and stay in memory; one that cannot be read is skipped.
    Changed,
    /// The same, and all must be readable.
    AllChanged,
}

/// What a member has read.
#[derive(Default)]
struct Share {
    told: Vec<Told>,
    images: Vec<Image>,
    /// Where they start in the file, if they are there.
    starts: Vec<u64>,
    spool: Option<Spool>,
}

impl Share {
    fn read(paths: &[PathBuf], channels: Channels, ranks: &Ranks, kind: Kind) -> Result<Self> {
        let mut share = Self::default();
        let budget = if kind == Kind::Kept { memory::available().unwrap_or(u64::MAX) / 2 } else { u64::MAX };
        let mut bytes = 0;
        let numbers: Vec<usize> = (ranks.rank()..paths.len()).step_by(ranks.size()).collect();
        for numbers in numbers.chunks(CHUNK * rayon::current_num_threads()) {
            let read = numbers.par_iter().map(|&i| (i, read_as(&paths[i], channels)));
            for (i, image) in read.collect::<Vec<_>>() {
                let size = image.as_ref().map(|image| (image.height(), image.width()));
                share.told.push((i, size.map_err(ToString::to_string)));
                bytes += image.as_ref().map_or(0, |image| size_of_val(image.data()) as u64);
                share.images.extend(image);
            }
            if bytes > budget {
                share.bring_to_file(channels).map_err(|e| {
                    invalid!(
                        "the pictures do not fit into memory, and there is no temporary file for them: {e}"
                    )
                })?;
            }
        }
        Ok(share)
    }

    /// Brings what is in memory to the file.
    fn bring_to_file(&mut self, channels: Channels) -> Result<()> {
        let spool = match &mut self.spool {
            Some(spool) => spool,
            None => self.spool.insert(Spool::new()?),
        };
        for image in &mut self.images[self.starts.len()..] {
            self.starts.push(spool.take(image, channels)?);
        }
        Ok(())
    }
}

impl ImageSet {
    /// [`ImageSet::from_folder`] for a team, all of whose members see the same files: every one reads its share of them, and
    /// keeps it in memory, or in a temporary file if it takes more than half of the memory that there is.
    pub fn from_folder_among(folder: impl AsRef<Path>, channels: Channels, ranks: &Ranks) -> Result<Self> {
        let paths = ranks.agree(images_below(folder.as_ref()))?;
        Self::among(folder.as_ref(), &paths, channels, ranks, Kind::Kept)
    }

    /// The same for pictures that are to be changed: all of the share is in memory.
    pub fn from_folder_in_memory(
        folder: impl AsRef<Path>,
        channels: Channels,
        ranks: &Ranks,
    ) -> Result<Self> {
        let paths = ranks.agree(images_below(folder.as_ref()))?;
        Self::among(folder.as_ref(), &paths, channels, ranks, Kind::Changed)
    }

    /// The same for these files of the folder; one that cannot be read is an error.
    pub(super) fn of_files_among(
        folder: &Path,
        paths: &[PathBuf],
        channels: Channels,
        ranks: &Ranks,
    ) -> Result<Self> {
        Self::among(folder, paths, channels, ranks, Kind::AllChanged)
    }

    fn among(
        folder: &Path,
        paths: &[PathBuf],
        channels: Channels,
        ranks: &Ranks,
        kind: Kind,
    ) -> Result<Self> {
        let share = ranks.agree(Share::read(paths, channels, ranks, kind))?;
        let told = serde_json::to_vec(&share.told).map_err(|e| invalid!("sizes cannot be told: {e}"));
        let all = ranks.bytes_of_all(&ranks.agree(told)?);
        let mut told: Vec<Told> = all
            .iter()
            .flat_map(|told| serde_json::from_slice::<Vec<Told>>(told).unwrap_or_default())
            .collect();
        told.sort_by_key(|(i, _)| *i);
        let mut set = Self::empty(channels);
        let mut starts = share.starts.into_iter();
        let mut own = share.images.into_iter();
        for (i, size) in told {
            let home = i % ranks.size();
            match size {
                Ok((height, width)) => {
                    let image = if home == ranks.rank() { own.next() } else { None };
                    let start = image.as_ref().and_then(|_| starts.next());
                    let image = image.unwrap_or_else(|| Image::hollow(channels, height, width));
                    set.push(image, paths[i].clone(), Slot { home, start });
                }
                Err(error) if kind == Kind::AllChanged => return ranks.agree(Err(Error::Invalid(error))),
                Err(error) => set.skip(paths[i].clone(), error),
            }
        }
        if ranks.size() == 1 && share.spool.is_none() {
            set.slots.clear();
        }
        set.spool = share.spool.map(Arc::new);
        ranks.agree(set.some(folder))
    }

    /// Reads what is elsewhere: a set of which all pictures are in memory.
    pub(crate) fn whole(self) -> Result<Self> {
        if self.is_shared() { Self::of_files(self.names, self.channels) } else { Ok(self) }
    }
}
