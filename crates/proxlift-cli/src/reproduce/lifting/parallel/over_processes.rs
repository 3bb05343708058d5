//! `proxlift-mpi layers`: the layers of one network spread over processes, against the sweep.

use super::measure::{INNER, SAMPLES, Setting};
use super::{BATCHES, Found};
use crate::flags::pool;
use crate::output;
use anyhow::Result;
use proxlift::Error;
use proxlift::team::Ranks;
use std::sync::Arc;

/// Spread the layers of one network over all processes, and compare with the sweep.
///
/// LB-FB with u kept for every sample, on denoisers as chains of K layers. Processes have a range of layers each, and exchange u
/// and v at its borders; all layers move at once. The sweep, by the first process alone, moves layer after layer. Prints how
/// long an iteration takes, the loss that both come to, and how much sooner all at once comes to a loss that both come to.
#[derive(clap::Args)]
pub struct Arguments {
    /// Layers K of the chains
    #[arg(long, value_name = "K", value_delimiter = ',', default_value = "10,20,40")]
    depths: Vec<usize>,
    /// Rounds over the samples of each training
    #[arg(long, value_name = "N", default_value = "8")]
    rounds: usize,
    /// Trainings of each kind, from different starts
    #[arg(long, value_name = "N", default_value = "3")]
    seeds: u64,
    /// Seconds that each timing of an iteration takes
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = crate::flags::not_negative)]
    seconds: f64,
    /// Threads of each process
    #[arg(long, value_name = "N", default_value = "1")]
    threads: usize,
    /// Print one JSON object instead of the tables
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments, ranks: &Arc<Ranks>) -> Result<()> {
    let Arguments { depths, rounds, seeds, seconds, threads, json } = arguments;
    let sensible = |name: &str, value: usize, most: usize| match value {
        value if (1..=most).contains(&value) => Ok(()),
        value => Err(Error::invalid(format!("--{name} is {value}, but 1 to {most} make sense"))),
    };
    let depths_fit = depths.iter().try_for_each(|&depth| match depth {
        2..=1000 => Ok(()),
        _ => Err(Error::invalid(format!("--depths has {depth}, but chains of 2 to 1000 layers make sense"))),
    });
    let fits = depths_fit.and(sensible("rounds", *rounds, 1000)).and(sensible("seeds", *seeds as usize, 100));
    ranks.agree(fits.and(pool(Some(*threads)).map(|_| ())))?;
    let mut found = Vec::new();
    for &depth in depths {
        for batch in BATCHES {
            let setting = Setting { depth, batch, threads: *threads };
            let times = setting.times_among(*seconds, ranks)?;
            let courses = (0..*seeds).map(|seed| setting.courses(*rounds, seed, ranks));
            let courses = courses.collect::<Result<Vec<_>>>()?;
            if ranks.is_first() {
                output::note(format_args!("measured {depth} layers, batches of {batch}"));
                found.push(Found::of(setting, times, &courses));
            }
        }
    }
    if ranks.is_first() {
        match json {
            true => output::json(&found)?,
            false => tell(&found, ranks.size(), *seeds)?,
        }
    }
    Ok(ranks.agree(Ok(()))?)
}

fn tell(found: &[Found], processes: usize, seeds: u64) -> Result<()> {
    let threads = found.first().map_or(1, |one| one.threads);
    let threads = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
    output::line(format_args!(
        "{processes} processes of {threads}; {SAMPLES} pictures of 24 x 24 pixels, {INNER} iterations on a batch, \
         {seeds} seeds"
    ))?;
    output::line(
        "\nmilliseconds of an iteration: the sweep by one process, all layers at once by one and by all",
    )?;
    output::line(format_args!(
        "{:>6} {:>6} {:>8} {:>8} {:>8} {:>17} {:>15}",
        "layers", "batch", "sweep", "one", "all", "times one process", "times the sweep"
    ))?;
    for one in found {
        let ([sweep, _], [alone, all]) = (one.times.sweep, one.times.parallel);
        output::line(format_args!(
            "{:>6} {:>6} {sweep:>8.2} {alone:>8.2} {all:>8.2} {:>17.2} {:>15.2}",
            one.depth,
            one.batch,
            alone / all,
            sweep / all
        ))?;
    }
    output::line(
        "\nloss of the network, means over the seeds, and how many times sooner than the sweep all at once is there",
    )?;
    output::line(format_args!(
        "{:>6} {:>6} {:>8} {:>10} {:>8} {:>8}  to equal loss",
        "layers", "batch", "start", "iterations", "sweep", "at once"
    ))?;
    for one in found {
        let [sweep, at_once] = one.after_equal_iterations;
        output::line(format_args!(
            "{:>6} {:>6} {:>8.2} {:>10} {:>8.2} {:>8.2}  {}",
            one.depth,
            one.batch,
            one.loss_at_start.mean,
            one.iterations,
            sweep.mean,
            at_once.mean,
            one.to_equal_loss.text(2)
        ))?;
    }
    Ok(())
}
