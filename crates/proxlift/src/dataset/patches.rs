//! Random patches with noise.

use super::{ImageSet, Pairs};
use crate::image::noise::{CameraNoise, add_gaussian_in_place, check_sigma, middle_level};
use crate::image::{Channels, Image, enlarge, symmetry::Symmetry};
use crate::random::{Purpose, below, stream, unit};
use crate::{Result, named::named, team::Ranks};
use rand_chacha::rand_core::Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::sync::Arc;

/// Which patches to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchSpec {
    /// Rows and columns of a patch.
    pub size: usize,
    /// How many.
    pub count: usize,
    /// Whether each patch is turned by one of the eight symmetries of the square, at random.
    pub augment: bool,
    /// The noise level, on the scale where white is 1.
    pub sigma: f32,
    /// Where the noise level of each patch is drawn from. The patch is then brought to the contrast at which its noise has the level `sigma`: what a network sees whose thresholds
    /// scale with the noise. Without it every patch has its own contrast.
    pub levels: Option<Levels>,
    /// Which noise is added. With that of a [camera](CameraNoise), patches are brought to the contrast at which its
    /// [`middle_level`] is about `sigma`. With one's own, the images are noisy themselves, of the level `sigma`, and the
    /// network learns from two versions of each that have still more noise; or they come in [`Pairs`].
    pub noise: PatchNoise,
    /// Places, symmetries and noise all follow from it.
    pub seed: u64,
}

/// Noise levels to draw from, large ones more often than small ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// The least and the largest one.
    pub range: [f32; 2],
    /// They are uniform in this power: [`Levels::FOR_SQUARES`] or [`Levels::FOR_NORMS`].
    pub power: f32,
}

impl Levels {
    /// The error that is left of noise of level `s`, as a share of `s^2`, falls about as `s^-0.75` (trained networks on
    /// photographs, `s` from 15/255 to 50/255: 0.8 to 0.9 in grey, 0.7 to 0.8 in colour). With this power, at equal contrast of the noise,
    /// large levels, which leave little error, come so much more often that all weigh about alike in decibels where errors count by
    /// their squares.
    pub const FOR_SQUARES: f32 = 0.75;
    /// The same where errors count by their norms.
    pub const FOR_NORMS: f32 = 0.5 * Self::FOR_SQUARES;

    fn draw(self, rng: &mut impl Rng) -> f32 {
        let uniform = (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
        let [least, most] = self.range.map(|level| level.powf(self.power));
        (least + (most - least) * uniform).powf(self.power.recip())
    }
}

named! {
    /// The noise that is added to patches.
    pub enum PatchNoise ("noise") {
        /// White and Gaussian.
        White = "white",
        /// That of a camera, another one for each patch: correlated, stronger where it is bright, through JPEG. Colour only.
        Camera = "camera",
        /// That of one's own noisy pictures.
        Own = "own",
    }
}

/// Patches of an [`ImageSet`]: patch `i` comes from image `i mod n`, at a random place.
#[derive(Clone, Debug)]
pub struct Patches {
    set: Arc<ImageSet>,
    /// The noisy versions of the set's images, where they are given.
    noisy: Option<Arc<ImageSet>>,
    spec: PatchSpec,
    /// The images that are large enough.
    usable: Vec<usize>,
}

/// Which draw of places and of noise a visit to a patch gets: 0 always for the same, an epoch's number for fresh ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The draw of the place and symmetry.
    pub place: u64,
    /// The draw of the noise.
    pub noise: u64,
}

impl Patches {
    /// The patches of `set`. Images smaller than a patch are passed over with a warning; it is an error if none is left.
    pub fn new(set: Arc<ImageSet>, spec: PatchSpec) -> Result<Self> {
        check_sigma(spec.sigma.into())?;
        refuse!(spec.noise == PatchNoise::Camera && set.channels() != Channels::Rgb =>
            "the noise of a camera is for colour pictures: give 3 channels");
        if let Some(Levels { range: [least, most], .. }) = spec.levels {
            refuse!(!(0.0 < least && least <= most && most.is_finite() && spec.sigma > 0.0) =>
                "noise levels from {least} to {most} cannot be drawn: they must be above zero and in order");
        }
        refuse!(spec.size == 0 || spec.count == 0 =>
            "{} patches of size {} are empty", spec.count, spec.size);
        let fits = |&i: &usize| {
            let image = &set.images()[i];
            image.height() >= spec.size && image.width() >= spec.size
        };
        let usable: Vec<usize> = (0..set.len()).filter(fits).collect();
        refuse!(usable.is_empty() =>
            "no image is as large as a patch of {0} x {0} pixels; choose smaller patches or larger images",
            spec.size);
        if usable.len() < set.len() {
            let small = set.len() - usable.len();
            tracing::warn!("{small} images are smaller than {0} x {0} pixels and give no patches", spec.size);
        }
        Ok(Self { set, noisy: None, spec, usable })
    }

    /// The patches of pairs, whose noise should have the level `spec.sigma`: see [`Standard`](crate::denoiser::Standard).
    ///
    /// # Errors
    /// As [`Patches::new`].
    pub fn of_pairs(pairs: Pairs, spec: PatchSpec) -> Result<Self> {
        let spec = PatchSpec { noise: PatchNoise::Own, levels: None, ..spec };
        Ok(Self { noisy: Some(Arc::new(pairs.noisy)), ..Self::new(Arc::new(pairs.partners), spec)? })
    }

    /// The first `count` of these patches, at least one.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let mut few = self.clone();
        few.spec.count = count.clamp(1, self.spec.count);
        few
    }

    /// One patch of each picture, `size` pixels wide, with noise and places of their own.
    ///
    /// # Errors
    /// As [`Patches::new`].
    pub fn held_out(&self, size: usize, seed: u64) -> Result<Self> {
        Self::new(
            self.set.clone(),
            PatchSpec { size, count: self.set.len(), augment: false, seed, ..self.spec },
        )
    }

    /// All patches as images, clean and noisy.
    ///
    /// # Errors
    /// When there are more than an image holds.
    pub fn images(&self) -> Result<(Vec<Image>, Vec<Image>)> {
        let (channels, size) = (self.channels(), self.spec.size);
        let pair = |i: usize| {
            let (mut x, mut z) = (vec![0.0; self.values()], vec![0.0; self.values()]);
            self.fill(&[i], Visit::default(), &mut x, &mut z);
            Ok((Image::new(channels, size, size, x)?, Image::new(channels, size, size, z)?))
        };
        (0..self.len()).map(pair).collect()
    }

    /// How many patches.
    pub fn len(&self) -> usize {
        self.spec.count
    }

    /// Never true: an empty set of patches is refused.
    pub fn is_empty(&self) -> bool {
        self.spec.count == 0
    }

    /// What was asked for.
    pub fn spec(&self) -> &PatchSpec {
        &self.spec
    }

    /// 1 or 3.
    pub fn channels(&self) -> usize {
        self.set.channels().count()
    }

    /// Values in one patch: channels x size x size.
    pub fn values(&self) -> usize {
        self.channels() * self.spec.size * self.spec.size
    }

    /// The image of the set that patch `i` comes from.
    fn picture(&self, i: usize) -> usize {
        self.usable[i % self.usable.len()]
    }

    /// The member of a team that has what belongs to patch `i`, counted from the first and on beyond the last.
    pub fn home(&self, i: usize) -> usize {
        self.set.home(self.picture(i))
    }

    /// Fills `x` with the clean patches `indices` and `z` with their noisy versions, patch after patch, each
    /// planar. A patch depends on its index and on `visit` alone.
    /// Panics if a buffer does not hold exactly the patches asked for.
    pub fn fill(&self, indices: &[usize], visit: Visit, x: &mut [f32], z: &mut [f32]) {
        let values = self.values();
        assert_eq!(x.len(), indices.len() * values, "the buffer for clean patches has the wrong size");
        assert_eq!(z.len(), x.len(), "the buffer for noisy patches has the wrong size");
        x.par_chunks_exact_mut(values).zip(z.par_chunks_exact_mut(values)).zip(indices).for_each(
            |((x, z), &i)| {
                self.cut(&self.set, i, visit.place, x);
                self.add_noise(i, visit, x, z);
            },
        );
    }

    /// The same in a team, for the batch of `indices` of which this member works on `own`: a patch is cut where its picture is.
    pub(crate) fn fill_among(
        &self,
        ranks: &Ranks,
        (indices, own): (&[usize], &[usize]),
        visit: Visit,
        x: &mut [f32],
        z: &mut [f32],
    ) {
        if ranks.size() == 1 || !self.set.is_shared() {
            return self.fill(own, visit, x, z);
        }
        let (values, sets) = (self.values(), [Some(&self.set), self.noisy.as_ref()]);
        let sets: Vec<_> = sets.into_iter().flatten().collect();
        let give = |place: usize, to: &mut Vec<f32>| {
            for set in &sets {
                let start = to.len();
                to.resize(start + values, 0.0);
                self.cut(set, indices[place], visit.place, &mut to[start..]);
            }
        };
        let take = |local: usize, patch: &[f32]| {
            let (clean, noisy) = patch.split_at(values);
            x[local * values..][..values].copy_from_slice(clean);
            z[local * values..][..noisy.len()].copy_from_slice(noisy);
        };
        ranks.to_places(sets.len() * values, indices.len(), |_| true, give, take);
        if self.noisy.is_some() {
            return;
        }
        let patches = x.par_chunks_exact_mut(values).zip(z.par_chunks_exact_mut(values)).zip(own);
        patches.for_each(|((x, z), &i)| self.add_noise(i, visit, x, z));
    }

    fn add_noise(&self, i: usize, visit: Visit, x: &mut [f32], z: &mut [f32]) {
        let mut rng = stream(self.spec.seed, Purpose::PatchNoise, visit.noise, i as u64);
        match (self.spec.noise, &self.noisy) {
            (PatchNoise::White, _) => self.add_white(&mut rng, x, z),
            (PatchNoise::Camera, _) => self.photograph(&mut rng, x, z),
            (PatchNoise::Own, Some(noisy)) => self.cut(noisy, i, visit.place, z),
            (PatchNoise::Own, None) => self.recorrupt(&mut rng, x, z),
        }
    }

    fn add_white(&self, rng: &mut impl Rng, x: &mut [f32], z: &mut [f32]) {
        if let Some(levels) = self.spec.levels {
            let contrast = self.spec.sigma / levels.draw(rng);
            x.iter_mut().for_each(|x| *x *= contrast);
        }
        z.copy_from_slice(x);
        add_gaussian_in_place(rng, self.spec.sigma, z);
    }

    /// Two versions of `x`, which is noisy itself, with independent noise: `z` for the network, whose noise gets the level
    /// `sigma`, and `x` as its target. With noise of variance `s^2` in `y` and more of it, `n`, those are `y + t n` and
    /// `y - n / t` (T. Pang, H. Zheng, Y. Quan, H. Ji, "Recorrupted-to-Recorrupted: unsupervised deep learning for image
    /// denoising", CVPR 2021).
    fn recorrupt(&self, rng: &mut impl Rng, x: &mut [f32], z: &mut [f32]) {
        let contrast = (1.0 + RECORRUPTION * RECORRUPTION).sqrt().recip();
        for (x, z) in x.iter_mut().zip(z) {
            let normal: f32 = StandardNormal.sample(rng);
            let (y, n) = (*x * contrast, self.spec.sigma * contrast * normal);
            *z = y + RECORRUPTION * n;
            *x = y - n / RECORRUPTION;
        }
    }

    /// A camera's picture `z` of `x`, both at the contrast at which the noise has about the level `sigma`. A user's level is
    /// an estimate, and one for a picture in which the noise varies: so it varies here.
    fn photograph(&self, rng: &mut impl Rng, x: &mut [f32], z: &mut [f32]) {
        let size = self.spec.size;
        let factor = enlargement(rng);
        x.chunks_exact_mut(size * size).for_each(|plane| enlarge(plane, (size, size), factor));
        z.copy_from_slice(x);
        CameraNoise::draw(rng).add(rng, (size, size), z);
        let noise: Vec<f32> = z.iter().zip(&*x).map(|(z, x)| z - x).collect();
        let off: f32 = StandardNormal.sample(rng);
        let level = middle_level(&noise, (size, size)).max(LEAST_LEVEL) * (LEVEL_ERROR * off).exp();
        let contrast = self.spec.sigma / level;
        x.iter_mut().chain(z).for_each(|v| *v *= contrast);
    }

    /// Cuts patch `i` out of the set, or of the noisy versions.
    fn cut(&self, set: &ImageSet, i: usize, draw: u64, x: &mut [f32]) {
        let image = &set.images()[self.picture(i)];
        let size = self.spec.size;
        let mut rng = stream(self.spec.seed, Purpose::PatchPlace, draw, i as u64);
        let top = below(&mut rng, image.height() - size + 1);
        let left = below(&mut rng, image.width() - size + 1);
        let turn = Symmetry::nth(if self.spec.augment { below(&mut rng, 8) } else { 0 });
        let mut window = Vec::new();
        for (c, plane) in x.chunks_exact_mut(size * size).enumerate() {
            if self.set.is_shared() {
                window.resize(size * size, 0.0);
                set.window((self.picture(i), c), (top, left), size, &mut window);
                turn.copy(&window, size, plane, size);
            } else {
                turn.copy(&image.plane(c)[top * image.width() + left..], image.width(), plane, size);
            }
        }
    }
}

/// Noise of a camera counts as this level at least: half a grey level of 8 bits.
const LEAST_LEVEL: f32 = 0.5 / 255.0;
/// The most that pictures are enlarged by, beside 1.
const MOST_ENLARGED: f32 = 1.5;
/// The noise that is added to a picture that is noisy itself, as a share of its own.
const RECORRUPTION: f32 = 0.5;
/// How far a level is off, as the standard deviation of its logarithm.
const LEVEL_ERROR: f32 = 0.25;

/// What a picture is enlarged by, so that it is as little sharp as those of cameras: by nothing in every third.
fn enlargement(rng: &mut impl Rng) -> f32 {
    1.0 + MOST_ENLARGED * (1.5 * unit(rng) - 0.5).max(0.0)
}
