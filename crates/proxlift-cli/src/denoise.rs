//! `proxlift denoise`: pictures in, pictures out.

use crate::choice::{Choice, Chosen};
use crate::flags::{check_not_negative, check_sigma_below_white, number, pool};
use crate::noise::{self, Noise};
use crate::output::{self, Progress};
use crate::plan::{self, Task};
use proxlift::image::io::{self, Depth, Limits, Raster};
use proxlift::{Error, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Remove the noise of pictures: files, or folders with all below them.
///
/// Without further flags, the noise level of each picture is estimated and a built-in network is set for it. Results keep
/// the format, bit depth (8, 16, float), transparency and metadata of their originals. Nothing is clipped except where an
/// integer format is written. A grey model of your own takes the channels of a colour picture one by one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift denoise photo.png                         writes photo-denoised.png
  proxlift denoise photo.png --strength 0.7          less of it
  proxlift denoise photo.jpg -o clean.png            another name or format
  proxlift denoise scans/ -o clean/                  a folder, its structure kept
  proxlift denoise *.tif --sigma 12/255              where the noise level is known
  proxlift denoise photo.png --model m.safetensors   a network of your own, see `proxlift train`
  proxlift denoise photo.png --method tv             total variation")]
pub struct Arguments {
    /// Pictures (PNG, JPEG, TIFF, WebP), or folders that are searched for them
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// A file for a single picture, else a folder [default: beside each picture, as NAME-denoised.EXT]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    /// The standard deviation of the noise, where white is 1; in a float picture on its own scale [default: estimated for
    /// each picture]
    #[arg(long, value_name = "S", value_parser = number, allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Replace files that exist, the originals too if OUT says so
    #[arg(long)]
    overwrite: bool,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Pictures of a network at once: one is read and one written while one is denoised on all threads.
const STAGES: usize = 3;

/// Float pictures beyond this value are on another scale than `[0, 1]`.
const ANOTHER_SCALE: f32 = 4.0;

/// Plans, then denoises every picture.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let pool = pool(arguments.threads)?;
    if let Some(sigma) = arguments.sigma {
        check_not_negative("--sigma", sigma)?;
    }
    let chosen = arguments.choice.load()?;
    let tasks = plan::tasks(&arguments.inputs, arguments.output.as_deref(), arguments.overwrite)?;
    let (sigma, alone) = (arguments.sigma, tasks.len() == 1);
    let job = Job { chosen, sigma, alone, pool, turn: Mutex::new(()) };
    let start = Instant::now();
    if let [task] = &tasks[..] {
        let done = job.picture(task)?;
        let (seconds, noise) = (start.elapsed().as_secs_f64(), noise::summary(done.noise.as_slice()));
        output::note(format_args!("wrote {} in {seconds:.2} s{noise}", task.output.display()));
        return Ok(());
    }
    let done = job.pictures(&tasks);
    if !done.is_empty() {
        let megapixels = done.iter().map(|done| done.pixels).sum::<usize>() as f64 / 1e6;
        let noise: Vec<Noise> = done.iter().filter_map(|done| done.noise).collect();
        let (count, seconds, noise) = (done.len(), start.elapsed().as_secs_f64(), noise::summary(&noise));
        output::note(format_args!(
            "wrote {count} pictures, {megapixels:.1} megapixels, in {seconds:.1} s{noise}"
        ));
    }
    match tasks.len() - done.len() {
        0 => Ok(()),
        failed => {
            let reason = format!("{failed} of {} pictures could not be denoised", tasks.len());
            Err(Error::invalid(reason).into())
        }
    }
}

struct Job {
    chosen: Chosen,
    /// The noise level, if it was told.
    sigma: Option<f64>,
    /// Whether there is one picture only, whose own progress is shown.
    alone: bool,
    pool: rayon::ThreadPool,
    /// Held by the picture that has all threads to itself, so that only one takes the memory for that.
    turn: Mutex<()>,
}

/// A picture that was written.
struct Done {
    pixels: usize,
    /// Its noise, if it was estimated.
    noise: Option<Noise>,
}

impl Job {
    /// Denoises all pictures, warning of those that fail: those that were written.
    fn pictures(&self, tasks: &[Task]) -> Vec<Done> {
        let workers = if self.chosen.is_parallel() { STAGES } else { self.pool.current_num_threads() };
        let progress = Progress::new(tasks.len(), "denoising");
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.picture(task) {
                    Ok(one) => done.lock().unwrap_or_else(PoisonError::into_inner).push(one),
                    Err(error) => output::warn(format_args!("skipped: {error}")),
                }
                progress.step();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..workers.min(tasks.len()) {
                scope.spawn(work);
            }
        });
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads, denoises and writes one picture.
    fn picture(&self, task: &Task) -> Result<Done> {
        let of_input = |e: Error| Error::file(&task.input, e.to_string());
        let raster = output::about(&task.input, || io::read_raster(&task.input, &Limits::default()))?;
        self.check_scale(task, &raster).map_err(of_input)?;
        let estimated = self.sigma.is_none() && self.chosen.follows_sigma();
        let noise = estimated.then(|| Noise::of(&raster)).transpose().map_err(of_input)?;
        let sigma = self.sigma.or(noise.map(|noise| noise.sigma));
        let denoiser = self.chosen.denoiser(raster.kind(), sigma)?;
        if let Some(folder) = task.output.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let raster = if denoiser.is_parallel() {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.pool.install(|| denoiser.denoise_raster(raster, self.alone))
        } else {
            denoiser.denoise_raster(raster, self.alone)
        }
        .map_err(of_input)?;
        // A link stays a link: what it points to is replaced.
        let output = task.output.canonicalize().unwrap_or_else(|_| task.output.clone());
        output::about(&task.output, || io::write_raster(output, &raster))?;
        Ok(Done { pixels: raster.pixels(), noise })
    }

    /// White is 1 in integer pictures; a float picture has whatever scale it has, which a model that cannot be set for the
    /// noise does not follow.
    fn check_scale(&self, task: &Task, picture: &Raster) -> Result<()> {
        if picture.depth() != Depth::Float {
            return self.sigma.map_or(Ok(()), check_sigma_below_white);
        }
        let largest = picture.largest();
        if self.chosen.is_parallel() && !self.chosen.follows_sigma() && largest > ANOTHER_SCALE {
            output::warn(format_args!(
                "{}: values reach {largest}, but the model is for pictures where white is 1 and does not know the noise \
                 it was trained for: scale the picture to [0, 1] first",
                task.input.display(),
            ));
        }
        Ok(())
    }
}
