//! Noisy pictures with what they should become: what scores a network while it is trained, and at the end.

use crate::dataset::{ImageSet, Pairs, Patches};
use crate::evaluation::{Peak, Summary, psnr, ssim};
use crate::image::noise::{CameraNoise, add_gaussian};
use crate::image::{Image, enlarge};
use crate::random::{Purpose, stream};
use crate::{Denoiser, Result};

/// Pictures with noise of cameras, or of one's own, are cropped to this side: the noise has to be found in them.
const CROP: usize = 256;
/// Camera pictures are enlarged by this factor.
const ENLARGED: f32 = 1.5;

/// Noisy pictures, and what they should become.
pub struct Validation {
    /// What they should become.
    pub clean: Vec<Image>,
    /// The noisy pictures.
    pub noisy: Vec<Image>,
    /// The noise level, where it is known; else it is estimated, as it will be in use.
    sigma: Option<f64>,
}

/// Mean scores, with the deviation of the PSNR; no SSIM where pictures are too small for it.
pub struct ValidationScores {
    /// At peak 1.
    pub psnr: Summary,
    /// At peak 1.
    pub ssim: Option<f64>,
}

impl Validation {
    /// Pictures of `set`, cropped to `side`, with white noise.
    pub fn white(set: &ImageSet, side: usize, sigma: f64, seed: u64) -> Result<Self> {
        let clean: Vec<Image> = set.images().iter().map(|image| image.centre(side)).collect();
        let noisy = clean.iter().enumerate();
        let noisy = noisy.map(|(i, image)| add_gaussian(image, sigma as f32, seed, i as u64));
        Ok(Self { noisy: noisy.collect::<Result<_>>()?, clean, sigma: Some(sigma) })
    }

    /// Colour pictures of `set` as cameras would take them.
    pub fn camera(set: &ImageSet, seed: u64) -> Self {
        let pair = |(i, image): (usize, &Image)| {
            let mut rng = stream(seed, Purpose::ImageNoise, 0, i as u64);
            let mut clean = image.centre(CROP);
            let size = (clean.height(), clean.width());
            clean
                .data_mut()
                .chunks_exact_mut(size.0 * size.1)
                .for_each(|plane| enlarge(plane, size, ENLARGED));
            let noisy = CameraNoise::draw(&mut rng).photograph(&mut rng, &clean);
            (clean, noisy)
        };
        let (clean, noisy) = set.images().iter().enumerate().map(pair).unzip();
        Self { clean, noisy, sigma: None }
    }

    /// Pairs, cropped.
    pub fn pairs(pairs: &Pairs) -> Self {
        let cropped = |set: &ImageSet| set.images().iter().map(|image| image.centre(CROP)).collect();
        Self { clean: cropped(&pairs.partners), noisy: cropped(&pairs.noisy), sigma: None }
    }

    /// Patches as the training sees them.
    pub fn patches(patches: &Patches) -> Result<Self> {
        let (clean, noisy) = patches.images()?;
        Ok(Self { clean, noisy, sigma: Some(patches.spec().sigma.into()) })
    }

    /// The number of pictures.
    pub fn len(&self) -> usize {
        self.noisy.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.noisy.is_empty()
    }

    /// The noise level, where it is known.
    pub fn sigma(&self) -> Option<f64> {
        self.sigma
    }

    /// The denoiser, set to these pictures' noise.
    pub fn set(&self, denoiser: Denoiser) -> Denoiser {
        match self.sigma {
            None => denoiser,
            Some(0.0) => denoiser.as_trained(),
            Some(sigma) => denoiser.sigma(sigma),
        }
    }

    /// The mean scores of what the denoiser makes of them.
    pub fn score(&self, denoiser: &Denoiser) -> Result<ValidationScores> {
        let denoiser = self.set(denoiser.clone());
        self.scores(&denoiser.denoise_all(&self.noisy)?)
    }

    /// Those of the noisy pictures themselves.
    pub fn score_noisy(&self) -> Result<ValidationScores> {
        self.scores(&self.noisy)
    }

    fn scores(&self, estimates: &[Image]) -> Result<ValidationScores> {
        let both = || self.clean.iter().zip(estimates);
        let psnrs = both().map(|(a, b)| psnr(a, b, Peak::ONE)).collect::<Result<Vec<_>>>()?;
        let ssims = both().map(|(a, b)| ssim(a, b, Peak::ONE)).collect::<Result<Vec<_>>>();
        let ssim = ssims.and_then(|values| Summary::of(&values)).ok().map(|summary| summary.mean);
        Ok(ValidationScores { psnr: Summary::of(&psnrs)?, ssim })
    }
}
