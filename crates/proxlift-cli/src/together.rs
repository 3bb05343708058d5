//! `proxlift-mpi`: the commands that several processes do together, each of them running the whole program.
//!
//! The first process speaks and writes. An error that all know of is told once; one that the others do not know of ends them
//! too, by `abort`.

use crate::reproduce::{self, layers};
use crate::{
    BAD_INPUT, Common, end, neighbours, output, prepare_faults, refuse_flags, scaling, sentence_of, sweep,
    train,
};
use clap::{Parser, Subcommand};
use proxlift::team::{Ending, Ranks};
use proxlift::{Error, Result, memory};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long a process that ends with an error waits for the others.
const PATIENCE: Duration = Duration::from_secs(3);

/// Train networks to remove noise on many machines at once.
#[derive(Parser)]
#[command(
    name = "proxlift-mpi",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(Box<train::Arguments>),
    Sweep(sweep::Arguments),
    Reproduce(reproduce::Arguments),
    Layers(layers::Arguments),
    Scaling(scaling::Arguments),
}

/// The whole command as one of several processes. Where the others do not know of an error, it is told, and `abort` ends them.
pub fn main(ranks: &Arc<Ranks>, abort: impl FnOnce(i32) + Copy + Send + Sync + 'static) -> ExitCode {
    #[cfg(not(test))]
    crate::allocator::tell_of_threads_without_memory();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        abort(101);
    }));
    output::start_one_of(ranks.is_first());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // All have the same flags: the first one tells.
        Err(error)
            if !error.use_stderr()
                || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            return if ranks.is_first() { refuse_flags(&error) } else { ExitCode::SUCCESS };
        }
        Err(error) => return finish(ranks, ranks.agree(Err(Error::invalid(sentence_of(&error)))), abort),
    };
    if cli.common.quiet {
        output::be_quiet();
    }
    prepare_faults();
    let run = || Ok(begin(&cli, ranks).map_err(Into::into).and_then(|()| cli.command.run(ranks)));
    let result = memory::or_error(run).unwrap_or_else(|e| Err(e.into()));
    finish(ranks, result, abort)
}

impl Command {
    fn run(&self, ranks: &Arc<Ranks>) -> anyhow::Result<()> {
        match self {
            Self::Train(arguments) => train::run(arguments, ranks),
            Self::Sweep(arguments) => sweep::run(arguments, ranks),
            Self::Reproduce(arguments) => reproduce::run(arguments, Some(ranks.as_ref())),
            Self::Layers(arguments) => layers::run(arguments, ranks),
            Self::Scaling(arguments) => scaling::run(arguments, ranks),
        }
    }
}

/// Settles what holds for the whole program, and that all processes run the same one.
fn begin(cli: &Cli, ranks: &Ranks) -> Result<()> {
    ranks.agree(Ok(()))?;
    neighbours::meet(ranks);
    let program = std::env::current_exe().and_then(std::fs::read).map(|bytes| crc32fast::hash(&bytes));
    let program = program.map_err(Error::io("the program itself")).map(|crc| format!("{crc:08x}"));
    let program = ranks.agree(program)?;
    let other = ranks.bytes_of_all(program.as_bytes()).into_iter().position(|all| all != program.as_bytes());
    ranks.agree(match other {
        Some(other) => Err(Error::invalid(format!(
            "process {other} runs another program than process {}: install the same proxlift-mpi on all machines",
            ranks.rank()
        ))),
        None => Ok(()),
    })?;
    ranks.agree(cli.common.prepare())
}

fn finish<E: Into<anyhow::Error>>(
    ranks: &Ranks,
    result: std::result::Result<(), E>,
    abort: impl FnOnce(i32) + Copy + Send + 'static,
) -> ExitCode {
    let result = result.map_err(Into::into);
    if result.is_ok() {
        return ExitCode::SUCCESS;
    }
    let ending = ranks.ending();
    let code = if ending == Ending::Theirs {
        ExitCode::from(BAD_INPUT)
    } else {
        output::speak();
        end(result)
    };
    // What comes now is only noise: the others end, or are ended.
    output::be_silent();
    neighbours::has_told();
    if ranks.size() > 1 && ending == Ending::Unknown {
        abort(BAD_INPUT.into());
    }
    // Should the others not follow, they are ended too.
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        abort(BAD_INPUT.into());
    });
    code
}
