//! `proxlift restore`: a degraded picture in, the picture as it was out.

use crate::before_after::{self, BeforeAfter};
use crate::files::{check_extension, check_free};
use crate::flags::{not_negative, one_of, pool, sigma};
use crate::output::{self, Progress};
use crate::tasks::beside;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::{Channels, Image};
use proxlift::restoration::{Border, Degradation, Kernel, Likelihood, Prior, Restored, Restorer};
use proxlift::solver::Until;
use proxlift::{Error, Result};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Deblur, fill in, enlarge or demosaic a picture.
///
/// Say what was done to the picture; the noise level is estimated. A denoiser is the prior: one step fits the data, the next
/// removes what does not look like a picture, at a level that falls to that of the noise. Results keep format, bit depth and
/// metadata; nothing is clipped except where an integer format is written.
#[derive(clap::Args)]
#[command(after_help = include_str!("help/restore.txt").trim_end())]
pub struct Arguments {
    /// The picture (PNG, JPEG, TIFF, WebP, PGM, PPM, BMP, FITS)
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The result [default: beside the picture, as NAME-restored.EXT]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// It was blurred: a file (PNG, TIFF, .npy), gaussian:1.6, box:9 or motion:15,30
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["inpaint", "demosaic"])]
    blur: Option<String>,
    /// Pixels are missing: a picture of the same size, white where they are and black elsewhere
    #[arg(long, value_name = "MASK", conflicts_with_all = ["upscale", "demosaic"])]
    inpaint: Option<PathBuf>,
    /// It is too small by this factor: 2, 3 or 4
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=4), conflicts_with = "demosaic")]
    upscale: Option<u8>,
    /// It is the mosaic of a camera, with one colour at each pixel; grey, or in colour with the others ignored
    #[arg(long, value_name = "PATTERN", value_parser = ["rggb", "bggr", "grbg", "gbrg"])]
    demosaic: Option<String>,
    /// The standard deviation of the noise, where white is 1 [default: estimated; none for --inpaint and --demosaic]
    #[arg(long, value_name = "S", value_parser = sigma, allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// What is beyond the edges of a blurred picture
    #[arg(long, value_name = "NAME", value_parser = one_of::<Border>(), default_value = "unknown")]
    border: Border,
    /// The noise: gaussian, or poisson for counts
    #[arg(long, value_name = "NAME", value_parser = ["gaussian", "poisson"], default_value = "gaussian")]
    likelihood: String,
    /// Counts: what one count adds, where white is 1
    #[arg(long, value_name = "G", value_parser = not_negative, allow_negative_numbers = true)]
    gain: Option<f64>,
    /// What pictures are like: best or small (built-in denoisers) or a model file; or a convex function, for which the
    /// optimum is found: convex (built in), convex:FILE (a model of `proxlift train --convex`) or tv (total variation); or
    /// weakly-convex (built in, for grey pictures), where the objective is lowered until it is stationary
    #[arg(long, value_name = "NAME|FILE", default_value = "best")]
    prior: String,
    /// How much the prior counts: as if for noise so many times as strong
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = not_negative, allow_negative_numbers = true)]
    strength: f64,
    /// Convex priors: stop when the objective is proven to be at most this share above its least value
    #[arg(long, value_name = "X", default_value_t = 5e-3, value_parser = not_negative, allow_negative_numbers = true)]
    tolerance: f64,
    /// Convex priors: stop after so many iterations in any case
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Also write the middle of the picture before and after, pixel by pixel: a PNG file
    #[arg(long, value_name = "PNG")]
    before_after: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
    /// Print a JSON object about the result
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let pool = pool(arguments.threads)?;
    let target = arguments.target();
    check_free(&target, arguments.overwrite)?;
    if let Some(path) = &arguments.before_after {
        check_extension(path, &["png"])?;
        check_free(path, arguments.overwrite)?;
    }
    let likelihood = arguments.likelihood()?;
    let degradation = arguments.degradation()?;
    let prior: Prior = arguments.prior.parse()?;
    let picture = output::about(&arguments.input, || io::read(&arguments.input))?;
    let seen = match arguments.demosaic {
        Some(_) => picture.image.clone().into_channels(Channels::Rgb),
        None => picture.image.clone(),
    };
    let restorer = Restorer::new(degradation).border(arguments.border).likelihood(likelihood).prior(prior);
    let until = Until { tolerance: arguments.tolerance, most: arguments.iterations as usize };
    let restorer = restorer.strength(arguments.strength).until(until);
    let start = Instant::now();
    let restored = pool
        .install(|| restore(&restorer, &seen))
        .map_err(|error| Error::file(&arguments.input, error.to_string()))?;
    let seconds = start.elapsed().as_secs_f64();
    arguments.write(&target, picture, &restored)?;
    if let Some(path) = &arguments.before_after {
        let sheet = before_after::sheet(&[BeforeAfter::of(&seen, &restored.image)?])?;
        io::write(path, &Picture::new(sheet, Depth::Eight))?;
        output::note(format_args!("wrote {}, before and after", path.display()));
    }
    let residual = restored.residuals.last().copied().unwrap_or(0.0);
    if arguments.json {
        let (channels, height, width) = restored.image.shape();
        return output::line(json!({
            "input": arguments.input, "output": target, "width": width, "height": height, "channels": channels,
            "sigma": restored.sigma, "estimated": arguments.is_estimated(), "prior": arguments.prior,
            "border": arguments.border, "iterations": restored.iterations, "residual": residual,
            "misfit": restored.misfit, "objective": restored.objective, "gap": restored.gap, "settled": restored.settled,
            "seconds": seconds,
        }));
    }
    let estimated = if arguments.is_estimated() { " (estimated)" } else { "" };
    let objective = restored.objective.zip(restored.gap);
    let objective =
        objective.map(|(value, gap)| format!("objective {value:.6e}, gap {gap:.1e}, ")).unwrap_or_default();
    output::note(format_args!(
        "wrote {} in {seconds:.2} s; noise {:.2}/255{estimated}, prior {}, {} iterations, {objective}residual {residual:.1e}",
        target.display(),
        255.0 * restored.sigma,
        arguments.prior,
        restored.iterations
    ));
    Ok(())
}

/// Shows how far it is.
fn restore(restorer: &Restorer, seen: &Image) -> Result<Restored> {
    let mut bar = None;
    restorer.restore_watched(seen, &mut |step| {
        let text = match step.objective {
            Some((objective, gap)) => {
                format!("iteration {}, objective {objective:.4e}, gap {gap:.1e}", step.done)
            }
            None => format!("iteration {}, residual {:.1e}", step.done, step.residual),
        };
        bar.get_or_insert_with(|| Progress::with_text(0, step.of)).show(step.done, text);
        ControlFlow::Continue(())
    })
}

impl Arguments {
    fn target(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| beside(&self.input, "-restored"))
    }

    fn is_estimated(&self) -> bool {
        self.sigma.is_none() && self.inpaint.is_none() && self.demosaic.is_none() && self.gain.is_none()
    }

    fn likelihood(&self) -> Result<Likelihood> {
        Err(Error::invalid(match (self.likelihood.as_str(), self.gain) {
            ("poisson", _) if self.sigma.is_some() => {
                "--sigma is for Gaussian noise: give counts their --gain instead"
            }
            ("poisson", Some(gain)) => return Ok(Likelihood::Poisson { gain }),
            ("poisson", None) => "counts need their --gain: what one count adds, where white is 1",
            (_, Some(_)) => "--gain is for counts: add --likelihood poisson",
            (_, None) => return Ok(Likelihood::Gaussian { sigma: self.sigma }),
        }))
    }

    fn degradation(&self) -> Result<Degradation> {
        let kernel = self.blur.as_deref().map(str::parse::<Kernel>).transpose()?;
        if let Some(path) = &self.inpaint {
            return mask(path);
        }
        if let Some(pattern) = &self.demosaic {
            return Ok(Degradation::Mosaic(pattern.clone()));
        }
        match (self.upscale, kernel) {
            (Some(factor), kernel) => {
                let factor = usize::from(factor);
                Ok(Degradation::Small { factor, kernel: kernel.unwrap_or_else(|| Kernel::cubic(factor)) })
            }
            (None, Some(kernel)) => Ok(Degradation::Blur(kernel)),
            (None, None) => Err(Error::invalid(
                "say what was done to the picture: --blur KERNEL, --inpaint MASK, --upscale N or --demosaic PATTERN",
            )),
        }
    }

    /// The estimate in the depth of the original, with its metadata.
    fn write(&self, target: &Path, original: Picture, restored: &Restored) -> Result<()> {
        let same_size = original.image.pixels() == restored.image.pixels();
        if original.alpha.is_some() && !same_size {
            output::warn("the transparency of the picture is left out: it is not enlarged");
        }
        let mut picture = Picture { image: restored.image.clone(), ..original };
        picture.alpha = picture.alpha.filter(|_| same_size);
        picture.metadata.settings = Some(format!(
            "proxlift {}: restored, prior {}, sigma {:.5}",
            env!("CARGO_PKG_VERSION"),
            self.prior,
            restored.sigma
        ));
        io::write(target, &picture)
    }
}

/// White is missing.
fn mask(path: &Path) -> Result<Degradation> {
    let image = io::read(path)?.image.to_grey();
    let known: Vec<bool> = image.data().iter().map(|v| *v < 0.5).collect();
    if !known.contains(&true) {
        return Err(Error::file(
            path,
            "the mask has no known pixel: white is what is filled in, black is kept",
        ));
    }
    Ok(Degradation::Missing { known, size: (image.height(), image.width()) })
}
