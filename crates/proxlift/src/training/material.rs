//! What a training sees: patches to learn from, and held-out pictures that choose the best network.

use super::{Config, Validation};
use crate::dataset::{ImageSet, Pairs, PatchNoise, Patches};
use crate::denoiser::Standard;
use crate::image::Channels;
use crate::{Error, Result};
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
/// The seed of the noise on held-out pictures.
const CHOICE_SEED: u64 = 7;

/// The pictures of a training.
pub enum Source {
    /// Painted ones.
    BuiltIn,
    /// Clean pictures, to which noise is added.
    Clean(ImageSet),
    /// Noisy pictures and their partners.
    Pairs(Pairs),
    /// Noisy pictures alone.
    Noisy(ImageSet),
}

/// What a training sees.
pub struct Material {
    /// What it learns from.
    pub patches: Patches,
    /// What chooses the best network.
    pub validation: Validation,
    /// Pictures that patches come from.
    pub pictures: usize,
    /// Pictures that were held out.
    pub held_out: usize,
    /// The side of painted pictures.
    pub painted: Option<usize>,
    /// Bytes of all pictures in memory.
    pub bytes: usize,
}

impl Config {
    /// What this training sees of these pictures; settles the number of patches, where it is open.
    /// Fails when there is not enough memory for the training.
    pub fn material(&mut self, source: Source) -> Result<Material> {
        let count = self.settings.count.unwrap_or(BUILT_IN);
        crate::memory::check("this training", self.memory(count))
            .map_err(|e| invalid!("{e}: give a smaller --batch, --patch, --features or --count"))?;
        let material = match source {
            Source::BuiltIn => self.built_in()?,
            Source::Clean(set) => {
                let (train, held) = hold_out(set, ImageSet::len, ImageSet::hold_out)?;
                self.clean(train, &held.whole()?)?
            }
            Source::Pairs(pairs) => {
                let (train, held) = hold_out(pairs, |pairs| pairs.noisy.len(), Pairs::hold_out)?;
                let held = held.whole()?;
                Material {
                    patches: self.patches_of_pairs(&train)?,
                    validation: Validation::pairs(&held),
                    pictures: train.noisy.len(),
                    held_out: held.noisy.len(),
                    painted: None,
                    bytes: 2 * bytes(&train.noisy),
                }
            }
            Source::Noisy(set) => self.noisy(set)?,
        };
        self.settings.count = Some(material.patches.len());
        Ok(material)
    }

    fn built_in(&self) -> Result<Material> {
        refuse!(self.patch > BUILT_IN_PATCH =>
            "--patch is {}, but the built-in pictures are for patches up to {BUILT_IN_PATCH}: give --data", self.patch);
        let side = BUILT_IN_SIDE.max(2 * self.patch);
        let channels = if self.architecture.colours() == 1 { Channels::Grey } else { Channels::Rgb };
        // Picture i is the same in sets of any size, and patch i comes from picture i.
        let number = BUILT_IN.min(self.settings.count.unwrap_or(BUILT_IN));
        let train = ImageSet::embedded_train(number, side, channels, 0)?;
        let choice = ImageSet::embedded_test(CHOICE.0, CHOICE.1, channels, CHOICE.2)?;
        Ok(Material { painted: Some(side), ..self.clean(train, &choice)? })
    }

    fn clean(&self, train: ImageSet, held: &ImageSet) -> Result<Material> {
        let validation = match self.settings.noise {
            Some(PatchNoise::Camera) => Validation::camera(held, CHOICE_SEED),
            _ => Validation::white(held, CROP, self.sigma, CHOICE_SEED)?,
        };
        let (pictures, held_out, bytes) = (train.len(), held.len(), bytes(&train));
        let patches = self.patches(Arc::new(train))?;
        Ok(Material { patches, validation, pictures, held_out, painted: None, bytes })
    }

    fn noisy(&self, set: ImageSet) -> Result<Material> {
        let (train, held) = hold_out(set, ImageSet::len, ImageSet::hold_out)?;
        let (train, held) = (Standard::all(&train, self.sigma)?, Standard::all(&held.whole()?, self.sigma)?);
        let sides = held.images().iter().map(|image| image.height().min(image.width()));
        let side = sides.min().unwrap_or(CROP).min(CROP);
        let (pictures, held_out, bytes) = (train.len(), held.len(), bytes(&train));
        let held = self.patches(Arc::new(held)).and_then(|held| held.held_out(side, CHOICE_SEED))?;
        let patches = self.patches(Arc::new(train))?;
        let validation = Validation::patches(&held)?;
        Ok(Material { patches, validation, pictures, held_out, painted: None, bytes })
    }
}

/// What is learned from, and what is held out; of one picture nothing can be.
fn hold_out<S: Clone>(
    set: S,
    len: impl Fn(&S) -> usize,
    split: impl Fn(S, usize) -> Result<(S, S)>,
) -> Result<(S, S)> {
    match len(&set) {
        0 => Err(Error::invalid("a training needs at least one picture")),
        1 => {
            tracing::warn!("one picture leaves none to hold out: it also chooses the best network");
            Ok((set.clone(), set))
        }
        number => split(set, LEAST_SHARE.max(number.div_ceil(MOST_HELD_OUT))),
    }
}

fn bytes(set: &ImageSet) -> usize {
    set.images().iter().map(|image| size_of_val(image.data())).sum()
}
