//! Clean images in memory.

use super::spool::{Slot, Spool};
use super::{folder::images_below, synthetic};
use crate::image::{Channels, Image, io};
use crate::{Error, Result, random::Purpose};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A set of clean images, all grey or all RGB, of any sizes.
#[derive(Clone, Debug)]
pub struct ImageSet {
    pub(super) channels: Channels,
    images: Vec<Image>,
    pub(super) names: Vec<PathBuf>,
    skipped: Vec<(PathBuf, String)>,
    /// Where the values of each image are; empty if they all are in memory.
    pub(super) slots: Vec<Slot>,
    pub(super) spool: Option<Arc<Spool>>,
}

impl ImageSet {
    /// All images below `folder`, sorted by path, converted to `channels`; alpha is ignored.
    ///
    /// Hidden files and files without an image extension are passed over, and so are linked folders. A file that
    /// cannot be read is skipped with a warning and listed in [`ImageSet::skipped`]; it is an error if nothing is
    /// left.
    pub fn from_folder(folder: impl AsRef<Path>, channels: Channels) -> Result<Self> {
        let folder = folder.as_ref();
        Self::read(folder, images_below(folder)?, channels)
    }

    /// The images of these files, in this order; one that cannot be read is an error.
    pub(super) fn of_files(names: Vec<PathBuf>, channels: Channels) -> Result<Self> {
        let images = names.par_iter().map(|path| read_as(path, channels)).collect::<Result<Vec<_>>>()?;
        Ok(Self { images, names, ..Self::empty(channels) })
    }

    /// Like [`ImageSet::from_folder`], but at most `most` images, evenly spaced in the order of their paths; the others
    /// are not read. Where a file cannot be read, the choice is made again without it.
    pub fn spaced(folder: impl AsRef<Path>, channels: Channels, most: usize) -> Result<Self> {
        let folder = folder.as_ref();
        let mut paths = images_below(folder)?;
        loop {
            let count = paths.len().min(most);
            let chosen = (0..count).map(|i| paths[i * paths.len() / count].clone()).collect();
            let set = Self::read(folder, chosen, channels)?;
            if set.skipped.is_empty() || count == paths.len() {
                return Ok(set);
            }
            paths.retain(|path| set.skipped.iter().all(|(skipped, _)| skipped != path));
        }
    }

    fn read(folder: &Path, paths: Vec<PathBuf>, channels: Channels) -> Result<Self> {
        let read: Vec<Result<Image>> = paths.par_iter().map(|path| read_as(path, channels)).collect();
        let mut set = Self::empty(channels);
        for (path, image) in paths.into_iter().zip(read) {
            match image {
                Ok(image) => {
                    set.images.push(image);
                    set.names.push(path);
                }
                Err(error) => set.skip(path, error.to_string()),
            }
        }
        set.some(folder)
    }

    pub(super) fn empty(channels: Channels) -> Self {
        Self { channels, images: vec![], names: vec![], skipped: vec![], slots: vec![], spool: None }
    }

    pub(super) fn push(&mut self, image: Image, name: PathBuf, slot: Slot) {
        self.images.push(image);
        self.names.push(name);
        self.slots.push(slot);
    }

    pub(super) fn skip(&mut self, path: PathBuf, error: String) {
        tracing::warn!("skipped: {error}");
        self.skipped.push((path, error));
    }

    /// Refuses a set that is empty.
    pub(super) fn some(self, folder: &Path) -> Result<Self> {
        if self.images.is_empty() {
            let reason = match self.skipped.len() {
                0 => format!("the folder holds no {} images", io::Format::READ),
                n => format!("none of the {n} images can be read; the first: {}", self.skipped[0].1),
            };
            return Err(Error::file(folder, reason));
        }
        Ok(self)
    }

    /// The member of a team that has image `i`, counted from the first and on beyond the last.
    pub fn home(&self, i: usize) -> usize {
        self.slots.get(i).map_or(i, |slot| slot.home)
    }

    /// Whether members of a team have different images.
    pub fn is_shared(&self) -> bool {
        !self.slots.is_empty()
    }

    /// `height` rows of plane `c` of image `i` from a corner on, `width` values of each, into `values`.
    pub(super) fn window(
        &self,
        (i, c): (usize, usize),
        (top, left): (usize, usize),
        width: usize,
        values: &mut [f32],
    ) {
        let image = &self.images[i];
        let (stride, start) = (image.width(), self.slots.get(i).and_then(|slot| slot.start));
        for (row, values) in values.chunks_exact_mut(width).enumerate() {
            let first = (top + row) * stride + left;
            match (start, &self.spool) {
                (Some(start), Some(spool)) => spool.read(start, c * image.pixels() + first, values),
                _ => values.copy_from_slice(&image.plane(c)[first..][..width]),
            }
        }
    }

    /// A set of given images, converted to `channels`; refuses an empty list and values that are not finite.
    pub fn from_images(images: Vec<Image>, channels: Channels) -> Result<Self> {
        refuse!(images.is_empty() => "a set of images needs at least one");
        images.iter().try_for_each(Image::check_finite)?;
        let names = (0..images.len()).map(|i| PathBuf::from(format!("image-{i:05}"))).collect();
        let images = images.into_iter().map(|i| i.into_channels(channels)).collect();
        Ok(Self { images, names, ..Self::empty(channels) })
    }

    /// The same set with other images in the place of each.
    pub(crate) fn with_images(&self, images: Vec<Image>) -> Self {
        Self { images, names: self.names.clone(), slots: self.slots.clone(), ..Self::empty(self.channels) }
    }

    /// `count` procedural images of `size` x `size` pixels to train on: see [`synthetic::dead_leaves`].
    pub fn embedded_train(count: usize, size: usize, channels: Channels, seed: u64) -> Result<Self> {
        Self::embedded(Purpose::SyntheticTrain, count, size, channels, seed)
    }

    /// Like [`ImageSet::embedded_train`], from random numbers that no training set ever sees.
    pub fn embedded_test(count: usize, size: usize, channels: Channels, seed: u64) -> Result<Self> {
        Self::embedded(Purpose::SyntheticTest, count, size, channels, seed)
    }

    fn embedded(purpose: Purpose, count: usize, size: usize, channels: Channels, seed: u64) -> Result<Self> {
        let images: Result<Vec<Image>> = (0..count as u64)
            .into_par_iter()
            .map(|i| synthetic::dead_leaves_for(purpose, seed, i, size, size, channels))
            .collect();
        Self::from_images(images?, channels)
    }

    /// Splits off every `every`-th image (the first, the one `every` later, ...) for validation: `(rest, held out)`.
    pub fn hold_out(self, every: usize) -> Result<(Self, Self)> {
        refuse!(every < 2 || self.len() < 2 =>
            "holding out one image in {every} of {} leaves nothing to train on", self.len());
        let empty = || Self { spool: self.spool.clone(), ..Self::empty(self.channels) };
        let (mut rest, mut held) = (Self { skipped: self.skipped, ..empty() }, empty());
        for (i, (image, name)) in self.images.into_iter().zip(self.names).enumerate() {
            let side = if i % every == 0 { &mut held } else { &mut rest };
            side.images.push(image);
            side.names.push(name);
            side.slots.extend(self.slots.get(i));
        }
        Ok((rest, held))
    }

    /// The images, in order.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// Where each image came from.
    pub fn names(&self) -> &[PathBuf] {
        &self.names
    }

    /// Files that could not be read, and why.
    pub fn skipped(&self) -> &[(PathBuf, String)] {
        &self.skipped
    }

    /// Grey or RGB.
    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// How many images.
    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Never true: an empty set is refused.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }
}

pub(super) fn read_as(path: &Path, channels: Channels) -> Result<Image> {
    Ok(io::read(path)?.image.into_channels(channels))
}
