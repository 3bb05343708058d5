//! `proxlift-mpi scaling`: how long a batch takes here, alone and together, and a model of it for many more processes.
//!
//! ```text
//! T(P, B) = work ceil(B / P) + norms / P + rest            what one process needs for a batch of B, in parts
//!         + 4 W (ceil(B / P) + 1) / bandwidth              gradients of W numbers, of each sample to their sums and back
//!         + (P - 1 + 3 log2 P) latency                     one exchange with everybody, three gathers
//! ```

use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::{files, output};
use proxlift::dataset::ImageSet;
use proxlift::engine::Cpu;
use proxlift::image::Channels;
use proxlift::network::Norms;
use proxlift::team::{Alone, Ranks};
use proxlift::training::{Config, EpochRecord, Session, Settings};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Patches of an epoch, and how often one is measured: the fastest counts.
const PATCHES: usize = 300;
const EPOCHS: usize = 4;
const BATCHES: [usize; 3] = [4, 50, 300];
/// Messages of so many bytes are measured, so often.
const MESSAGES: [usize; 2] = [64, 1 << 20];
const TIMES: usize = 50;
/// As far as the model is drawn.
const MOST: usize = 1024;

/// Measure how long batches take by one process and by all, and draw a model of it for up to 1,024 processes.
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
    norms: f64,
    rest: f64,
    latency: f64,
    bandwidth: f64,
    weights: usize,
}

impl Model {
    fn seconds(&self, processes: usize, batch: usize) -> f64 {
        let (p, share) = (processes as f64, batch.div_ceil(processes) as f64);
        let alone = self.work * share + self.norms / p + self.rest;
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

/// Seconds of a batch.
fn measure(batch: usize, ranks: &Arc<Ranks>) -> proxlift::Result<f64> {
    let (epochs, count) = (Some(EPOCHS), Some(PATCHES));
    let config = Config::resolve(&Settings { batch: Some(batch), epochs, count, ..Settings::default() })?;
    let patches = config.patches(Arc::new(ImageSet::embedded_train(50, 64, Channels::Grey, 0)?))?;
    let mut session = Session::new(&config, config.network()?, &patches)?;
    let mut at = Vec::new();
    session.run(&Cpu::new().among(ranks.clone()), &mut |epoch: &EpochRecord| at.push(epoch.seconds))?;
    let fastest = at.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    Ok(fastest / PATCHES.div_ceil(batch) as f64)
}

/// Seconds of the norms of all layers, and the weights.
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

pub fn run(arguments: &Arguments, ranks: &Arc<Ranks>) -> anyhow::Result<()> {
    let pool = ranks.agree(crate::flags::pool(Some(1)))?;
    pool.install(|| {
        let alone = Arc::new(Ranks::new(Arc::new(Alone)));
        // The others wait meanwhile.
        let one = ranks.from_first(|| {
            BATCHES.iter().map(|&batch| measure(batch, &alone)).collect::<proxlift::Result<Vec<_>>>()
        })?;
        let all = BATCHES.map(|batch| measure(batch, ranks));
        let all = all.into_iter().collect::<proxlift::Result<Vec<_>>>()?;
        let [short, long] = MESSAGES.map(|bytes| measure_message(bytes, ranks));
        let (norms, weights) = measure_norms()?;
        if !ranks.is_first() {
            return Ok(());
        }
        let work = (one[2] - one[0]) / (BATCHES[2] - BATCHES[0]) as f64;
        let model = Model {
            work,
            norms,
            rest: (one[0] - norms - work * BATCHES[0] as f64).max(0.0),
            latency: arguments.latency.unwrap_or(short),
            bandwidth: arguments
                .bandwidth
                .map_or(MESSAGES[1] as f64 / (long - short).max(1e-9), |b| b as f64),
            weights,
        };
        report(arguments, model, ranks.size(), &one, &all)
    })?;
    Ok(ranks.agree(Ok(()))?)
}

fn report(
    arguments: &Arguments,
    model: Model,
    processes: usize,
    one: &[f64],
    all: &[f64],
) -> anyhow::Result<()> {
    output::line(format_args!("one thread for each process; milliseconds of a batch"))?;
    output::line(format_args!(
        "{:>6} {:>10} {:>12} {:>8} {:>10}",
        "batch",
        "1 process",
        format!("{processes} processes"),
        "times",
        "model"
    ))?;
    for ((batch, one), all) in BATCHES.iter().zip(one).zip(all) {
        let (times, model) = (one / all, 1e3 * model.seconds(processes, *batch));
        output::line(format_args!(
            "{batch:>6} {:>10.3} {:>12.3} {times:>8.2} {model:>10.3}",
            1e3 * one,
            1e3 * all
        ))?;
    }
    output::line(format_args!("model {}", json!(model)))?;
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
