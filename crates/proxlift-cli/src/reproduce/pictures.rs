//! The pictures of all experiments: to train on, to test on, and a name for what they are.

use super::scale::Scale;
use crate::files::short_name;
use crate::test_set::{LEAST_SIDE, check_sides};
use proxlift::image::noise::add_gaussian;
use proxlift::image::{Channels, Image};
use proxlift::{Error, Result, dataset::ImageSet};
use std::path::Path;
use std::sync::Arc;

const BUILT_IN_SIDE: usize = 64;
const NOISE_SEED: u64 = 0;

pub struct Pictures {
    /// Clean pictures to train on, and to test on.
    pub train: Arc<ImageSet>,
    pub test: ImageSet,
    /// Both, in a line each.
    pub described: String,
    pub test_described: String,
    /// A name for all of it: equal names, equal pixels.
    pub fingerprint: String,
}

impl Pictures {
    pub fn load(data: Option<&Path>, test: Option<&Path>, scale: &Scale) -> Result<Self> {
        let (side, test_side) = (BUILT_IN_SIDE.max(2 * scale.patch), scale.test_side);
        let (train, described) = match data {
            Some(folder) => enough(folder, scale.images, scale.patch, "train on")?,
            None => (
                ImageSet::embedded_train(scale.images, side, Channels::Grey, 0)?,
                format!("{} built-in pictures (dead leaves) of {side} x {side} pixels", scale.images),
            ),
        };
        let (test, test_described) = match test {
            Some(folder) => enough(folder, scale.test, LEAST_SIDE, "test on")?,
            None => (
                ImageSet::embedded_test(scale.test, test_side, Channels::Grey, 0)?,
                format!("{} built-in pictures of {test_side} x {test_side} pixels", scale.test),
            ),
        };
        let fingerprint = format!("{:016x}", hash(train.images().iter().chain(test.images())));
        Ok(Self { train: Arc::new(train), test, described, test_described, fingerprint })
    }

    /// The test images with noise of level `sigma`.
    pub fn noisy(&self, sigma: f64) -> Result<Vec<Image>> {
        let images = self.test.images().iter().enumerate();
        images.map(|(i, image)| add_gaussian(image, sigma as f32, NOISE_SEED, i as u64)).collect()
    }

    pub fn test_names(&self) -> Vec<String> {
        self.test.names().iter().map(|path| short_name(path)).collect()
    }
}

/// `count` pictures of the folder, evenly spaced, each at least `side` pixels wide and high; and what they are.
fn enough(folder: &Path, count: usize, side: usize, purpose: &str) -> Result<(ImageSet, String)> {
    let set = ImageSet::spaced(folder, Channels::Grey, count)?;
    if set.len() < count {
        let reason = format!(
            "the experiments need {count} pictures to {purpose}, but here are {}: add some, or leave the folder out \
             for built-in pictures",
            set.len()
        );
        return Err(Error::file(folder, reason));
    }
    check_sides(&set, side, &format!("a picture to {purpose}"))?;
    Ok((set, format!("{count} pictures of {}, evenly spaced by name", short_name(folder))))
}

/// FNV-1a over sizes and pixels: not to be relied on against malice, but the same everywhere and for ever.
fn hash<'a>(images: impl Iterator<Item = &'a Image>) -> u64 {
    let step = |hash: u64, word: u32| (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3);
    images.fold(0xcbf2_9ce4_8422_2325, |hash, image| {
        let sizes = [image.height() as u32, image.width() as u32];
        sizes.into_iter().chain(image.data().iter().map(|v| v.to_bits())).fold(hash, step)
    })
}
