//! Clean pictures to measure on: a folder's, or the built-in ones.

use crate::{files::short_name, output};
use proxlift::dataset::{ImageSet, images_below};
use proxlift::image::{Channels, Image, io};
use proxlift::{Error, Result};
use std::path::{Path, PathBuf};

/// The built-in test set: how many pictures, their side, the seed of their shapes.
const EMBEDDED: (usize, usize, u64) = (12, 128, 0);

/// The least side that SSIM has a meaning for.
pub const LEAST_SIDE: usize = 11;

/// Clean pictures, and where they are from.
pub struct TestSet {
    pub set: ImageSet,
    folder: Option<PathBuf>,
}

impl TestSet {
    /// All pictures below `folder`, or the built-in ones.
    pub fn load(folder: Option<&Path>, channels: Channels) -> Result<Self> {
        Self::load_at_most(folder, channels, usize::MAX)
    }

    /// At most `most` of them, evenly spaced.
    pub fn load_at_most(folder: Option<&Path>, channels: Channels, most: usize) -> Result<Self> {
        let set = match folder {
            Some(folder) => ImageSet::spaced(folder, channels, most)?,
            None => ImageSet::embedded_test(EMBEDDED.0.min(most), EMBEDDED.1, channels, EMBEDDED.2)?,
        };
        if set.channels() == Channels::Rgb && set.images().iter().all(is_grey) {
            output::warn(
                "the pictures are grey, but the model is for colour: it gets three noisy copies of each, which are easier \
                 to denoise than one",
            );
        }
        Ok(Self { set, folder: folder.map(Path::to_path_buf) })
    }

    /// In a line: the first `count`, which `name` says where they are from, with this noise.
    pub fn about(&self, count: usize, name: &str, noise: &str, seed: u64, clipped: bool) -> String {
        let kind = if self.set.channels() == Channels::Grey { "grey" } else { "RGB" };
        let clipped = if clipped { "clipped" } else { "not clipped" };
        format!("{count} {kind} pictures ({name}), {noise}, seed {seed}, output {clipped}")
    }

    /// The folder's path, or `built-in`.
    pub fn described(&self) -> String {
        self.folder.as_ref().map_or("built-in".into(), |path| path.display().to_string())
    }

    /// The folder's own name, or `built-in`.
    pub fn short_name(&self) -> String {
        self.folder.as_ref().map_or("built-in".into(), |path| short_name(path))
    }

    /// Where picture `i` lies in its folder, without extension: what its noisy copy and its results are called.
    pub fn name(&self, i: usize) -> PathBuf {
        let path = &self.set.names()[i];
        let inside = self.folder.as_ref().and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        inside.with_extension("")
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
    image.plane(0) == image.plane(1) && image.plane(0) == image.plane(2)
}
