//! The work on one picture, or on the pages of one file, and on many of them.

use super::done::Done;
use super::{Arguments, report, report::Row};
use crate::before_after::{self, BeforeAfter};
use crate::output::{self, Progress};
use crate::tasks::{Task, is_standard};
use crate::workers::side_by_side;
use proxlift::denoiser::{Noise, Proof};
use proxlift::image::io::{self, Depth, Format, Limits, Pages, Picture, Raster};
use proxlift::{Denoiser, Error, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Pictures of a network at once: one is read and one written while one is denoised on all threads.
const STAGES: usize = 3;

pub(super) struct Job<'a> {
    pub arguments: &'a Arguments,
    pub denoiser: Denoiser,
    /// Whether there is one picture only, whose own progress is shown.
    pub alone: bool,
    pub pool: rayon::ThreadPool,
    /// Held by the picture that has all threads to itself, so that only one takes the memory for that.
    pub turn: Mutex<()>,
}

impl Job<'_> {
    /// Denoises all pictures, warning of those that fail; how many were written, and their pixels.
    pub(super) fn pictures(&self, tasks: &[Task]) -> anyhow::Result<(usize, usize)> {
        let workers = if self.denoiser.is_parallel() { STAGES } else { self.pool.current_num_threads() };
        let progress = Progress::new(tasks.len(), "denoising");
        let (written, pixels) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rows = Mutex::new(Vec::new());
        let add = |row| {
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            if rows.len() < report::MOST {
                rows.push(row);
            }
        };
        let shown = Mutex::new(BTreeMap::new());
        side_by_side(tasks, workers, |task| {
            match self.picture(task) {
                Ok(done) => {
                    written.fetch_add(1, Ordering::Relaxed);
                    pixels.fetch_add(done.pixels, Ordering::Relaxed);
                    add(Row::new(&task.input, &done));
                    self.print(&done.facts)?;
                    if let Some(picture) = done.shown {
                        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                        shown.insert(task.input.clone(), picture);
                        if shown.len() > before_after::MOST {
                            shown.pop_last();
                        }
                    }
                }
                Err(error) => {
                    output::warn(format_args!("skipped: {error}"));
                    add(Row::failed(&task.input));
                    self.print(&json!({ "input": task.input, "error": error.to_string() }))?;
                }
            }
            progress.step();
            Ok(())
        })?;
        drop(progress);
        if !self.arguments.json {
            report::table(rows.into_inner().unwrap_or_default()).iter().for_each(output::note);
            if tasks.len() > report::MOST {
                output::note(format_args!("and {} more: --json tells of all", tasks.len() - report::MOST));
            }
        }
        self.show(&shown.into_inner().unwrap_or_default().into_values().collect::<Vec<_>>())?;
        Ok((written.into_inner(), pixels.into_inner()))
    }

    /// Writes the sheet of `--before-after`.
    pub(super) fn show(&self, pictures: &[BeforeAfter]) -> anyhow::Result<()> {
        let Some(path) = &self.arguments.before_after else { return Ok(()) };
        if pictures.is_empty() {
            return Ok(());
        }
        io::write(path, &Picture::new(before_after::sheet(pictures)?, Depth::Eight))?;
        output::note(format_args!("wrote {}, before and after", path.display()));
        Ok(())
    }

    pub(super) fn print(&self, facts: &Value) -> anyhow::Result<()> {
        if self.arguments.json { output::line(facts) } else { Ok(()) }
    }

    pub(super) fn picture(&self, task: &Task) -> anyhow::Result<Done> {
        let input = source(&task.input);
        let mut pages = output::about(input, || open(task))?;
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
        let (noise, model, shown, proof) = (first.noise, first.model, first.shown, first.proof);
        let mut first = Some(first.raster);
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
            ("model".into(), json!(model)),
            ("proof".into(), json!(proof)),
            ("seconds".into(), json!(seconds)),
        ]);
        Ok(Done { pixels, pages: count, noise, model, proof, shown, facts: facts.into() })
    }

    /// Denoises one of `count` pages, and notes the settings in it.
    fn page(&self, mut raster: Raster, count: usize, input: &Path) -> Result<Page> {
        let of_input = |e: Error| Error::file(input, e.to_string());
        let mut shown = self.arguments.before_after.as_ref().map(|_| BeforeAfter::new(&raster));
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
        if let Some(shown) = &mut shown {
            shown.add(&raster, if self.arguments.float { white } else { 1.0 });
        }
        let model =
            ready.built_in.map_or(self.arguments.choice.short_name(), |model| model.name().to_string());
        raster.metadata.settings = Some(self.arguments.choice.settings(&model, ready.noise.as_ref()));
        let proof = ready.proof();
        Ok(Page { raster, noise: ready.noise, model, proof, shown, seconds })
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
    /// What denoised it.
    model: String,
    proof: Option<Proof>,
    shown: Option<BeforeAfter>,
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

fn open(task: &Task) -> Result<Pages> {
    let path = &task.input;
    if !is_standard(path) {
        let open = if task.is_in_place() { Pages::open_in_place } else { Pages::open };
        return open(path, &Limits::default());
    }
    Pages::spool(source(path), &mut std::io::stdin().lock(), &Limits::default())
}

/// What paths to read from and to write to are called.
fn source(path: &Path) -> &Path {
    if is_standard(path) { Path::new("standard input") } else { path }
}

pub(super) fn target(path: &Path) -> &Path {
    if is_standard(path) { Path::new("standard output") } else { path }
}
