//! `proxlift reproduce`: the experiments of the paper -> trainings side by side -> one report.
//!
//! ```text
//! scale, parts -> runs -> work (trainings, resumed where they were stopped) -> results -> sections -> report.html
//! ```

mod among;
mod claims;
mod curves;
mod figure1;
mod figure2;
mod figure3;
mod folder;
mod lifting;
mod machine;
mod pictures;
mod report;
mod results;
mod runs;
mod scale;
mod table1;
mod training;
mod work;

use crate::train::announce::duration;
use crate::{flags::pool, output, train::interrupt};
use anyhow::Result;
use clap::ValueEnum;
use folder::Folder;
pub use lifting::layers;
use pictures::Pictures;
use proxlift::{Error, team::Ranks};
use rayon::ThreadPool;
use report::{Material, write_page};
use results::Results;
use runs::{Part, Run, runs};
use scale::Scale;
use std::path::PathBuf;
use std::time::Instant;
use training::Training;

/// Run the paper's experiments and write one report with all figures, tables and verdicts.
///
/// Everything is trained by the trainers of `proxlift train`, as they are. The report is a single HTML file; the numbers
/// behind every figure are beside it in CSV and JSON, and every trained network is kept.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/reproduce.txt").trim_end())]
pub struct Arguments {
    /// A folder of clean pictures to train on, 1000 at least; of more, 1000 evenly spaced [default: built-in pictures]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A folder of clean pictures to test on, nine at least; of more, nine evenly spaced [default: built-in pictures]
    #[arg(long, value_name = "DIR")]
    test: Option<PathBuf>,
    /// The folder of the report; an existing one is resumed [default: reproduction, or reproduction-quick]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only these parts of the report
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Fewer images and epochs: the shape of the report in two minutes, not its figures
    #[arg(long)]
    quick: bool,
    /// Repeat everything with N seeds; lines become means, with bands from the least to the largest [default: 1; 3 for
    /// lifting]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// The mini-batch of LB-FB and SGD in figure 2, which the paper does not tell [default: 50; 20 with --quick]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// With --only lifting: a folder with MNIST's IDX files, packed or not [default: digits that the program draws]
    #[arg(long, value_name = "DIR")]
    digits: Option<PathBuf>,
    /// Trainings at a time, one thread each [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Prints what a step needs of memory: for processes that --only lifting starts
    #[arg(long, hide = true, requires = "measure_depth")]
    measure_memory: Option<lifting::Way>,
    #[arg(long, hide = true)]
    measure_depth: Option<usize>,
    /// Hardly any work, for tests
    #[arg(long, hide = true, conflicts_with = "quick")]
    tiny: bool,
}

/// What the flags ask for, with its pictures.
struct Asked {
    scale: Scale,
    parts: Vec<Part>,
    runs: Vec<Run>,
    seeds: u64,
    pool: ThreadPool,
    pictures: Pictures,
    root: PathBuf,
}

impl Asked {
    fn new(arguments: &Arguments) -> proxlift::Result<Self> {
        let mut scale = match (arguments.quick, arguments.tiny) {
            (true, _) => scale::QUICK,
            (_, true) => scale::TINY,
            _ => scale::FULL,
        };
        let seeds = arguments.seeds();
        check_seeds(seeds)?;
        if arguments.digits.is_some() {
            return Err(Error::invalid("--digits is for --only lifting: leave it out"));
        }
        scale.batch = arguments.batch.unwrap_or(scale.batch);
        // The pool of the evaluations; its check is that of --threads.
        let pool = pool(arguments.threads)?;
        let mut parts = Part::value_variants().to_vec();
        parts.retain(|part| {
            *part != Part::Lifting && (arguments.only.is_empty() || arguments.only.contains(part))
        });
        let runs = runs(&scale, &parts, seeds)?;
        let (data, test) = (arguments.data.as_deref(), arguments.test.as_deref());
        let pictures = pool.install(|| Pictures::load(data, test, &scale))?;
        let name = match scale.name {
            "full" => "reproduction".into(),
            name => format!("reproduction-{name}"),
        };
        let root = arguments.out.clone().unwrap_or(name.into());
        Ok(Self { scale, parts, runs, seeds, pool, pictures, root })
    }
}

/// Trains what the report needs, and writes it; whatever was computed stays in the folder. Several processes share the
/// trainings.
pub fn run(arguments: &Arguments, ranks: Option<&Ranks>) -> Result<()> {
    if arguments.only.contains(&Part::Lifting) {
        return run_lifting(arguments, ranks);
    }
    let Asked { scale, parts, runs, seeds, pool, pictures, root } =
        among::agreed(Asked::new(arguments), ranks)?;
    let folder = among::open(&root, ranks)?;
    let threads = pool.current_num_threads();
    let at_a_time = ranks.map_or(threads, Ranks::size);

    output::note(format_args!("train on  {}", pictures.described));
    output::note(format_args!("test on   {}", pictures.test_described));
    output::note(format_args!("to do     {} trainings, {at_a_time} at a time", runs.len()));
    let start = Instant::now();
    let sigma = runs[0].config.sigma;
    let noisy = pictures.noisy(sigma)?;
    let trainings: Vec<_> =
        runs.into_iter().map(|run| Training::new(run, &pictures, Folder::runs_in(&root))).collect();
    match ranks {
        Some(ranks) => among::carry_out(&trainings, &pictures, &noisy, ranks)?,
        None => {
            interrupt::listen();
            work::carry_out(&trainings, &pictures, &noisy, threads)?;
        }
    }
    // The first process has the folder, and writes the report.
    let Some(folder) = folder else { return Ok(among::agreed(Ok(()), ranks)?) };
    if !trainings.iter().all(Training::is_done) {
        output::note(format_args!("stopped; nothing is lost: the same command resumes {}", root.display()));
        std::process::exit(interrupt::EXIT_CODE);
    }
    output::note("drawing");
    let results = Results(trainings);
    let material = Material {
        scale: &scale,
        results: &results,
        pictures: &pictures,
        sigma,
        noisy: &noisy,
        folder: &folder,
    };
    let section = |part: &Part| match part {
        Part::Figure1 => figure1::write(&material),
        Part::Figure2 => figure2::write(&material),
        Part::Figure3 => figure3::write(&material),
        Part::Table1 => table1::write(&material),
        Part::Claims => claims::write(&material),
        Part::Lifting => unreachable!("it has a report of its own"),
    };
    let sections = pool.install(|| parts.iter().map(section).collect::<proxlift::Result<Vec<_>>>())?;
    let page = write_page(&material, &sections, seeds, at_a_time)?;
    among::agreed(Ok(()), ranks)?;
    output::note(format_args!("took      {}", duration(start.elapsed().as_secs_f64())));
    output::line(page.display())
}

fn check_seeds(seeds: u64) -> proxlift::Result<()> {
    if (1..=100).contains(&seeds) {
        return Ok(());
    }
    Err(Error::invalid(format!("--seeds is {seeds}, but 1 to 100 make sense")))
}

/// The report on lifted training of any network: none of the paper's parts, so it stands alone.
fn run_lifting(arguments: &Arguments, ranks: Option<&Ranks>) -> Result<()> {
    if let Arguments { measure_memory: Some(way), measure_depth: Some(depth), .. } = arguments {
        return pool(Some(1))?.install(|| lifting::measure_memory(*way, *depth));
    }
    let asked = among::agreed(ask_lifting(arguments), ranks)?;
    match ranks {
        Some(ranks) => lifting::train_among(&asked, ranks),
        None => lifting::run(&asked),
    }
}

fn ask_lifting(arguments: &Arguments) -> proxlift::Result<lifting::Asked> {
    check_seeds(arguments.seeds())?;
    let refused = |flag: &str| Err(Error::invalid(format!("{flag} is not for --only lifting: leave it out")));
    match arguments {
        Arguments { only, .. } if only.len() > 1 => {
            Err(Error::invalid("lifting has a report of its own: give --only lifting alone"))
        }
        Arguments { data: Some(_), .. } => refused("--data"),
        Arguments { test: Some(_), .. } => refused("--test"),
        Arguments { batch: Some(_), .. } => refused("--batch"),
        Arguments { quick, tiny, seeds, digits, out, threads, .. } => Ok(lifting::Asked {
            digits: digits.clone(),
            out: out.clone(),
            threads: *threads,
            ..lifting::Asked::new(*quick, *tiny, *seeds)
        }),
    }
}

impl Arguments {
    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(1)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/reproduce.rs"]
mod tests;
