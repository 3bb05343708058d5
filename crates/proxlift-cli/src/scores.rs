//! Scores of a denoiser on clean pictures, and how they are shown.

use crate::output::Progress;
use crate::test_set::TestSet;
use proxlift::evaluation::{self, Summary};
use proxlift::image::noise::add_gaussian;
use proxlift::{Denoiser, Error, Result, image::Image};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// The scores of one picture.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Score {
    /// The picture's file.
    pub image: String,
    /// At peak 1.
    pub noisy_psnr: f64,
    pub noisy_ssim: f64,
    pub psnr: f64,
    pub ssim: f64,
    /// At the peak of the clean picture, unless that is black.
    pub noisy_psnr_image_peak: Option<f64>,
    pub psnr_image_peak: Option<f64>,
}

/// The scores of a set.
#[derive(Clone, Debug)]
pub struct Scores {
    pub per_image: Vec<Score>,
    /// The noise that was added.
    pub sigma: f64,
    pub seed: u64,
    /// Time spent denoising.
    pub seconds: f64,
    /// Pixels denoised, not counting channels.
    pub pixels: usize,
}

/// Adds noise of level `sigma` to the first `count` pictures of `set`, denoises and scores them, a few at a time.
///
/// Picture `i` has the noise of stream `i` of `seed`, also not clipped. Threads are those of the pool that this is
/// called in.
pub fn score(denoiser: &Denoiser, set: &TestSet, count: usize, sigma: f64, seed: u64) -> Result<Scores> {
    let progress = Progress::new(count, "evaluating");
    let mut scores = Scores { per_image: Vec::new(), sigma, seed, seconds: 0.0, pixels: 0 };
    for few in set.few_at_a_time(count) {
        let clean = set.read(few.clone())?;
        let noisy = noisy(&clean, few.start, sigma, seed)?;
        let start = Instant::now();
        let estimates = denoiser.denoise_all(&noisy)?;
        scores.seconds += start.elapsed().as_secs_f64();
        for (at, i) in few.enumerate() {
            let score = |estimate: &Image| score_picture(&set.names()[i], &clean[at], estimate);
            let (noisy, estimate) = (score(&noisy[at])?, score(&estimates[at])?);
            scores.per_image.push(Score {
                image: set.names()[i].display().to_string(),
                noisy_psnr: noisy.psnr,
                noisy_ssim: noisy.ssim,
                psnr: estimate.psnr,
                ssim: estimate.ssim,
                noisy_psnr_image_peak: noisy.psnr_own_peak,
                psnr_image_peak: estimate.psnr_own_peak,
            });
            scores.pixels += clean[at].pixels();
            progress.step();
        }
    }
    Ok(scores)
}

/// Some pictures of a set, from the number `first` on, with their noise.
pub fn noisy(clean: &[Image], first: usize, sigma: f64, seed: u64) -> Result<Vec<Image>> {
    let pictures = clean.par_iter().enumerate();
    pictures.map(|(i, clean)| add_gaussian(clean, sigma as f32, seed, (first + i) as u64)).collect()
}

/// The scores of an estimate of a picture.
pub fn score_picture(name: &Path, clean: &Image, estimate: &Image) -> Result<evaluation::Score> {
    evaluation::Score::of(clean, estimate).map_err(|e| Error::file(name, e.to_string()))
}

/// Mean and deviation; of no values, not a number.
pub fn summary(values: impl Iterator<Item = f64>) -> Summary {
    let values: Vec<f64> = values.collect();
    Summary::of(&values).unwrap_or(Summary { count: 0, mean: f64::NAN, std: 0.0 })
}

impl Scores {
    /// Mean and standard deviation of one of the scores, over the pictures that have it.
    pub fn summary(&self, of: impl Fn(&Score) -> Option<f64>) -> Summary {
        summary(self.per_image.iter().filter_map(of))
    }

    /// The mean PSNR and SSIM.
    pub fn means(&self) -> (f64, f64) {
        (self.summary(|s| Some(s.psnr)).mean, self.summary(|s| Some(s.ssim)).mean)
    }

    /// Those of the noisy pictures.
    pub fn noisy_means(&self) -> (f64, f64) {
        (self.summary(|s| Some(s.noisy_psnr)).mean, self.summary(|s| Some(s.noisy_ssim)).mean)
    }

    /// Megapixels denoised in a second.
    pub fn megapixels_per_second(&self) -> f64 {
        self.pixels as f64 / self.seconds / 1e6
    }

    /// The table for people.
    pub fn table(&self) -> String {
        let row = |name: &str, of: [fn(&Score) -> Option<f64>; 3]| {
            let [psnr, ssim, own] = of.map(|of| self.summary(of));
            let (psnr, ssim, own) = (format!("{psnr:.2}"), format!("{ssim:.4}"), format!("{own:.2}"));
            format!("{name:<10} {psnr:>16} {ssim:>18} {own:>16}")
        };
        [
            format!("{:<10} {:>16} {:>18} {:>16}", "", "PSNR (peak 1)", "SSIM", "PSNR (own peak)"),
            row("noisy", [|s| Some(s.noisy_psnr), |s| Some(s.noisy_ssim), |s| s.noisy_psnr_image_peak]),
            row("denoised", [|s| Some(s.psnr), |s| Some(s.ssim), |s| s.psnr_image_peak]),
        ]
        .join("\n")
    }

    /// One line for each picture.
    pub fn per_image_table(&self) -> String {
        let head = format!("{:>10} {:>10} {:>10} {:>10}  picture", "noisy dB", "dB", "noisy SSIM", "SSIM");
        let rows = self.per_image.iter().map(|s| {
            let Score { noisy_psnr, psnr, noisy_ssim, ssim, image, .. } = s;
            format!("{noisy_psnr:>10.2} {psnr:>10.2} {noisy_ssim:>10.4} {ssim:>10.4}  {image}")
        });
        std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
    }

    /// The object for programs, with all pictures if `verbose`; a score that is infinite becomes `null`.
    pub fn to_json(&self, verbose: bool) -> Value {
        let (psnr, ssim) = (self.summary(|s| Some(s.psnr)), self.summary(|s| Some(s.ssim)));
        let (noisy_psnr, noisy_ssim) = self.noisy_means();
        let mut object = json!({
            "images": self.per_image.len(),
            "sigma": self.sigma,
            "seed": self.seed,
            "noisy_psnr": noisy_psnr,
            "noisy_ssim": noisy_ssim,
            "psnr": psnr.mean,
            "psnr_std": psnr.std,
            "ssim": ssim.mean,
            "ssim_std": ssim.std,
            "noisy_psnr_image_peak": self.summary(|s| s.noisy_psnr_image_peak).mean,
            "psnr_image_peak": self.summary(|s| s.psnr_image_peak).mean,
            "seconds": self.seconds,
            "megapixels_per_second": self.megapixels_per_second(),
        });
        if verbose {
            object["per_image"] = json!(self.per_image);
        }
        object
    }
}
