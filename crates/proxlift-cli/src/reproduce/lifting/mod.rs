//! `proxlift reproduce --only lifting`: what lifted training brings, where it differs from back-propagation in one thing.
//!
//! ```text
//! size -> jobs -> work (those that are not done yet) -> cases, each with a verdict -> report.html
//! ```

mod compare;
mod denoising;
mod digits;
mod experiments;
mod infinite;
mod inversion;
mod job;
mod kept;
mod memory;
mod method;
mod page;
mod parallel;
mod pieces;
mod point;
mod relatives;

use super::folder::Folder;
use crate::output::{self, Progress};
use crate::train::announce::duration;
use crate::workers::{over_processes, side_by_side};
use crate::{flags::pool, train::interrupt};
use anyhow::Result;
use digits::DigitSet;
use experiments::Size;
use job::Job;
use maud::Markup;
pub use memory::{Way, measure as measure_memory};
pub use parallel::over_processes as layers;
use proxlift::team::Ranks;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What was asked for.
pub struct Asked {
    pub size: Size,
    /// A folder with MNIST's files.
    pub digits: Option<PathBuf>,
    pub out: Option<PathBuf>,
    pub threads: Option<usize>,
}

impl Asked {
    pub fn new(quick: bool, tiny: bool, seeds: Option<u64>) -> Self {
        let size = match (quick, tiny) {
            (true, _) => experiments::QUICK,
            (_, true) => experiments::TINY,
            _ => experiments::FULL,
        };
        let size = Size { seeds: seeds.unwrap_or(size.seeds), ..size };
        Self { size, digits: None, out: None, threads: None }
    }
}

impl Asked {
    /// The folder of the report.
    fn root(&self) -> PathBuf {
        let size = self.size.name;
        let name = if size == "full" { "lifting".to_string() } else { format!("lifting-{size}") };
        self.out.clone().unwrap_or(name.into())
    }
}

/// The trainings alone, spread over processes: what is timed after them needs the machine for itself.
pub fn train_among(asked: &Asked, ranks: &Ranks) -> Result<()> {
    let size = &asked.size;
    let data = ranks.agree(DigitSet::load(asked.digits.as_deref(), (size.samples, size.tests)))?;
    let root = asked.root();
    let _folder = super::among::open(&root, Some(ranks))?;
    let (jobs, runs) = (experiments::jobs(size), Folder::runs_in(&root));
    jobs.iter().for_each(|job| job.recall(&runs, &data));
    // The longest first; what is done, the first process says.
    let waiting: Vec<usize> = ranks.from_first(|| {
        let mut waiting: Vec<usize> = (0..jobs.len()).filter(|&i| !jobs[i].is_done()).collect();
        waiting.sort_by(|&a, &b| jobs[b].cost.total_cmp(&jobs[a].cost));
        Ok(waiting)
    })?;
    let names: Vec<_> = waiting.iter().map(|&i| jobs[i].path(&runs, &data.fingerprint)).collect();
    super::among::same_work(&format!("{names:?}"), ranks)?;
    output::note(format_args!("digits    {}", data.described));
    output::note(format_args!("to do     {} trainings by {} processes", waiting.len(), ranks.size()));
    over_processes(&waiting, ranks, |&i| Ok(pool(Some(1))?.install(|| jobs[i].work(&runs, &data))?))?;
    output::note(format_args!(
        "the trainings are done; the same command of proxlift instead of proxlift-mpi measures the rest and writes the report"
    ));
    Ok(())
}

/// Trains what the report needs, and writes it; whatever was computed stays in the folder.
pub fn run(asked: &Asked) -> Result<()> {
    let (size, start) = (&asked.size, Instant::now());
    let threads = pool(asked.threads)?.current_num_threads();
    let data = DigitSet::load(asked.digits.as_deref(), (size.samples, size.tests))?;
    let root = asked.root();
    let folder = Folder::open(&root)?;
    let jobs = experiments::jobs(size);
    jobs.iter().for_each(|job| job.recall(&folder.runs(), &data));
    output::note(format_args!("digits    {}", data.described));
    output::note(format_args!("to do     {} trainings, {threads} at a time", jobs.len()));
    interrupt::listen();
    carry_out(&jobs, &folder.runs(), &data, threads)?;
    let more = if jobs.iter().all(Job::is_done) { more(&folder, size, threads)? } else { None };
    let Some(more) = more else {
        output::note(format_args!("stopped; nothing is lost: the same command resumes {}", root.display()));
        std::process::exit(interrupt::EXIT_CODE);
    };
    let page = page::write(&folder, size, &data, &jobs, &more)?;
    output::note(format_args!("took      {}", duration(start.elapsed().as_secs_f64())));
    output::line(page.display())
}

/// The sections that are no trainings at chosen rates; none after Ctrl-C.
fn more(folder: &Folder, size: &Size, threads: usize) -> Result<Option<Vec<Markup>>> {
    output::note("inverting networks");
    let Some(inversion) = inversion::all(folder, size, threads)? else { return Ok(None) };
    output::note("training at infinite depth");
    let Some(infinite) = infinite::all(folder, size, threads)? else { return Ok(None) };
    output::note("measuring memory");
    let memory = memory::all(folder, size.memory_depths)?;
    // Last, for nothing else must run beside it.
    output::note("timing layers in parallel");
    let Some(parallel) = parallel::all(folder, size, threads)? else { return Ok(None) };
    Ok(Some(vec![
        parallel::section(folder, size, &parallel)?,
        infinite::section(size, &infinite),
        inversion::section(folder, size, &inversion)?,
        memory::section(&memory),
    ]))
}

/// Does all that are not done yet, the longest first, until Ctrl-C.
fn carry_out(jobs: &[Job], runs: &Path, data: &DigitSet, threads: usize) -> Result<()> {
    let mut waiting: Vec<&Job> = jobs.iter().filter(|job| !job.is_done()).collect();
    waiting.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    if waiting.len() < jobs.len() {
        output::note(format_args!("{} of {} are done already", jobs.len() - waiting.len(), jobs.len()));
    }
    let total: f64 = waiting.iter().map(|job| job.cost).sum();
    let (bar, done) = (Progress::with_text(0, 1000), Mutex::new((0, 0.0)));
    side_by_side(&waiting, threads, |job| {
        if !interrupt::asked() {
            pool(Some(1))?.install(|| job.work(runs, data))?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            *done = (done.0 + 1, done.1 + job.cost);
            bar.show(
                (1000.0 * done.1 / total) as usize,
                format!("{} of {} trainings", done.0, waiting.len()),
            );
        }
        Ok(())
    })
}
