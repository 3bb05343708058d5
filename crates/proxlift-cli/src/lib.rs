//! `proxlift`: flags -> settings -> work. The library does the work; this crate only converts.
//!
//! A library too, for `proxlift-mpi`, which is the same program on many machines.

#[cfg(not(test))]
mod allocator;
mod before_after;
mod bench;
mod chart;
mod choice;
mod compare;
mod completions;
mod demo;
mod denoise;
mod error_map;
mod evaluate;
mod export;
mod files;
mod flags;
mod html;
mod inspect;
mod neighbours;
mod output;
mod reproduce;
mod restore;
mod scaling;
mod scores;
mod sensitivity;
mod sweep;
mod tasks;
mod test_set;
mod together;
mod train;
mod workers;

pub use together::main as main_together;

use clap::{Parser, Subcommand};
use proxlift::storage::faults;
use proxlift::team::{Alone, Ranks};
use std::process::ExitCode;
use std::sync::Arc;

/// Denoise images with unfolded proximal networks, and train such networks by lifted Bregman.
#[derive(Parser)]
#[command(
    name = "proxlift",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(after_help = include_str!("help/proxlift.txt").trim_end())]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Flags of all commands.
#[derive(clap::Args)]
struct Common {
    /// Print no progress and no notes, only results, warnings and errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Memory to use at most, such as 500M or 4G: work that needs more is refused [default: what is free]
    #[arg(long, global = true, value_name = "BYTES", value_parser = flags::bytes, hide_short_help = true)]
    memory: Option<u64>,
    /// Instruction set to use: avx512, avx2 or sse2, or amx, which trains on the matrix unit of newer Intel processors in
    /// bfloat16 [default: the best of this machine but amx, or PROXLIFT_SIMD]
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    simd: Option<String>,
}

impl Common {
    /// Settles what holds for the whole program.
    fn prepare(&self) -> proxlift::Result<()> {
        flags::start_threads()?;
        self.memory.into_iter().for_each(proxlift::memory::limit_to);
        let of_environment = std::env::var("PROXLIFT_SIMD").ok();
        match self.simd.as_ref().or(of_environment.as_ref()) {
            Some(name) => proxlift::engine::choose_simd(name),
            None => Ok(()),
        }
    }
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Train(Box<train::Arguments>),
    Denoise(denoise::Arguments),
    Restore(restore::Arguments),
    Evaluate(evaluate::Arguments),
    Compare(compare::Arguments),
    Inspect(inspect::Arguments),
    Export(export::Arguments),
    Reproduce(reproduce::Arguments),
    Bench(bench::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// Whether it takes a signal for the wish to stop at a good place.
    fn stops_by_itself(&self) -> bool {
        matches!(self, Self::Train(_) | Self::Reproduce(_))
    }

    fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Demo(arguments) => demo::run(arguments),
            Self::Train(arguments) => train::run(arguments, &Arc::new(Ranks::new(Arc::new(Alone)))),
            Self::Denoise(arguments) => denoise::run(arguments),
            Self::Restore(arguments) => restore::run(arguments),
            Self::Evaluate(arguments) => evaluate::run(arguments),
            Self::Compare(arguments) => compare::run(arguments),
            Self::Inspect(arguments) => inspect::run(arguments),
            Self::Export(arguments) => export::run(arguments),
            Self::Reproduce(arguments) => reproduce::run(arguments, None),
            Self::Bench(arguments) => bench::run(arguments),
            Self::Completions(arguments) => completions::run(arguments),
        }
    }
}

/// What bad input gets.
const BAD_INPUT: u8 = 2;

/// The whole command, from its flags to its exit code.
pub fn main() -> ExitCode {
    #[cfg(not(test))]
    allocator::tell_of_threads_without_memory();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_flags(&error),
    };
    output::start(cli.common.quiet);
    prepare_faults();
    if !cli.command.stops_by_itself() {
        train::interrupt::leave_at_once();
    }
    // Commands tell where memory ran out as far as they can; what they cannot tell is told here.
    let run = || Ok(cli.common.prepare().map_err(Into::into).and_then(|()| cli.command.run()));
    let result = proxlift::memory::or_error(run).unwrap_or_else(|e| Err(e.into()));
    end(result)
}

/// A file that grows beyond what the shell allows (`ulimit -f`) is an error like a full disk, not the end of the process.
/// For tests: makes one of the calls to the disk fail.
fn prepare_faults() {
    #[cfg(unix)]
    // SAFETY: no handler is called, and nothing else sets one for this signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    if let Ok(words) = std::env::var("PROXLIFT_TEST_FAULT") {
        faults::from_words(&words);
    }
}

/// Tells of an error; the exit code.
fn end(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<proxlift::Error>() {
            // The library's sentence is whole: it already tells what the system said.
            Some(sentence) => {
                output::complain("error", &sentence.to_string());
                ExitCode::from(BAD_INPUT)
            }
            None => {
                output::complain("error", &format!("{error:#}"));
                ExitCode::FAILURE
            }
        },
    }
}

/// Help and version go to stdout as they are; a wrong flag gets one line, like any other bad input.
fn refuse_flags(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { BAD_INPUT } else { 0 });
    }
    output::complain("error", &sentence_of(error));
    ExitCode::from(BAD_INPUT)
}

/// What is wrong with the flags, in a line.
fn sentence_of(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said =
        said.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let sentence = said.collect::<Vec<_>>().join(" ").replace(" tip: ", "; ");
    sentence.trim_start_matches("error: ").to_string()
}

#[cfg(test)]
#[path = "../tests/unit/mutations.rs"]
mod mutations;
#[cfg(test)]
#[path = "../tests/unit/pages.rs"]
mod tests;
