//! `proxlift completions`: tab completion for shells.

use crate::output;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print the tab completions of a shell.
#[derive(clap::Args)]
#[command(after_help = include_str!("help/completions.txt").trim_end())]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Cli::command(), "proxlift", &mut script);
    output::write(&script)
}
