//! What a training sees: pictures to train on, held-out ones that choose the best network, and the test set.

use crate::files::short_name;
use crate::scores::{Scores, score};
use crate::test_set::{LEAST_SIDE, TestSet, check_sides};
use proxlift::dataset::{ImageSet, PatchNoise, Patches};
use proxlift::evaluation::{Peak, Summary, mean_psnr, ssim};
use proxlift::image::noise::add_gaussian;
use proxlift::image::{Channels, Image};
use proxlift::{Denoiser, Error, Result, training::Config};
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
/// Held-out pictures are cropped to this side.
const CROP: usize = 128;
/// The seed of the noise on the test set, that of `proxlift evaluate`, and on held-out pictures.
pub const TEST_SEED: u64 = 0;
const CHOICE_SEED: u64 = 7;

pub struct Data {
    pub patches: Patches,
    /// What chooses the best network.
    pub validation: Validation,
    /// What is scored at the end.
    pub test: ImageSet,
    /// The training data and the test set, in a line each.
    pub described: String,
    pub test_described: String,
    pub bytes: usize,
}

impl Data {
    /// Loads or paints everything; settles the count of patches in `config`.
    pub fn load(config: &mut Config) -> Result<Self> {
        let channels = if config.architecture.channels == 1 { Channels::Grey } else { Channels::Rgb };
        let settings = config.settings.clone();
        let test = TestSet::load(settings.test.as_deref(), channels)?.set;
        check_sides(&test, LEAST_SIDE, "a test picture")?;
        let test_described = match &settings.test {
            Some(folder) => format!("{} pictures of {}", test.len(), folder.display()),
            None => format!("{} built-in pictures", test.len()),
        };
        let (train, validation, described) = match &settings.data {
            Some(folder) => from_folder(folder, channels, config)?,
            None => built_in(config, channels)?,
        };
        let bytes = train.images().iter().map(|image| size_of_val(image.data())).sum();
        let of_data = |e: Error| match &settings.data {
            Some(folder) => Error::file(folder, e.to_string()),
            None => e,
        };
        let patches = config.patches(Arc::new(train)).map_err(of_data)?;
        config.settings.count = Some(patches.len());
        Ok(Self { patches, validation, test, described, test_described, bytes })
    }

    pub fn score_test(&self, denoiser: &Denoiser, sigma: f64) -> Result<Scores> {
        score(denoiser, &self.test, self.test.len(), sigma, TEST_SEED)
    }
}

fn built_in(config: &Config, channels: Channels) -> Result<(ImageSet, Validation, String)> {
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
    Ok((train, Validation::new(choice, config)?, described))
}

fn from_folder(folder: &Path, channels: Channels, config: &Config) -> Result<(ImageSet, Validation, String)> {
    let set = ImageSet::from_folder(folder, channels)?;
    let number = set.len();
    let name = short_name(folder);
    if number == 1 {
        tracing::warn!("one picture leaves none to hold out: it also chooses the best network");
        let validation = Validation::new(set.clone(), config)?;
        return Ok((set, validation, format!("1 picture of {name}")));
    }
    let (train, held) = set.hold_out(LEAST_SHARE.max(number.div_ceil(MOST_HELD_OUT)))?;
    let described = format!("{} pictures of {name}, {} held out", train.len(), held.len());
    Ok((train, Validation::new(held, config)?, described))
}

pub struct Validation {
    clean: Vec<Image>,
    noisy: Vec<Image>,
}

impl Validation {
    /// Pictures as patches have them: with the noise that is trained for.
    fn new(set: ImageSet, config: &Config) -> Result<Self> {
        if config.settings.noise == Some(PatchNoise::Camera) {
            let least = set.images().iter().map(|image| image.height().min(image.width())).min();
            let size = least.map_or(CROP, |side| side.min(CROP));
            let (clean, noisy) = config.patches(Arc::new(set))?.held_out(size, CHOICE_SEED)?.images()?;
            return Ok(Self { clean, noisy });
        }
        let clean = set.images().iter().map(|image| image.centre(CROP)).collect::<Vec<_>>();
        let noisy = clean.iter().enumerate();
        let noisy = noisy.map(|(i, image)| add_gaussian(image, config.sigma as f32, CHOICE_SEED, i as u64));
        Ok(Self { noisy: noisy.collect::<Result<_>>()?, clean })
    }

    /// Mean PSNR, and mean SSIM where the pictures are large enough for it.
    pub fn score(&self, denoiser: &Denoiser) -> Result<(f64, Option<f64>)> {
        let estimates = denoiser.denoise_all(&self.noisy)?;
        let ssim = self.clean.iter().zip(&estimates).map(|(a, b)| ssim(a, b, Peak::ONE));
        let ssim = ssim.collect::<Result<Vec<_>>>().and_then(|values| Summary::of(&values)).ok();
        Ok((mean_psnr(&self.clean, &estimates)?, ssim.map(|summary| summary.mean)))
    }
}
