//! Pairs of pictures of the same scenes: noisy ones and their partners, which are clean, or noisy in another way.

use super::{ImageSet, images_below};
use crate::image::{Channels, io::Format};
use crate::{Error, Result, team::Ranks};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Noisy pictures and their partners, in the same order, each pair of one size.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The noisy pictures.
    pub noisy: ImageSet,
    /// Pictures of the same scenes: clean, or with other noise of the same kind (Noise2Noise).
    pub partners: ImageSet,
}

impl Pairs {
    /// The pictures below two folders that have the same names, apart from their extensions.
    ///
    /// # Errors
    /// When a picture has no partner or one of another size, or cannot be read.
    pub fn from_folders(
        noisy: impl AsRef<Path>,
        partners: impl AsRef<Path>,
        channels: Channels,
    ) -> Result<Self> {
        Self::from_folders_among(noisy, partners, channels, Ranks::alone())
    }

    /// The same for a team, every member of which reads its share and keeps it in memory.
    ///
    /// # Errors
    /// As [`Pairs::from_folders`].
    pub fn from_folders_among(
        noisy: impl AsRef<Path>,
        partners: impl AsRef<Path>,
        channels: Channels,
        ranks: &Ranks,
    ) -> Result<Self> {
        let (noisy, partners) = (noisy.as_ref(), partners.as_ref());
        let [one, other] = ranks.agree(Self::names(noisy, partners))?;
        Self::new(
            ImageSet::of_files_among(noisy, &one, channels, ranks)?,
            ImageSet::of_files_among(partners, &other, channels, ranks)?,
        )
    }

    /// The files of all pairs, by name, so that partners come in the same order whatever their extensions.
    fn names(noisy: &Path, partners: &Path) -> Result<[Vec<PathBuf>; 2]> {
        let names = [by_name(noisy)?, by_name(partners)?];
        for (here, there, folder) in [(0, 1, partners), (1, 0, noisy)] {
            let alone: Vec<&PathBuf> = names[here]
                .iter()
                .filter(|(name, _)| !names[there].contains_key(*name))
                .map(|(_, path)| path)
                .collect();
            if let Some(path) = alone.first() {
                let (count, all, folder) = (alone.len(), names[here].len(), folder.display());
                let reason =
                    format!("no picture of that name is in {folder}: {count} of {all} lack a partner");
                return Err(Error::file(path, reason));
            }
        }
        Ok(names.map(|names| names.into_values().collect()))
    }

    /// The pictures of two sets in their order.
    ///
    /// # Errors
    /// When the sets differ in number, or the pictures of a pair in size.
    pub fn new(noisy: ImageSet, partners: ImageSet) -> Result<Self> {
        let (count, others) = (noisy.len(), partners.len());
        refuse!(count != others => "{count} noisy pictures have {others} partners: give one for each");
        let pairs = Self { noisy, partners };
        pairs.check()?;
        Ok(pairs)
    }

    fn check(&self) -> Result<()> {
        for i in 0..self.noisy.len() {
            let [one, other] = [&self.noisy, &self.partners].map(|set| &set.images()[i]);
            let ((_, h, w), (_, y, x)) = (one.shape(), other.shape());
            if (h, w) != (y, x) {
                return Err(Error::file(
                    &self.noisy.names()[i],
                    format!("this picture is {w} x {h} pixels, but its partner is {x} x {y}"),
                ));
            }
        }
        Ok(())
    }

    /// Reads what is elsewhere: all pictures are in memory.
    pub(crate) fn whole(self) -> Result<Self> {
        Ok(Self { noisy: self.noisy.whole()?, partners: self.partners.whole()? })
    }

    /// Every `every`-th pair for validation: `(rest, held out)`.
    ///
    /// # Errors
    /// As [`ImageSet::hold_out`].
    pub fn hold_out(self, every: usize) -> Result<(Self, Self)> {
        let ((noisy, held_noisy), (partners, held)) =
            (self.noisy.hold_out(every)?, self.partners.hold_out(every)?);
        Ok((Self { noisy, partners }, Self { noisy: held_noisy, partners: held }))
    }
}

/// The images below a folder by their names there, without extensions.
fn by_name(folder: &Path) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut names = BTreeMap::new();
    for path in images_below(folder)? {
        let name = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
        if let Some(other) = names.insert(name, path.clone()) {
            return Err(Error::file(path, format!("{} has the same name", other.display())));
        }
    }
    if names.is_empty() {
        return Err(Error::file(folder, format!("the folder holds no {} images", Format::READ)));
    }
    Ok(names)
}
