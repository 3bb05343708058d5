//! `proxlift denoise`: pictures in, pictures out.

use crate::denoiser::{Choice, Denoiser};
use crate::flags::{check_sigma_below_white, number, pool};
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
/// Results keep the format, bit depth (8, 16, float), transparency and metadata of their originals. Nothing is clipped
/// except where an integer format is written. A gray model takes the channels of a colour picture one by one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift denoise photo.png --method tv                     writes photo-denoised.png
  proxlift denoise photo.jpg -o clean.png --model m.safetensors
  proxlift denoise scans/ -o clean/ --model m.safetensors    a folder, its structure kept
  proxlift denoise cells.tif --method tv --sigma 40          a float picture: sigma on its own scale
  proxlift denoise *.png --model m.safetensors --strength 0.7")]
pub struct Arguments {
    /// Pictures (PNG, JPEG, TIFF, WebP), or folders that are searched for them
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// A file for a single picture, else a folder [default: beside each picture, as NAME-denoised.EXT]
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    /// The standard deviation of the noise, where white is 1 [default: what the model was trained for; 0.1 for tv]
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
    let denoiser = arguments.choice.denoiser(arguments.sigma)?;
    let tasks = plan::tasks(&arguments.inputs, arguments.output.as_deref(), arguments.overwrite)?;
    let (told, alone) = (arguments.sigma.is_some(), tasks.len() == 1);
    let job = Job { denoiser, told, alone, pool, turn: Mutex::new(()) };
    let start = Instant::now();
    if let [task] = &tasks[..] {
        job.picture(task)?;
        let seconds = start.elapsed().as_secs_f64();
        output::note(format_args!("wrote {} ({seconds:.2} s)", task.output.display()));
        return Ok(());
    }
    let (done, pixels) = job.pictures(&tasks);
    if done > 0 {
        let (seconds, megapixels) = (start.elapsed().as_secs_f64(), pixels as f64 / 1e6);
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

struct Job {
    denoiser: Denoiser,
    /// Whether the noise level was told.
    told: bool,
    /// Whether there is one picture only, whose own progress is shown.
    alone: bool,
    pool: rayon::ThreadPool,
    /// Held by the picture that has all threads to itself, so that only one takes the memory for that.
    turn: Mutex<()>,
}

impl Job {
    /// Denoises all pictures, warning of those that fail: how many were written, and their pixels.
    fn pictures(&self, tasks: &[Task]) -> (usize, usize) {
        let workers = if self.denoiser.is_parallel() { STAGES } else { self.pool.current_num_threads() };
        let progress = Progress::new(tasks.len(), "denoising");
        let (next, done, pixels) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.picture(task) {
                    Ok(count) => {
                        done.fetch_add(1, Ordering::Relaxed);
                        pixels.fetch_add(count, Ordering::Relaxed);
                    }
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
        (done.into_inner(), pixels.into_inner())
    }

    /// Reads, denoises and writes one picture; its number of pixels.
    fn picture(&self, task: &Task) -> Result<usize> {
        let of_input = |e: Error| Error::file(&task.input, e.to_string());
        let raster = output::about(&task.input, || io::read_raster(&task.input, &Limits::default()))?;
        self.check_scale(task, &raster).map_err(of_input)?;
        if let Some(folder) = task.output.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        let raster = if self.denoiser.is_parallel() {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.pool.install(|| self.denoiser.denoise_raster(raster, self.alone))
        } else {
            self.denoiser.denoise_raster(raster, self.alone)
        }
        .map_err(of_input)?;
        // A link stays a link: what it points to is replaced.
        let output = task.output.canonicalize().unwrap_or_else(|_| task.output.clone());
        output::about(&task.output, || io::write_raster(output, &raster))?;
        Ok(raster.pixels())
    }

    /// White is 1 in integer pictures; a float picture has whatever scale it has, and sigma must be on the same.
    fn check_scale(&self, task: &Task, picture: &Raster) -> Result<()> {
        if picture.depth() != Depth::Float {
            return check_sigma_below_white(self.denoiser.sigma());
        }
        let largest = picture.largest();
        if !self.told && largest > ANOTHER_SCALE {
            output::warn(format_args!(
                "{}: values reach {largest}, but sigma is {} for pictures where white is 1: give --sigma on the \
                 picture's own scale",
                task.input.display(),
                self.denoiser.sigma()
            ));
        }
        Ok(())
    }
}
