//! `proxlift evaluate`: how well noise is removed from clean pictures.

use crate::denoiser::{Choice, Denoiser};
use crate::flags::{check_sigma_below_white, number, pool};
use crate::output;
use crate::plan::pictures_below;
use crate::scores::{score, score_first};
use anyhow::Result;
use proxlift::dataset::ImageSet;
use proxlift::image::{Channels, Image, io};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Add noise to clean pictures, remove it, and print PSNR and SSIM.
///
/// Noise is white and Gaussian, the same for the same seed on any machine, and not clipped; nor is the output, unless
/// --clip is given. PSNR is at peak 1, and once more at the largest value of each clean picture. SSIM has the 11 x 11
/// Gaussian window of its inventors.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift evaluate --method tv                              on built-in pictures, sigma 0.1
  proxlift evaluate --model m.safetensors --data bsd68/ --sigma 25/255
  proxlift evaluate --model m.safetensors --data bsd68/ --sigma 0.2 --as-trained
  proxlift evaluate --method tv --data photos/ --json --verbose | jq .per_image")]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// A folder of clean pictures [default: 12 built-in procedural pictures of 128 x 128 pixels]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The noise level, where white is 1 [default: what the model was trained for; 0.1 for tv]
    #[arg(long, value_name = "S", value_parser = number, allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Leave the model's thresholds as trained; else they follow sigma, as in `proxlift denoise --sigma`
    #[arg(long, conflicts_with = "method")]
    as_trained: bool,
    /// The seed of the noise
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only the first N pictures
    #[arg(long, value_name = "N")]
    limit: Option<std::num::NonZeroUsize>,
    /// Score colour pictures in gray [default: as the model needs; for tv as the first picture is]
    #[arg(long)]
    gray: bool,
    /// Clip the output to [0, 1] before it is scored
    #[arg(long)]
    clip: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The scores of each picture too
    #[arg(long, short)]
    verbose: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The built-in test set: how many pictures, their side, the seed of their shapes.
const EMBEDDED: (usize, usize, u64) = (12, 128, 0);

/// Loads, scores, prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(sigma) = arguments.sigma {
        check_sigma_below_white(sigma)?;
    }
    let target = arguments.sigma.filter(|_| !arguments.as_trained);
    let denoiser = arguments.choice.denoiser(target)?.clipped(arguments.clip);
    let sigma = arguments.sigma.unwrap_or(denoiser.sigma());
    check_sigma_below_white(sigma)?;
    let pool = pool(arguments.threads)?;
    pool.install(|| {
        let channels = channels(arguments, &denoiser)?;
        let set = match &arguments.data {
            Some(folder) => ImageSet::from_folder(folder, channels)?,
            None => ImageSet::embedded_test(EMBEDDED.0, EMBEDDED.1, channels, EMBEDDED.2)?,
        };
        if channels == Channels::Rgb && set.images().iter().all(is_gray) {
            output::warn(
                "the pictures are gray, but the model is for colour: three noisy copies are easier to denoise than one",
            );
        }
        let scores = match arguments.limit {
            None => score(&denoiser, &set, sigma, arguments.seed)?,
            Some(count) => score_first(&denoiser, &set, count.get(), sigma, arguments.seed)?,
        };
        let data = arguments.data.as_ref().map_or("built-in".into(), |path| path.display().to_string());
        if arguments.json {
            let mut object = scores.to_json();
            object.insert("denoiser".into(), json!(arguments.choice.name()));
            object.insert("data".into(), json!(data));
            object.insert("channels".into(), json!(channels.count()));
            object.insert("clipped".into(), json!(arguments.clip));
            object.insert("skipped".into(), json!(set.skipped().len()));
            if arguments.verbose {
                object.insert("per_image".into(), serde_json::to_value(&scores.per_image)?);
            }
            return output::json(&object);
        }
        let kind = if channels == Channels::Gray { "gray" } else { "RGB" };
        let images = scores.per_image.len();
        output::line(format_args!("{}", denoiser.describe()))?;
        output::line(format_args!(
            "{images} {kind} pictures ({data}), sigma {sigma:.4}, seed {}, output {}clipped\n",
            arguments.seed,
            if arguments.clip { "" } else { "not " }
        ))?;
        if arguments.verbose {
            output::line(format_args!("{}\n", scores.per_image_table()))?;
        }
        output::line(scores.table())?;
        let (seconds, speed) = (scores.seconds, scores.megapixels_per_second());
        output::line(format_args!(
            "\nmean ± standard deviation; {seconds:.2} s, {speed:.1} megapixels a second"
        ))
    })
}

/// What the pictures are read as.
fn channels(arguments: &Arguments, denoiser: &Denoiser) -> Result<Channels> {
    let needed = denoiser.channels();
    if arguments.gray {
        if needed == Some(Channels::Rgb) {
            let reason = "--gray with a model for colour: leave it out, or choose a gray model";
            return Err(proxlift::Error::invalid(reason).into());
        }
        return Ok(Channels::Gray);
    }
    match (needed, &arguments.data) {
        (Some(channels), _) => Ok(channels),
        (None, Some(folder)) => kind_of_first(folder),
        (None, None) => Ok(Channels::Gray),
    }
}

/// Gray or RGB as the first picture that can be read is; a folder without any is refused when the set is made.
fn kind_of_first(folder: &Path) -> Result<Channels> {
    let readable = pictures_below(folder)?.into_iter().find_map(|path| io::read(path).ok());
    Ok(readable.map_or(Channels::Gray, |picture| picture.image.kind()))
}

fn is_gray(image: &Image) -> bool {
    image.plane(0) == image.plane(1) && image.plane(0) == image.plane(2)
}
