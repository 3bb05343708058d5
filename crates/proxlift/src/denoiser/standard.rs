//! Pictures at the contrast at which a network for one noise level sees them.

use super::noise::{Noise, sample};
use super::stabiliser::{Counts, Stabiliser};
use crate::Result;
use crate::dataset::{ImageSet, Pairs};
use crate::image::Image;
use crate::noise::{NoiseModel, white_level};
use rayon::prelude::*;

/// What brings a picture to the contrast at which its noise has a given level, after the Anscombe transform if it is
/// that of counts: what a network trained for that level sees when a [`Denoiser`](super::Denoiser) uses it.
pub struct Standard {
    /// For counts; with the level of the picture at high frequencies, where a clean partner has less.
    stabiliser: Option<(Stabiliser, f64)>,
    scale: f64,
}

/// Noise counts as this share of the picture's range at least.
const LEAST: f64 = 0.5 / 255.0;
/// A partner whose level at high frequencies is below this share of the picture's is clean.
const CLEAN: f64 = 0.4;

impl Standard {
    /// For a noisy picture: its noise, which is estimated, gets the level `sigma`.
    ///
    /// # Errors
    /// When its counts have no Anscombe transform.
    pub fn of(noisy: &Image, sigma: f64) -> Result<Self> {
        let sample = sample(noisy);
        let white_is_one = sample.data().iter().all(|v| (0.0..=1.0).contains(v));
        let noise = Noise::estimate(&sample, white_is_one, 1.0, None);
        let stabiliser = stabiliser(noise.model.as_ref(), Counts::default(), &sample, 1.0)?;
        let level = stabiliser.as_ref().map_or(noise.sigma.max(LEAST * noise.range), Stabiliser::sigma);
        let stabiliser = stabiliser.map(|stabiliser| (stabiliser, white_level(&sample)));
        Ok(Self { stabiliser, scale: sigma / level })
    }

    /// The noisy picture, or one with other noise of the same kind.
    pub fn noisy(&self, image: Image) -> Image {
        self.scaled(match &self.stabiliser {
            Some((stabiliser, _)) => stabiliser.forward(image),
            None => image,
        })
    }

    /// Its partner, clean or noisy: a clean value of counts becomes the mean of what its noisy versions become.
    pub fn partner(&self, image: Image) -> Image {
        match &self.stabiliser {
            Some((stabiliser, high)) if white_level(&image) < CLEAN * high => {
                self.scaled(stabiliser.expected(image))
            }
            _ => self.noisy(image),
        }
    }

    /// All pairs at the contrast at which the noise of each has the level `sigma`.
    ///
    /// # Errors
    /// As [`Standard::of`].
    pub fn pairs(pairs: &Pairs, sigma: f64) -> Result<Pairs> {
        let images = pairs.noisy.images().par_iter().zip(pairs.partners.images());
        let images: Result<Vec<(Image, Image)>> = images
            .map(|(noisy, partner)| {
                if noisy.data().is_empty() {
                    // Another member of the team has it.
                    return Ok((noisy.clone(), partner.clone()));
                }
                let standard = Self::of(noisy, sigma)?;
                Ok((standard.noisy(noisy.clone()), standard.partner(partner.clone())))
            })
            .collect();
        let (noisy, partners): (Vec<_>, Vec<_>) = images?.into_iter().unzip();
        Ok(Pairs { noisy: pairs.noisy.with_images(noisy), partners: pairs.partners.with_images(partners) })
    }

    /// All noisy pictures of a set, in the same way.
    ///
    /// # Errors
    /// As [`Standard::of`].
    pub fn all(set: &ImageSet, sigma: f64) -> Result<ImageSet> {
        let images = set.images().par_iter().map(|noisy| {
            if noisy.data().is_empty() {
                return Ok(noisy.clone());
            }
            let standard = Self::of(noisy, sigma)?.noisy(noisy.clone());
            standard.check_finite().map(|()| standard)
        });
        Ok(set.with_images(images.collect::<Result<_>>()?))
    }

    fn scaled(&self, mut image: Image) -> Image {
        image.data_mut().iter_mut().for_each(|v| *v = (self.scale * f64::from(*v)) as f32);
        image
    }
}

/// What makes counts as noisy everywhere, if the noise is that of counts; the file's unit is `unit`.
pub(super) fn stabiliser(
    model: Option<&NoiseModel>,
    counts: Counts,
    sample: &Image,
    unit: f64,
) -> Result<Option<Stabiliser>> {
    let Some(model) = model.filter(|model| model.is_counted()) else { return Ok(None) };
    if counts.gain.is_none() && model.sigma == 0.0 {
        // A blank picture: there is nothing to stabilise.
        return Ok(None);
    }
    let transforms = model.variances.iter().map(|variance| counts.transform(unit, variance.a, variance.b));
    Ok(Some(Stabiliser::new(transforms.collect::<Result<_>>()?, sample)))
}
