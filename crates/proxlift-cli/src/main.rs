//! `proxlift`: flags -> plan -> work. The library does the work; this crate only converts.

mod bench;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Train and run unfolded proximal networks for image denoising, without back-propagation.
#[derive(Parser)]
#[command(version, propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Arguments),
}

/// What bad input gets.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            let bad_input = error.downcast_ref::<proxlift::Error>().is_some();
            ExitCode::from(if bad_input { BAD_INPUT } else { 1 })
        }
    }
}
