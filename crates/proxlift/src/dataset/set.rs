//! Clean images in memory.

use super::{folder::images_below, synthetic};
use crate::image::{Channels, Image, io};
use crate::{Error, Result, random::Purpose};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// A set of clean images, all grey or all RGB, of any sizes.
#[derive(Clone, Debug)]
pub struct ImageSet {
    channels: Channels,
    images: Vec<Image>,
    names: Vec<PathBuf>,
    skipped: Vec<(PathBuf, String)>,
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
        Ok(Self { channels, images, names, skipped: Vec::new() })
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
        let (mut images, mut names, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
        for (path, image) in paths.into_iter().zip(read) {
            match image {
                Ok(image) => {
                    images.push(image);
                    names.push(path);
                }
                Err(error) => {
                    tracing::warn!("skipped: {error}");
                    skipped.push((path, error.to_string()));
                }
            }
        }
        if images.is_empty() {
            let reason = match skipped.len() {
                0 => format!("the folder holds no {} images", io::Format::READ),
                n => format!("none of the {n} images can be read; the first: {}", skipped[0].1),
            };
            return Err(Error::file(folder, reason));
        }
        Ok(Self { channels, images, names, skipped })
    }

    /// A set of given images, converted to `channels`; refuses an empty list and values that are not finite.
    pub fn from_images(images: Vec<Image>, channels: Channels) -> Result<Self> {
        refuse!(images.is_empty() => "a set of images needs at least one");
        images.iter().try_for_each(Image::check_finite)?;
        let names = (0..images.len()).map(|i| PathBuf::from(format!("image-{i:05}"))).collect();
        let images = images.into_iter().map(|i| i.into_channels(channels)).collect();
        Ok(Self { channels, images, names, skipped: Vec::new() })
    }

    /// The same set with other images in the place of each.
    pub(crate) fn with_images(&self, images: Vec<Image>) -> Self {
        Self { channels: self.channels, images, names: self.names.clone(), skipped: vec![] }
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
        let empty = || Self { channels: self.channels, images: vec![], names: vec![], skipped: vec![] };
        let (mut rest, mut held) = (Self { skipped: self.skipped, ..empty() }, empty());
        for (i, (image, name)) in self.images.into_iter().zip(self.names).enumerate() {
            let side = if i % every == 0 { &mut held } else { &mut rest };
            side.images.push(image);
            side.names.push(name);
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

fn read_as(path: &Path, channels: Channels) -> Result<Image> {
    Ok(io::read(path)?.image.into_channels(channels))
}
