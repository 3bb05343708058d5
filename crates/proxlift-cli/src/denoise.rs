//! `proxlift denoise`: pictures in, pictures out.

mod done;
mod job;
mod noise_plot;
mod report;

use crate::choice::Choice;
use crate::files::{self, check_extension, check_free};
use crate::flags::{OrAuto, named_or_auto, not_negative, pool};
use crate::output;
use crate::tasks::{Task, is_standard, tasks};
use job::{Job, target};
use proxlift::denoiser::{Counts, Noise};
use proxlift::image::io::Format;
use proxlift::noise::NoiseKind;
use proxlift::{Error, Result};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// Remove noise from pictures: files, or folders, recursively.
///
/// Without further flags, proxlift estimates the noise level of each picture and adapts a built-in network to it.
/// Results keep the format, bit depth (8, 16, float), transparency and metadata of their originals, and say with what
/// settings they were made. Nothing is clipped except where an integer format is written. The pages of a TIFF stack or
/// a FITS cube are denoised one by one, each for its own noise. A grey model of your own takes the channels of a colour
/// picture one by one.
#[derive(clap::Args)]
#[command(after_help = include_str!("help/denoise.txt").trim_end())]
pub struct Arguments {
    /// Pictures (PNG, JPEG, TIFF, WebP, PGM, PPM, BMP, FITS), folders of pictures, or - for standard input
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// A file for a single picture, else a folder; - for standard output [default: beside each picture, as
    /// NAME-denoised.EXT; standard output for -]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// The format on standard output: png, jpg, tif, webp, pgm, ppm, bmp or fits [default: png; tif for several pages]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    #[command(flatten)]
    choice: Choice,
    /// The standard deviation of the noise, where white is 1; for a float picture, on its own scale [default:
    /// estimated for each picture]
    #[arg(long, value_name = "S", value_parser = not_negative, allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// The kind of noise
    #[arg(long, value_name = "KIND", value_parser = named_or_auto::<NoiseKind>("Found in each picture"))]
    #[arg(default_value = "auto")]
    noise: OrAuto<NoiseKind>,
    /// Counts: what one count adds to a value of the file [default: found]
    #[arg(long, value_name = "G", value_parser = not_negative, allow_negative_numbers = true)]
    gain: Option<f64>,
    /// Counts: the value of the file at no counts [default: found]
    #[arg(long, value_name = "O", allow_negative_numbers = true)]
    offset: Option<f64>,
    /// Counts: the standard deviation of the noise at no counts, in values of the file [default: found]
    #[arg(long, value_name = "R", value_parser = not_negative, allow_negative_numbers = true)]
    read_noise: Option<f64>,
    /// Write a TIFF of 32-bit floats, on the scale of the original: 16-bit counts stay counts, but are not rounded
    #[arg(long)]
    float: bool,
    /// Also write a picture with the middle of each picture before and after, pixel by pixel: a PNG file
    #[arg(long, value_name = "PNG")]
    before_after: Option<PathBuf>,
    /// Also draw the noise of the picture against its intensity and by frequency: an SVG file
    #[arg(long, value_name = "SVG")]
    plot: Option<PathBuf>,
    /// Replace files that exist, including the originals if OUT says so
    #[arg(long)]
    overwrite: bool,
    /// Print a JSON object for each picture, one on a line, as soon as it is done
    #[arg(long)]
    json: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn format(name: &str) -> std::result::Result<Format, String> {
    Format::from_name(name).ok_or_else(|| format!("give {}", Format::EXTENSIONS))
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let pool = pool(arguments.threads)?;
    let mut denoiser = arguments.choice.load()?;
    if let Some(sigma) = arguments.sigma {
        denoiser = denoiser.sigma(sigma);
    }
    let counts = Counts { gain: arguments.gain, offset: arguments.offset, read_noise: arguments.read_noise };
    if let Some(kind) = arguments.noise.0 {
        denoiser = denoiser.noise(kind);
    }
    if counts != Counts::default() {
        denoiser = denoiser.counts(counts);
    }
    denoiser.check()?;
    let tasks = tasks(&arguments.inputs, arguments.output.as_deref(), arguments.overwrite)?;
    check_standard_output(arguments, &tasks)?;
    check_float(arguments, &tasks)?;
    check_drawings(arguments, &tasks)?;
    let job = Job { arguments, denoiser, alone: tasks.len() == 1, pool, turn: Mutex::new(()) };
    let start = Instant::now();
    if let [task] = &tasks[..] {
        let done = job.picture(task)?;
        let (seconds, path) = (start.elapsed().as_secs_f64(), target(&task.output).display());
        let pages = if done.pages > 1 { format!(", {} pages,", done.pages) } else { String::new() };
        output::note(format_args!("wrote {path}{pages} in {seconds:.2} s; {}", done.told()));
        job.print(&done.facts)?;
        job.show(&done.shown.into_iter().collect::<Vec<_>>())?;
        return plot(arguments, &task.input, done.noise.as_ref());
    }
    let (done, pixels) = job.pictures(&tasks)?;
    if done > 0 {
        let (megapixels, seconds) = (pixels as f64 / 1e6, start.elapsed().as_secs_f64());
        output::note(format_args!("wrote {done} pictures, {megapixels:.1} megapixels, in {seconds:.1} s"));
    }
    match tasks.len() - done {
        0 => Ok(()),
        failed => {
            let reason = format!("{failed} of {} pictures could not be denoised", tasks.len());
            Err(Error::invalid(reason).into())
        }
    }
}

/// A picture on standard output stands alone there, and not on a screen.
fn check_standard_output(arguments: &Arguments, tasks: &[Task]) -> Result<()> {
    Err(Error::invalid(match tasks.iter().any(|task| is_standard(&task.output)) {
        false if arguments.format.is_some() => {
            "--format is for standard output (-o -): elsewhere the extension of OUT says the format"
        }
        true if arguments.json => {
            "--json would be mixed with the picture on standard output: name a file with -o"
        }
        true if std::io::stdout().is_terminal() => {
            "the picture would be written to the screen: redirect the output, or name a file with -o"
        }
        _ => return Ok(()),
    }))
}

/// Refuses drawings that cannot be made before any work is done.
fn check_drawings(arguments: &Arguments, tasks: &[Task]) -> Result<()> {
    if let Some(path) = &arguments.before_after {
        check_extension(path, &["png"])?;
        check_free(path, arguments.overwrite)?;
    }
    let Some(path) = &arguments.plot else { return Ok(()) };
    check_extension(path, &["svg"])?;
    check_free(path, arguments.overwrite)?;
    if tasks.len() > 1 {
        return Err(Error::invalid("--plot draws the noise of one picture: give one file"));
    }
    if arguments.sigma.is_some() {
        return Err(Error::invalid("--plot draws the noise that is found: leave --sigma out"));
    }
    Ok(())
}

fn plot(arguments: &Arguments, input: &Path, noise: Option<&Noise>) -> anyhow::Result<()> {
    let Some(path) = &arguments.plot else { return Ok(()) };
    let Some((noise, model)) = noise.and_then(|noise| Some((noise, noise.model.as_ref()?))) else {
        return Err(Error::invalid(
            "--plot draws the noise that is found, but this model is used as it was trained",
        )
        .into());
    };
    files::write(path, noise_plot::draw(&files::short_name(input), noise, model).as_bytes())?;
    output::note(format_args!("wrote {}, the noise", path.display()));
    Ok(())
}

/// Floats are for TIFF.
fn check_float(arguments: &Arguments, tasks: &[Task]) -> Result<()> {
    let is_tiff = |path: &Path| match is_standard(path) {
        true => arguments.format == Some(Format::Tiff),
        false => Format::from_path(path) == Some(Format::Tiff),
    };
    match tasks.iter().find(|task| arguments.float && !is_tiff(&task.output)) {
        Some(task) if is_standard(&task.output) => {
            Err(Error::invalid("--float is for TIFF: add --format tif"))
        }
        Some(task) => Err(Error::file(&task.output, "--float is for TIFF: name a file such as -o out.tif")),
        None => Ok(()),
    }
}
