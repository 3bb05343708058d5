//! Clean pictures to measure on: a folder's, or the built-in ones.

use crate::{files::short_name, output};
use proxlift::dataset::{ImageSet, images_below};
use proxlift::image::{Channels, Image, io};
use proxlift::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The built-in test set: how many pictures, their side, the seed of their shapes.
const EMBEDDED: (usize, usize, u64) = (12, 128, 0);

/// The least side that SSIM has a meaning for.
pub const LEAST_SIDE: usize = 11;

/// Pixels that are in memory at once, unless one picture has more.
const AT_ONCE: usize = 1 << 24;

/// Clean pictures, and where they are from. Those of a folder are read when they are needed, a few at a time.
pub struct TestSet {
    source: Source,
    channels: Channels,
    names: Vec<PathBuf>,
    /// Pixels of each.
    pixels: Vec<usize>,
    /// Files that cannot be read.
    pub skipped: usize,
}

enum Source {
    Folder(PathBuf),
    BuiltIn(ImageSet),
}

/// All pictures below `folder`, or the built-in ones, at once.
pub fn images(folder: Option<&Path>, channels: Channels, most: usize) -> Result<ImageSet> {
    let set = match folder {
        Some(folder) => ImageSet::spaced(folder, channels, most)?,
        None => ImageSet::embedded_test(EMBEDDED.0.min(most), EMBEDDED.1, channels, EMBEDDED.2)?,
    };
    warn_of_grey(channels, set.images().iter().all(is_grey));
    Ok(set)
}

impl TestSet {
    /// All pictures below `folder`, or the built-in ones. Each is read once, to see that it can be.
    pub fn load(folder: Option<&Path>, channels: Channels) -> Result<Self> {
        let Some(folder) = folder else {
            let set = images(None, channels, usize::MAX)?;
            let pixels = set.images().iter().map(Image::pixels).collect();
            let names = set.names().to_vec();
            return Ok(Self { source: Source::BuiltIn(set), channels, names, pixels, skipped: 0 });
        };
        let look = |path: &PathBuf| {
            let image = io::read(path)?.image;
            Ok((image.pixels(), is_grey(&image)))
        };
        let paths = images_below(folder)?;
        let looks: Vec<Result<(usize, bool)>> = paths.par_iter().map(look).collect();
        let (mut names, mut pixels, mut skipped, mut all_grey) = (Vec::new(), Vec::new(), Vec::new(), true);
        for (path, look) in paths.into_iter().zip(looks) {
            match look {
                Ok((number, grey)) => {
                    names.push(path);
                    pixels.push(number);
                    all_grey &= grey;
                }
                Err(error) => {
                    output::warn(format_args!("skipped: {error}"));
                    skipped.push(error.to_string());
                }
            }
        }
        if names.is_empty() {
            let reason = match skipped.first() {
                None => format!("the folder holds no {} images", io::Format::READ),
                Some(first) => {
                    format!("none of the {} images can be read; the first: {first}", skipped.len())
                }
            };
            return Err(Error::file(folder, reason));
        }
        warn_of_grey(channels, all_grey);
        let skipped = skipped.len();
        Ok(Self { source: Source::Folder(folder.to_path_buf()), channels, names, pixels, skipped })
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn channels(&self) -> Channels {
        self.channels
    }

    pub fn names(&self) -> &[PathBuf] {
        &self.names
    }

    /// Some of the pictures.
    pub fn read(&self, which: Range<usize>) -> Result<Vec<Image>> {
        match &self.source {
            Source::BuiltIn(set) => Ok(set.images()[which].to_vec()),
            Source::Folder(_) => self.names[which]
                .par_iter()
                .map(|path| Ok(io::read(path)?.image.into_channels(self.channels)))
                .collect(),
        }
    }

    /// The numbers of the first `count` pictures, a few at a time: enough for all threads, and no more memory than that.
    pub fn few_at_a_time(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let most = 4 * rayon::current_num_threads();
        let mut start = 0;
        std::iter::from_fn(move || {
            let mut pixels = 0;
            let fits = |&i: &usize| {
                pixels += self.pixels[i];
                i == start || pixels <= AT_ONCE
            };
            let number = (start..count.min(start + most)).take_while(fits).count();
            start += number;
            (number > 0).then(|| start - number..start)
        })
    }

    /// In a line: the first `count`, which `name` says where they are from, with this noise.
    pub fn about(&self, count: usize, name: &str, noise: &str, seed: u64, clipped: bool) -> String {
        let kind = if self.channels == Channels::Grey { "grey" } else { "RGB" };
        let clipped = if clipped { "clipped" } else { "not clipped" };
        format!("{count} {kind} pictures ({name}), {noise}, seed {seed}, output {clipped}")
    }

    fn folder(&self) -> Option<&PathBuf> {
        if let Source::Folder(folder) = &self.source { Some(folder) } else { None }
    }

    /// The folder's path, or `built-in`.
    pub fn described(&self) -> String {
        self.folder().map_or("built-in".into(), |path| path.display().to_string())
    }

    /// The folder's own name, or `built-in`.
    pub fn short_name(&self) -> String {
        self.folder().map_or("built-in".into(), |path| short_name(path))
    }

    /// Where picture `i` lies in its folder, without extension: what its noisy copy and its results are called.
    pub fn name(&self, i: usize) -> PathBuf {
        let path = &self.names[i];
        let inside = self.folder().and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        inside.with_extension("")
    }
}

fn warn_of_grey(channels: Channels, all_grey: bool) {
    if channels == Channels::Rgb && all_grey {
        output::warn(
            "the pictures are grey, but the model is for colour: it gets three noisy copies of each, which are easier \
             to denoise than one",
        );
    }
}

/// What pictures must be read as for networks that take only the `needed` kinds: as these need, in grey if `grey`, else as the
/// first picture is.
pub fn channels(needed: &[Channels], grey: bool, folder: Option<&Path>) -> Result<Channels> {
    if grey && needed.contains(&Channels::Rgb) {
        return Err(Error::invalid(
            "--grey does not fit a model for colour: leave it out, or choose a grey model",
        ));
    }
    if needed.contains(&Channels::Grey) && needed.contains(&Channels::Rgb) {
        let reason = "some models are for grey pictures and some for colour: compare models of one kind";
        return Err(Error::invalid(reason));
    }
    match (needed.first(), folder) {
        _ if grey => Ok(Channels::Grey),
        (Some(&channels), _) => Ok(channels),
        (None, Some(folder)) => kind_of_first(folder),
        (None, None) => Ok(Channels::Grey),
    }
}

/// Grey or RGB as the first picture that can be read is; a folder without any is refused when the set is made.
fn kind_of_first(folder: &Path) -> Result<Channels> {
    let readable = images_below(folder)?.into_iter().find_map(|path| io::read(path).ok());
    Ok(readable.map_or(Channels::Grey, |picture| picture.image.kind()))
}

/// Refuses a set with a picture below `least` pixels wide or high; `what` the pictures are stands first in the sentence.
pub fn check_sides(set: &ImageSet, least: usize, what: &str) -> Result<()> {
    match set.images().iter().position(|image| image.height().min(image.width()) < least) {
        Some(at) => {
            let reason = format!("{what} must have {least} x {least} pixels or more");
            Err(Error::file(&set.names()[at], reason))
        }
        None => Ok(()),
    }
}

fn is_grey(image: &Image) -> bool {
    image.channels() == 1 || image.plane(0) == image.plane(1) && image.plane(0) == image.plane(2)
}
