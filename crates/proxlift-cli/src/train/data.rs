//! What a training sees: pictures to train on, held-out ones that choose the best network, and the test set.

use super::trial::Trial;
use crate::files::short_name;
use crate::test_set::{LEAST_SIDE, TestSet, check_sides};
use proxlift::dataset::{ImageSet, Pairs, PatchNoise, Patches};
use proxlift::denoiser::Standard;
use proxlift::image::{Channels, Image};
use proxlift::{Error, Result, training::Config};
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Built-in pictures to train on.
const BUILT_IN: usize = 1000;
/// Their side, or twice the patch if that is more.
const BUILT_IN_SIDE: usize = 64;
/// The largest patch that they are painted for.
const BUILT_IN_PATCH: usize = 128;
/// Built-in pictures that choose the best network, their side and their seed: never those of the test set.
const CHOICE: (usize, usize, u64) = (12, 96, 1);
/// The most pictures that are held out.
const MOST_HELD_OUT: usize = 24;
/// Of fewer pictures than these, one is held out.
const LEAST_SHARE: usize = 10;
/// Held-out pictures with white noise are cropped to this side.
const CROP: usize = 128;
/// The seed of the noise on the test set, that of `proxlift evaluate`, and on held-out pictures.
const TEST_SEED: u64 = 0;
const CHOICE_SEED: u64 = 7;

pub struct Data {
    pub patches: Patches,
    /// What chooses the best network.
    pub validation: Trial,
    /// What is scored at the end, unless that is the same.
    test: Option<Trial>,
    /// The training data and the test set, in a line each.
    pub described: String,
    pub test_described: String,
    pub bytes: usize,
}

/// What a training learns from, what is held out, and both in a line.
struct Source {
    patches: Patches,
    held_out: Trial,
    described: String,
    bytes: usize,
}

impl Data {
    /// Loads or paints everything; settles the count of patches in `config`.
    pub fn load(config: &mut Config) -> Result<Self> {
        let channels = if config.architecture.channels == 1 { Channels::Grey } else { Channels::Rgb };
        let settings = config.settings.clone();
        let source = match (&settings.noisy, &settings.data) {
            (Some(noisy), Some(partners)) => from_pairs(noisy, partners, channels, config)?,
            (Some(noisy), None) => from_noisy(noisy, channels, config)?,
            (None, Some(folder)) => from_folder(folder, channels, config)?,
            (None, None) => built_in(config, channels)?,
        };
        let Source { patches, held_out: validation, described, bytes } = source;
        let noise = patches.spec().noise;
        let (test, test_described) = match (noise, &settings.test) {
            (PatchNoise::White, folder) => {
                let test = TestSet::load(folder.as_deref(), channels)?.set;
                check_sides(&test, LEAST_SIDE, "a test picture")?;
                let of = folder.as_ref().map(|folder| format!("pictures of {}", folder.display()));
                let described = format!("{} {}", test.len(), of.as_deref().unwrap_or("built-in pictures"));
                (Some(Trial::white(&test, usize::MAX, config.sigma, TEST_SEED)?), described)
            }
            (PatchNoise::Own, _) if settings.data.is_none() => {
                (None, format!("{} held-out patches, against others that are noisy too", validation.len()))
            }
            _ => (None, format!("{} held-out pictures", validation.len())),
        };
        config.settings.count = Some(patches.len());
        Ok(Self { patches, validation, test, described, test_described, bytes })
    }

    /// What is scored at the end.
    pub fn test(&self) -> &Trial {
        self.test.as_ref().unwrap_or(&self.validation)
    }
}

fn built_in(config: &Config, channels: Channels) -> Result<Source> {
    if config.patch > BUILT_IN_PATCH {
        return Err(Error::invalid(format!(
            "--patch is {}, but the built-in pictures are for patches up to {BUILT_IN_PATCH}: give --data",
            config.patch
        )));
    }
    let side = BUILT_IN_SIDE.max(2 * config.patch);
    // Picture i is the same in sets of any size, and patch i comes from picture i.
    let number = BUILT_IN.min(config.settings.count.unwrap_or(BUILT_IN));
    let train = ImageSet::embedded_train(number, side, channels, 0)?;
    let choice = ImageSet::embedded_test(CHOICE.0, CHOICE.1, channels, CHOICE.2)?;
    let described = format!("{number} built-in pictures of {side} x {side} pixels");
    from_clean(train, &choice, described, config)
}

fn from_folder(folder: &Path, channels: Channels, config: &Config) -> Result<Source> {
    let set = ImageSet::from_folder(folder, channels)?;
    let of_folder = |e: Error| Error::file(folder, e.to_string());
    let number = set.len();
    let name = short_name(folder);
    if number == 1 {
        warn_of_one();
        return from_clean(set.clone(), &set, format!("1 picture of {name}"), config).map_err(of_folder);
    }
    let (train, held) = set.hold_out(share(number))?;
    let described = format!("{} pictures of {name}, {} held out", train.len(), held.len());
    from_clean(train, &held, described, config).map_err(of_folder)
}

/// Clean pictures, to which noise is added.
fn from_clean(train: ImageSet, held: &ImageSet, described: String, config: &Config) -> Result<Source> {
    let held_out = match config.settings.noise {
        Some(PatchNoise::Camera) => Trial::camera(held, CHOICE_SEED),
        _ => Trial::white(held, CROP, config.sigma, CHOICE_SEED)?,
    };
    let bytes = bytes(&train);
    Ok(Source { patches: config.patches(Arc::new(train))?, held_out, described, bytes })
}

/// Noisy pictures and their partners.
fn from_pairs(noisy: &Path, partners: &Path, channels: Channels, config: &Config) -> Result<Source> {
    let pairs = Pairs::from_folders(noisy, partners, channels)?;
    let number = pairs.noisy.len();
    let (train, held) = if number == 1 {
        warn_of_one();
        (pairs.clone(), pairs)
    } else {
        pairs.hold_out(share(number))?
    };
    let described = format!(
        "{} pairs of {} and {}, {} held out",
        train.noisy.len(),
        short_name(noisy),
        short_name(partners),
        held.noisy.len()
    );
    let patches = config.patches_of_pairs(&train).map_err(|e| Error::file(noisy, e.to_string()))?;
    Ok(Source { patches, held_out: Trial::pairs(&held), described, bytes: 2 * bytes(&train.noisy) })
}

/// Noisy pictures alone.
fn from_noisy(folder: &Path, channels: Channels, config: &Config) -> Result<Source> {
    let of_folder = |e: Error| Error::file(folder, e.to_string());
    let set = ImageSet::from_folder(folder, channels)?;
    let images =
        set.images().par_iter().map(|noisy| Ok(Standard::of(noisy, config.sigma)?.noisy(noisy.clone())));
    let set = ImageSet::from_images(images.collect::<Result<Vec<Image>>>().map_err(of_folder)?, channels)?;
    let number = set.len();
    let (train, held) = if number == 1 {
        warn_of_one();
        (set.clone(), set)
    } else {
        set.hold_out(share(number))?
    };
    let described =
        format!("{} noisy pictures of {}, {} held out", train.len(), short_name(folder), held.len());
    let side = held.images().iter().map(|image| image.height().min(image.width())).min().unwrap_or(CROP);
    let held_out = config.patches(Arc::new(held)).and_then(|held| held.held_out(side.min(CROP), CHOICE_SEED));
    let held_out = Trial::patches(&held_out.map_err(of_folder)?)?;
    let bytes = bytes(&train);
    Ok(Source { patches: config.patches(Arc::new(train)).map_err(of_folder)?, held_out, described, bytes })
}

fn bytes(set: &ImageSet) -> usize {
    set.images().iter().map(|image| size_of_val(image.data())).sum()
}

/// One of so many of `number` pictures is held out.
fn share(number: usize) -> usize {
    LEAST_SHARE.max(number.div_ceil(MOST_HELD_OUT))
}

fn warn_of_one() {
    tracing::warn!("one picture leaves none to hold out: it also chooses the best network");
}
