//! `proxlift denoise`: pictures in, pictures out.

use crate::choice::Choice;
use crate::flags::{named, not_negative, pool};
use crate::output::{self, Progress};
use crate::tasks::{Task, is_standard, tasks};
use crate::workers::side_by_side;
use proxlift::denoiser::{Counts, Noise};
use proxlift::image::io::{self, Depth, Format, Limits, Pages, Raster};
use proxlift::noise::NoiseKind;
use proxlift::{Denoiser, Error, Result};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
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
    /// The kind of noise [default: found in each picture]
    #[arg(long, value_name = "KIND", value_parser = named::<NoiseKind>())]
    noise: Option<NoiseKind>,
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

/// Pictures of a network at once: one is read and one written while one is denoised on all threads.
const STAGES: usize = 3;

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
    if let Some(kind) = arguments.noise {
        denoiser = denoiser.noise(kind);
    }
    if counts != Counts::default() {
        denoiser = denoiser.counts(counts);
    }
    denoiser.check()?;
    let tasks = tasks(&arguments.inputs, arguments.output.as_deref(), arguments.overwrite)?;
    check_standard_output(arguments, &tasks)?;
    check_float(arguments, &tasks)?;
    let job = Job { arguments, denoiser, alone: tasks.len() == 1, pool, turn: Mutex::new(()) };
    let start = Instant::now();
    if let [task] = &tasks[..] {
        let done = job.picture(task)?;
        let (seconds, path) = (start.elapsed().as_secs_f64(), target(&task.output).display());
        output::note(format_args!("wrote {path} in {seconds:.2} s{}", done.told("; ")));
        return job.print(&done.facts);
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

struct Job<'a> {
    arguments: &'a Arguments,
    denoiser: Denoiser,
    /// Whether there is one picture only, whose own progress is shown.
    alone: bool,
    pool: rayon::ThreadPool,
    /// Held by the picture that has all threads to itself, so that only one takes the memory for that.
    turn: Mutex<()>,
}

struct Done {
    pixels: usize,
    pages: usize,
    /// That of the first page.
    noise: Option<Noise>,
    /// For `--json`.
    facts: Value,
}

impl Done {
    /// The noise, if it was estimated, after `separator`.
    fn told(&self, separator: &str) -> String {
        match self.noise.as_ref().filter(|noise| noise.model.is_some()) {
            None => String::new(),
            Some(noise) if noise.faint => format!(
                "{separator}noise estimated: {noise}: hardly any, so little is changed (--sigma S sets another level)"
            ),
            Some(noise) if self.pages > 1 => {
                format!("{separator}{} pages, noise of the first estimated: {noise}", self.pages)
            }
            Some(noise) => format!("{separator}noise estimated: {noise}"),
        }
    }
}

impl Job<'_> {
    /// Denoises all pictures, warning of those that fail; how many were written, and their pixels.
    fn pictures(&self, tasks: &[Task]) -> anyhow::Result<(usize, usize)> {
        let workers = if self.denoiser.is_parallel() { STAGES } else { self.pool.current_num_threads() };
        let progress = Progress::new(tasks.len(), "denoising");
        let (written, pixels) = (AtomicUsize::new(0), AtomicUsize::new(0));
        side_by_side(tasks, workers, |task| {
            match self.picture(task) {
                Ok(done) => {
                    written.fetch_add(1, Ordering::Relaxed);
                    pixels.fetch_add(done.pixels, Ordering::Relaxed);
                    let told = done.told(": ");
                    if !self.arguments.json && !told.is_empty() {
                        output::note(format_args!("{}{told}", task.input.display()));
                    }
                    self.print(&done.facts)?;
                }
                Err(error) => {
                    output::warn(format_args!("skipped: {error}"));
                    self.print(&json!({ "input": task.input, "error": error.to_string() }))?;
                }
            }
            progress.step();
            Ok(())
        })?;
        Ok((written.into_inner(), pixels.into_inner()))
    }

    fn print(&self, facts: &Value) -> anyhow::Result<()> {
        if self.arguments.json { output::line(facts) } else { Ok(()) }
    }

    fn picture(&self, task: &Task) -> anyhow::Result<Done> {
        let input = source(&task.input);
        let mut pages = output::about(input, || open(&task.input))?;
        let count = pages.count();
        let format = self.format(&task.output, count);
        if count > 1 && !format.has_pages() {
            let reason =
                format!("the input has {count} pages, which only TIFF and FITS hold: use -o out.tif");
            return Err(Error::file(target(&task.output), reason).into());
        }
        let bar = (self.alone && count > 1).then(|| Progress::new(count, "denoising pages"));
        let (mut pixels, mut seconds, mut levels) = (0, 0.0, Vec::new());
        let mut page = || {
            let page = output::about(input, || self.page(pages.next_page()?, count, input))?;
            pixels += page.raster.pixels();
            seconds += page.seconds;
            levels.extend(page.noise.as_ref().map(|noise| noise.sigma));
            bar.iter().for_each(Progress::step);
            Ok(page)
        };
        let first = page()?;
        if let Some(folder) = task.output.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let (noise, mut first) = (first.noise, Some(first.raster));
        let mut facts = first.as_ref().map(facts_of).unwrap_or_default();
        let mut next = |_| first.take().map_or_else(|| Ok(page()?.raster), Ok);
        output::about(target(&task.output), || self.write(&task.output, format, count, &mut next))?;
        let mean = (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64);
        facts.extend([
            ("input".into(), json!(task.input)),
            ("output".into(), json!(task.output)),
            ("pages".into(), json!(count)),
            ("sigma".into(), json!(mean)),
            ("noise".into(), json!(noise.as_ref().and_then(|noise| noise.model.as_ref()))),
            ("estimated".into(), json!(noise.as_ref().is_some_and(|noise| noise.model.is_some()))),
            ("model".into(), json!(self.arguments.choice.name())),
            ("seconds".into(), json!(seconds)),
        ]);
        Ok(Done { pixels, pages: count, noise, facts: facts.into() })
    }

    /// Denoises one of `count` pages, and notes the settings in it.
    fn page(&self, mut raster: Raster, count: usize, input: &Path) -> Result<Page> {
        let of_input = |e: Error| Error::file(input, e.to_string());
        let start = Instant::now();
        let ready = self.denoiser.prepare(&raster).map_err(of_input)?;
        let mut seconds = start.elapsed().as_secs_f64();
        let white = match raster.depth() {
            Depth::Eight => 255.0,
            Depth::Sixteen => 65_535.0,
            Depth::Float => 1.0,
        };
        if self.arguments.float {
            raster = raster.into_float();
        }
        let mut bar = None;
        let mut progress = |done, all| {
            if self.alone && count == 1 {
                bar.get_or_insert_with(|| Progress::new(all, "denoising")).show(done, String::new());
            }
            ControlFlow::Continue(())
        };
        let mut denoise = || {
            let start = Instant::now();
            ready.denoise_raster(&mut raster, &mut progress)?;
            Ok(start.elapsed().as_secs_f64())
        };
        seconds += if self.denoiser.is_parallel() {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.pool.install(denoise)
        } else {
            denoise()
        }
        .map_err(of_input)?;
        if self.arguments.float {
            raster.scale(white);
        }
        raster.metadata.settings = Some(self.arguments.choice.settings(ready.noise.as_ref()));
        Ok(Page { raster, noise: ready.noise, seconds })
    }

    fn format(&self, output: &Path, count: usize) -> Format {
        let standard = if count > 1 { Format::Tiff } else { Format::Png };
        match is_standard(output) {
            true => self.arguments.format.unwrap_or(standard),
            false => Format::from_path(output).unwrap_or(standard),
        }
    }

    fn write(
        &self,
        path: &Path,
        format: Format,
        count: usize,
        next: &mut dyn FnMut(usize) -> Result<Raster>,
    ) -> anyhow::Result<()> {
        if is_standard(path) {
            return output::copy(&mut io::spool_pages(format, count, next)?);
        }
        // A link stays a link: what it points to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(io::write_pages(path, count, next)?)
    }
}

/// A page that is done.
struct Page {
    raster: Raster,
    noise: Option<Noise>,
    seconds: f64,
}

fn facts_of(raster: &Raster) -> serde_json::Map<String, Value> {
    let bits = match raster.depth() {
        Depth::Eight => 8,
        Depth::Sixteen => 16,
        Depth::Float => 32,
    };
    let sizes = [("width", raster.width()), ("height", raster.height()), ("channels", raster.kind().count())];
    sizes.into_iter().chain([("bits", bits)]).map(|(key, value)| (key.into(), json!(value))).collect()
}

fn open(path: &Path) -> Result<Pages> {
    if !is_standard(path) {
        return Pages::open(path, &Limits::default());
    }
    Pages::spool(source(path), &mut std::io::stdin().lock(), &Limits::default())
}

/// What paths to read from and to write to are called.
fn source(path: &Path) -> &Path {
    if is_standard(path) { Path::new("standard input") } else { path }
}

fn target(path: &Path) -> &Path {
    if is_standard(path) { Path::new("standard output") } else { path }
}
