//! Random patches with noise.

use super::ImageSet;
use crate::image::noise::{add_gaussian_in_place, check_sigma};
use crate::random::{Purpose, below, stream};
use crate::{Result, image::symmetry::Symmetry};
use rand_chacha::rand_core::Rng;
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
    /// Where the noise level of each patch is drawn from, between these two, large ones more often. The patch is
    /// then brought to the contrast at which its noise has the level `sigma`: what a network sees whose thresholds
    /// scale with the noise. Without it every patch has its own contrast.
    pub levels: Option<[f32; 2]>,
    /// Places, symmetries and noise all follow from it.
    pub seed: u64,
}

/// Patches of an [`ImageSet`]: patch `i` comes from image `i mod n`, at a random place.
#[derive(Clone, Debug)]
pub struct Patches {
    set: Arc<ImageSet>,
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
        if let Some([least, most]) = spec.levels {
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
        Ok(Self { set, spec, usable })
    }

    /// The first `count` of these patches, at least one.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let mut few = self.clone();
        few.spec.count = count.clamp(1, self.spec.count);
        few
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

    /// Fills `x` with the clean patches `indices` and `z` with their noisy versions, patch after patch, each
    /// planar. A patch depends on its index and on `visit` alone.
    /// Panics if a buffer does not hold exactly the patches asked for.
    pub fn fill(&self, indices: &[usize], visit: Visit, x: &mut [f32], z: &mut [f32]) {
        let values = self.values();
        assert_eq!(x.len(), indices.len() * values, "the buffer for clean patches has the wrong size");
        assert_eq!(z.len(), x.len(), "the buffer for noisy patches has the wrong size");
        x.par_chunks_exact_mut(values).zip(z.par_chunks_exact_mut(values)).zip(indices).for_each(
            |((x, z), &i)| {
                self.cut(i, visit.place, x);
                let mut rng = stream(self.spec.seed, Purpose::PatchNoise, visit.noise, i as u64);
                if let Some(levels) = self.spec.levels {
                    let contrast = self.spec.sigma / level(&mut rng, levels);
                    x.iter_mut().for_each(|x| *x *= contrast);
                }
                z.copy_from_slice(x);
                add_gaussian_in_place(&mut rng, self.spec.sigma, z);
            },
        );
    }

    fn cut(&self, i: usize, draw: u64, x: &mut [f32]) {
        let image = &self.set.images()[self.usable[i % self.usable.len()]];
        let size = self.spec.size;
        let mut rng = stream(self.spec.seed, Purpose::PatchPlace, draw, i as u64);
        let top = below(&mut rng, image.height() - size + 1);
        let left = below(&mut rng, image.width() - size + 1);
        let turn = Symmetry::nth(if self.spec.augment { below(&mut rng, 8) } else { 0 });
        for (c, plane) in x.chunks_exact_mut(size * size).enumerate() {
            turn.copy(&image.plane(c)[top * image.width() + left..], image.width(), plane, size);
        }
    }
}

/// The error that is left of noise of level `s`, as a share of `s^2`, falls about as `s^-EQUALISER` (trained networks on
/// photographs, `s` from 15/255 to 50/255: 0.8 to 0.9 in grey, 0.7 to 0.8 in colour).
const EQUALISER: f32 = 0.75;

/// A noise level between two, uniform in its power [`EQUALISER`]: at equal contrast of the noise, large levels, which
/// leave little error, come so much more often that all levels weigh about alike in decibels.
fn level(rng: &mut impl Rng, levels: [f32; 2]) -> f32 {
    let uniform = (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
    let [least, most] = levels.map(|level| level.powf(EQUALISER));
    (least + (most - least) * uniform).powf(EQUALISER.recip())
}
