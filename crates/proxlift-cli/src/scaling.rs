//! `proxlift-mpi scaling`: how long a batch takes here, alone and together, and a model of it for many more processes.
//!
//! ```text
//! T(P, B) = (work + input) ceil(B / P) + norms / P + rest  what one process needs for a batch of B, in parts
//!         + 4 W (ceil(B / P) + 1) / bandwidth              gradients of W numbers, of each sample to their sums and back
//!         + (P - 1 + 3 log2 P) latency                     one exchange with everybody, and three gathers
//! ```

use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::{files, flags::pool, output};
use proxlift::Error;
use proxlift::dataset::{ImageSet, Patches, Visit};
use proxlift::engine::Cpu;
use proxlift::image::Channels;
use proxlift::network::Norms;
use proxlift::team::{Alone, Ranks};
use proxlift::training::{Config, EpochRecord, Session, Settings};
use rayon::ThreadPool;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Patches of an epoch at least, and epochs that are measured in a turn, after one that warms up; the fastest of all counts.
const PATCHES: usize = 300;
const EPOCHS: usize = 3;
const TURNS: usize = 3;
/// Batches for all processes together, and for each of them.
const STRONG: [usize; 3] = [4, 50, 300];
const WEAK: [usize; 2] = [4, 50];
/// Messages of so many bytes are measured, so often.
const MESSAGES: [usize; 2] = [64, 1 << 20];
const TIMES: usize = 50;
/// As far as the model is drawn.
const MOST: usize = 1024;

/// Measure how long batches take by one process, by as many threads and by all processes, and draw a model of it.
///
/// Strong scaling has a batch of fixed size, weak scaling as many samples for each process. The plot shows the model for up to
/// 1,024 processes.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the plot goes, an SVG
    #[arg(long, value_name = "FILE", default_value = "scaling.svg")]
    out: PathBuf,
    /// Seconds that a message takes on the way, for the model [default: as measured here]
    #[arg(long, value_name = "SECONDS", value_parser = crate::flags::not_negative)]
    latency: Option<f64>,
    /// Bytes that go through in a second, for the model [default: as measured here]
    #[arg(long, value_name = "BYTES", value_parser = crate::flags::bytes)]
    bandwidth: Option<u64>,
}

/// The parts of the time of a batch, in seconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Model {
    work: f64,
    input: f64,
    norms: f64,
    rest: f64,
    latency: f64,
    bandwidth: f64,
    weights: usize,
}

impl Model {
    fn seconds(&self, processes: usize, batch: usize) -> f64 {
        let (p, share) = (processes as f64, batch.div_ceil(processes) as f64);
        let alone = (self.work + self.input) * share + self.norms / p + self.rest;
        if processes == 1 {
            return alone;
        }
        let bytes = 4.0 * self.weights as f64 * (share + 1.0);
        alone + bytes / self.bandwidth + (p - 1.0 + 3.0 * p.log2()) * self.latency
    }

    /// The share of the processes' time that is not lost against one process.
    fn efficiency(&self, processes: usize, batch: usize) -> f64 {
        self.seconds(1, batch) / (processes as f64 * self.seconds(processes, batch))
    }

    /// The least batch that keeps 90 %.
    fn batch_for(&self, processes: usize) -> Option<usize> {
        (1..=1 << 12).map(|per| per * processes).find(|&batch| self.efficiency(processes, batch) >= 0.9)
    }
}

/// The paper's network with batches of this size, and its patches.
fn setting(batch: usize) -> proxlift::Result<(Config, Patches)> {
    let count = Some(PATCHES.next_multiple_of(batch));
    let settings = Settings { batch: Some(batch), epochs: Some(1 + EPOCHS), count, ..Settings::default() };
    let config = Config::resolve(&settings)?;
    let patches = config.patches(Arc::new(ImageSet::embedded_train(50, 64, Channels::Grey, 0)?))?;
    Ok((config, patches))
}

/// Seconds of a batch.
fn measure(batch: usize, ranks: &Arc<Ranks>) -> proxlift::Result<f64> {
    let (config, patches) = setting(batch)?;
    let mut session = Session::new(&config, config.network()?, &patches)?;
    let mut at = Vec::new();
    session.run(&Cpu::new().among(ranks.clone()), &mut |epoch: &EpochRecord| at.push(epoch.seconds))?;
    let fastest = at.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    Ok(fastest / patches.len().div_ceil(batch) as f64)
}

/// Seconds in which a patch is cut and gets its noise.
fn measure_input() -> proxlift::Result<f64> {
    let (_, patches) = setting(PATCHES)?;
    let indices: Vec<usize> = (0..patches.len()).collect();
    let mut x = vec![0.0; indices.len() * patches.values()];
    let mut z = x.clone();
    let once = |i: usize| {
        let start = Instant::now();
        patches.fill(&indices, Visit { place: i as u64, noise: i as u64 }, &mut x, &mut z);
        start.elapsed().as_secs_f64()
    };
    Ok((0..TIMES).map(once).fold(f64::INFINITY, f64::min) / indices.len() as f64)
}

/// Seconds of the norms of all layers in a batch, on the average, and the weights.
fn measure_norms() -> proxlift::Result<(f64, usize)> {
    let mut network = Config::resolve(&Settings::default())?.network()?;
    let mut norms = Norms::new(&network, 0);
    norms.converge(&mut network);
    let once = |_| {
        let start = Instant::now();
        norms.follow(&mut network);
        start.elapsed().as_secs_f64()
    };
    let fastest = (0..TIMES).map(once).fold(f64::INFINITY, f64::min);
    Ok((fastest, network.filters().map(|theta| theta.weights().len()).sum()))
}

/// Seconds of a gather of so many bytes from everybody.
fn measure_message(bytes: usize, ranks: &Ranks) -> f64 {
    let own = vec![0_f64; bytes / 8 / ranks.size()];
    let number = own.len() * ranks.size();
    let once = |_| {
        let start = Instant::now();
        ranks.of_parts(own.clone(), number);
        start.elapsed().as_secs_f64()
    };
    (0..TIMES).map(once).fold(f64::INFINITY, f64::min)
}

/// Seconds of batches, and who took them.
struct Row {
    /// Samples of a batch of one process, and of all together.
    batches: [usize; 2],
    one: f64,
    /// By one process on as many threads as there are processes, with all samples.
    threads: f64,
    all: f64,
}

impl Row {
    fn new(one: usize, all: usize) -> Self {
        Self { batches: [one, all], one: f64::INFINITY, threads: f64::INFINITY, all: f64::INFINITY }
    }

    /// One turn of each; while the first process works alone the others sleep.
    fn measure(&mut self, pools: &[ThreadPool; 2], ranks: &Arc<Ranks>) -> proxlift::Result<()> {
        let [one, all] = self.batches;
        if ranks.is_first() {
            let alone = Arc::new(Ranks::new(Arc::new(Alone)));
            self.one = self.one.min(pools[0].install(|| measure(one, &alone))?);
            self.threads = self.threads.min(pools[1].install(|| measure(all, &alone))?);
        }
        ranks.rest();
        self.all = self.all.min(pools[0].install(|| measure(all, ranks))?);
        Ok(())
    }
}

pub fn run(arguments: &Arguments, ranks: &Arc<Ranks>) -> anyhow::Result<()> {
    let processes = ranks.size();
    let pools = ranks.agree(pool(Some(1)).and_then(|one| Ok([one, pool(Some(processes))?])))?;
    let mut strong = STRONG.map(|batch| Row::new(batch, batch));
    let mut weak = WEAK.map(|share| Row::new(share, share * processes));
    for turn in 1..=TURNS {
        output::note(format_args!("turn {turn} of {TURNS}"));
        strong.iter_mut().chain(&mut weak).try_for_each(|row| row.measure(&pools, ranks))?;
    }
    let [short, long] = MESSAGES.map(|bytes| measure_message(bytes, ranks));
    if ranks.is_first() {
        let (input, (norms, weights)) =
            pools[0].install(|| Ok::<_, Error>((measure_input()?, measure_norms()?)))?;
        let slope = (strong[2].one - strong[0].one) / (STRONG[2] - STRONG[0]) as f64;
        let model = Model {
            work: slope - input,
            input,
            norms,
            rest: (strong[0].one - norms - slope * STRONG[0] as f64).max(0.0),
            latency: arguments.latency.unwrap_or(short),
            bandwidth: arguments
                .bandwidth
                .map_or(MESSAGES[1] as f64 / (long - short).max(1e-9), |b| b as f64),
            weights,
        };
        report(arguments, model, processes, &strong, &weak)?;
    }
    Ok(ranks.agree(Ok(()))?)
}

fn report(
    arguments: &Arguments,
    model: Model,
    processes: usize,
    strong: &[Row],
    weak: &[Row],
) -> anyhow::Result<()> {
    output::line(format_args!("milliseconds of a batch; processes have one thread each"))?;
    let by_threads = format!("{processes} threads");
    let by_all = format!("{processes} processes");
    output::line(format_args!(
        "\n{:>16} {:>10} {by_threads:>10} {by_all:>12} {:>10} {:>10} {:>8}",
        "batch", "1 process", "times 1", "of threads", "model"
    ))?;
    for Row { batches: [_, batch], one, threads, all } in strong {
        let [one, threads, all] = [one, threads, all].map(|seconds| 1e3 * seconds);
        let model = 1e3 * model.seconds(processes, *batch);
        output::line(format_args!(
            "{batch:>16} {one:>10.3} {threads:>10.3} {all:>12.3} {:>10.2} {:>10.2} {model:>8.3}",
            one / all,
            threads / all
        ))?;
    }
    output::line(format_args!(
        "\n{:>16} {:>10} {by_threads:>10} {by_all:>12} {:>10} {:>10} {:>8}",
        "for each process", "1 process", "efficiency", "of threads", "model"
    ))?;
    for Row { batches: [share, batch], one, threads, all } in weak {
        let [one, threads, all] = [one, threads, all].map(|seconds| 1e3 * seconds);
        let model = 1e3 * model.seconds(processes, *batch);
        output::line(format_args!(
            "{share:>16} {one:>10.3} {threads:>10.3} {all:>12.3} {:>10.2} {:>10.2} {model:>8.3}",
            one / all,
            threads / all
        ))?;
    }
    output::line(format_args!("\nmodel {}", json!(model)))?;
    for processes in [2, 8, 32, 128, MOST] {
        let batch = model.batch_for(processes).map_or("none".into(), |batch| batch.to_string());
        output::line(format_args!(
            "90 % efficiency with {processes} processes: batches of {batch} at least"
        ))?;
    }
    let sizes = [4, 50, 512, 4096];
    let powers = || (0..).map(|i| 1_usize << i).take_while(|&p| p <= MOST);
    let line = |i: usize, f: &dyn Fn(usize) -> f64| {
        Line::new(Style::kind(i), powers().map(|p| (p as f64, f(p))).collect())
    };
    let strong = sizes
        .iter()
        .enumerate()
        .map(|(i, &batch)| line(i, &|p| model.seconds(1, batch) / model.seconds(p, batch)));
    let weak = [1, 4, 16, 64]
        .iter()
        .enumerate()
        .map(|(i, &share)| line(i, &|p| model.seconds(1, share) / model.seconds(p, share * p)));
    let weak = weak.collect();
    let panels = vec![
        Panel::new(
            "Times as fast as one process, a batch of fixed size",
            Axis::log("processes"),
            Axis::log("times"),
            strong.collect(),
        ),
        Panel::new(
            "Efficiency with 1, 4, 16, 64 samples for each process",
            Axis::log("processes"),
            Axis::linear("share"),
            weak,
        ),
    ];
    let name = |i: usize| (format!("batch {} / {} for each", sizes[i], [1, 4, 16, 64][i]), Style::kind(i));
    let chart = Chart {
        title: "Training over MPI, modelled".into(),
        subtitle: format!("latency {:.1} µs, {:.1} GB/s", 1e6 * model.latency, model.bandwidth / 1e9),
        legend: (0..sizes.len()).map(name).collect(),
        panels,
        columns: 2,
        frame: (420.0, 300.0),
        ..Chart::default()
    };
    files::write(&arguments.out, chart.draw().as_bytes())?;
    output::line(format_args!("plot {}", arguments.out.display()))
}
