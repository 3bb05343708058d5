//! `proxlift evaluate`: how well noise is removed from clean pictures.

mod curve;
mod export;

use crate::files::{check_extension, check_free};
use crate::flags::{DEFAULT_SIGMA, Levels, levels, pool};
use crate::test_set::{TestSet, channels};
use crate::{choice::Choice, output, scores::score};
use anyhow::Result;
use proxlift::{Denoiser, Error, image::Channels};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Add noise to clean pictures, remove it, and print PSNR and SSIM.
///
/// The noise is white and Gaussian, the same for the same seed on any machine, and not clipped; nor is the output,
/// unless --clip is given. PSNR is given at peak 1 and at the largest value of each clean picture. SSIM uses the
/// original 11 x 11 Gaussian window.
///
/// With several noise levels, the output is a table with one line per level.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/evaluate.txt").trim_end())]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// A folder of clean pictures [default: 12 built-in procedural pictures of 128 x 128 pixels]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The noise level, where white is 1, or several: 0.05,25/255 or FROM:TO:STEP [default: the level that the model was
    /// trained for; 0.1 for tv]
    #[arg(long, value_name = "S", value_parser = levels, allow_hyphen_values = true)]
    sigma: Option<Levels>,
    /// Score total variation too
    #[arg(long, conflicts_with = "method")]
    tv: bool,
    /// Plot the scores against the noise level
    #[arg(long, value_name = "SVG")]
    plot: Option<PathBuf>,
    /// Write the noisy pictures for other programs, as float TIFF, neither rounded nor clipped, named like the clean
    /// ones
    #[arg(long, value_name = "DIR")]
    export_noisy: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
    /// Let the denoiser find the noise in each picture instead of telling it the level, as `proxlift denoise` does
    #[arg(long, conflicts_with = "as_trained")]
    estimate: bool,
    /// Keep the model's thresholds as trained instead of adapting them to sigma
    #[arg(long, conflicts_with = "method")]
    as_trained: bool,
    /// The seed of the noise
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only the first N pictures
    #[arg(long, value_name = "N")]
    limit: Option<std::num::NonZeroUsize>,
    /// Score colour pictures in grey [default: as a model file requires, otherwise as the first picture is]
    #[arg(long)]
    grey: bool,
    /// Clip the output to [0, 1] before it is scored
    #[arg(long)]
    clip: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Also print the scores of each picture
    #[arg(long, short)]
    verbose: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    check(arguments)?;
    let denoiser = arguments.choice.load()?.clipped(arguments.clip);
    let pool = pool(arguments.threads)?;
    pool.install(|| {
        let needed: Vec<Channels> = denoiser.channels().into_iter().collect();
        let channels = channels(&needed, arguments.grey, arguments.data.as_deref())?;
        let trained = denoiser.trained_sigma(channels).unwrap_or(DEFAULT_SIGMA);
        let levels = arguments.sigma.as_ref().map_or_else(|| vec![trained], |levels| levels.0.clone());
        let pictures = TestSet::load(arguments.data.as_deref(), channels)?;
        if let Some(folder) = &arguments.export_noisy {
            let count = arguments.count(&pictures);
            export::export(&pictures, count, levels[0], arguments.seed, folder, arguments.overwrite)?;
        }
        if levels.len() > 1 || arguments.tv || arguments.plot.is_some() {
            return curve::run(arguments, &denoiser, &pictures, &levels);
        }
        one_level(arguments, &arguments.at(&denoiser, levels[0]), &pictures, levels[0])
    })
}

fn check(arguments: &Arguments) -> Result<()> {
    if arguments.export_noisy.is_some() && arguments.sigma.as_ref().is_some_and(|levels| levels.0.len() > 1) {
        let reason = "--export-noisy writes the pictures of one noise level: give --sigma one value";
        return Err(Error::invalid(reason).into());
    }
    if let Some(plot) = &arguments.plot {
        check_extension(plot, &["svg"])?;
        check_free(plot, arguments.overwrite)?;
    }
    Ok(())
}

impl Arguments {
    /// The denoiser, for noise of level `sigma`; a network as it is, if that was asked for or no level was.
    fn at(&self, denoiser: &Denoiser, sigma: f64) -> Denoiser {
        if self.estimate {
            return denoiser.clone();
        }
        let as_trained = self.as_trained || self.sigma.is_none() && denoiser.is_parallel();
        if as_trained { denoiser.clone().as_trained() } else { denoiser.clone().sigma(sigma) }
    }

    fn count(&self, pictures: &TestSet) -> usize {
        self.limit.map_or(pictures.len(), |most| most.get().min(pictures.len()))
    }

    /// The pictures and the settings, in a line; `levels` says which noise.
    fn describe(&self, pictures: &TestSet, levels: &str) -> String {
        pictures.about(self.count(pictures), &pictures.described(), levels, self.seed, self.clip)
    }

    /// Prints `object` with what JSON says of every evaluation.
    fn print_json(&self, pictures: &TestSet, mut object: Value) -> Result<()> {
        object["denoiser"] = json!(self.choice.name());
        object["data"] = json!(pictures.described());
        object["channels"] = json!(pictures.channels().count());
        object["clipped"] = json!(self.clip);
        object["skipped"] = json!(pictures.skipped);
        output::json(&object)
    }
}

fn one_level(arguments: &Arguments, denoiser: &Denoiser, pictures: &TestSet, sigma: f64) -> Result<()> {
    let count = arguments.count(pictures);
    let scores = score(denoiser, pictures, count, sigma, arguments.seed)?;
    if arguments.json {
        return arguments.print_json(pictures, scores.to_json(arguments.verbose));
    }
    output::line(denoiser.describe(pictures.channels()))?;
    output::line(format_args!("{}\n", arguments.describe(pictures, &format!("sigma {sigma:.4}"))))?;
    if arguments.verbose {
        output::line(format_args!("{}\n", scores.per_image_table()))?;
    }
    output::line(scores.table())?;
    let (seconds, speed) = (scores.seconds, scores.megapixels_per_second());
    output::line(format_args!(
        "\nmean ± standard deviation; {seconds:.2} s, {speed:.1} megapixels per second"
    ))
}
