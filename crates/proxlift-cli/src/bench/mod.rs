//! `proxlift bench`: how fast the engine is, against what the machine's multiply-add units can do.

mod autoencoder;
mod scaling;

use crate::output;
use proxlift::engine::cpu::peak::fma_peak_gflops;
use proxlift::engine::{Cpu, Engine, Gradients, ReverseRule};
use proxlift::field::{Field, Grid};
use proxlift::image::Channels;
use proxlift::laws::random_field;
use proxlift::model::{BuiltIn, Metadata, Numbers, write_tensors};
use proxlift::network::{Architecture, Network};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Measure the engine on this machine and print GFLOP/s as a table.
///
/// The yardstick is the machine's pure multiply-add peak on the same threads in the same run. Times are the best of
/// many repetitions, the peak's too, so that other programs disturb both alike.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/bench.txt").trim_end())]
pub struct Arguments {
    /// Threads to use [default: all cores]
    #[arg(long)]
    threads: Option<usize>,
    /// Seconds to spend on each figure
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Only the two figures of the JSON object's head: the training pass and the forward pass of K=15, J=16
    #[arg(long)]
    short: bool,
    /// How the time of a training epoch grows with the patches, the depth, the features and the threads, instead
    #[arg(long, conflicts_with_all = ["short", "seconds", "export"])]
    scaling: bool,
    /// Training steps of a dense autoencoder, 784-256-64-256-784 in batches of 100, instead
    #[arg(long, conflicts_with_all = ["short", "scaling"])]
    autoencoder: bool,
    /// Write a batch, its network and all results to a safetensors file, for others to check, and measure nothing
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
}

/// The paper's network.
const PAPER: Architecture = Architecture { depth: 15, features: 16, kernel: 3, channels: 1 };
const LAMBDA: f64 = 0.1;
const BATCH: usize = 50;
const PATCH: (usize, usize) = (32, 32);
/// Height and width of the images of BSD.
const IMAGE: (usize, usize) = (321, 481);

/// Measures, or exports.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if !(arguments.seconds > 0.0 && arguments.seconds <= 3600.0) {
        let reason = format!("--seconds is {}, but it must be above 0 and at most 3600", arguments.seconds);
        return Err(proxlift::Error::invalid(reason).into());
    }
    let pool = crate::flags::pool(arguments.threads)?;
    let threads = pool.current_num_threads();
    if arguments.scaling {
        return scaling::run(threads, arguments.json);
    }
    let budget = Duration::from_secs_f64(arguments.seconds);
    pool.install(|| match &arguments.export {
        Some(path) if arguments.autoencoder => autoencoder::export(path),
        None if arguments.autoencoder => autoencoder::measure(budget, arguments.json),
        Some(path) => export(path),
        None => measure(arguments, threads),
    })
}

/// One figure of the table.
#[derive(serde::Serialize)]
struct Figure {
    work: &'static str,
    operation: &'static str,
    gflops: f64,
    seconds: f64,
}

/// A kind of work: a network on a batch of images.
struct Work {
    name: &'static str,
    architecture: Architecture,
    samples: usize,
    size: (usize, usize),
}

impl Work {
    fn all(threads: usize) -> Vec<Self> {
        let wide = Architecture { features: 64, ..PAPER };
        let colour = Architecture { channels: 3, ..PAPER };
        vec![
            Self { name: "J=16, 32x32 grey, batch 50", architecture: PAPER, samples: BATCH, size: PATCH },
            Self { name: "J=16, 481x321 grey", architecture: PAPER, samples: threads, size: IMAGE },
            Self { name: "J=64, 32x32 grey, batch 50", architecture: wide, samples: BATCH, size: PATCH },
            Self { name: "J=16, 32x32 RGB, batch 50", architecture: colour, samples: BATCH, size: PATCH },
        ]
    }

    fn grid(&self) -> Grid {
        self.architecture.grid(self.size.0, self.size.1).expect("a size with pixels")
    }

    fn network(&self) -> Network<f32> {
        Network::glorot(self.architecture, LAMBDA, 1).expect("a valid architecture")
    }

    fn images(&self, samples: usize, seed: u64) -> Field<f32> {
        let channels = self.architecture.channels;
        let planar = random_field(samples * channels * self.grid().pixels(), seed);
        Field::from_planar(samples, channels, self.grid(), &planar).expect("numbers for every pixel")
    }

    fn measure(&self, engine: &Cpu, budget: Duration, operations: &[&'static str]) -> Vec<Figure> {
        let (architecture, samples, grid) = (self.architecture, self.samples, self.grid());
        let network = self.network();
        let (z, x) = (self.images(samples, 1), self.images(samples, 2));
        let mut u = Field::zeros(samples, architecture.features, grid);
        engine.analyse(&network.theta[0], &z, &mut u);
        let (mut v, mut r) = (u.clone(), z.clone());
        let mut gradient = network.theta[0].clone();
        let mut gradients = Gradients::zeros(&network, samples);
        // A single image is what people denoise; a batch is what one trains on.
        let whole = if self.size == IMAGE { self.images(1, 1) } else { z.clone() };
        let mut output = whole.clone();

        let convolution = 2 * architecture.layer_parameters() * samples * grid.pixels();
        let forward = architecture.forward_flops() * whole.samples() * grid.pixels();
        let training = architecture.training_flops() * samples * grid.pixels();
        let layer = network.layer(1);
        let mut run = |operation: &str| match operation {
            "layer forward" => engine.layer(layer, &u, &z, &mut r, &mut v),
            "adjoint" => engine.residual(layer.theta, &u, &z, &mut r),
            "weight gradient" => engine.correlate(1.0, &z, &u, &mut gradient),
            "network forward, K=15" => engine.denoise(&network, &whole, &mut output),
            _ => engine
                .training_pass(&network, ReverseRule::Lifted { mu: 0.1 }, &z, &x, &mut gradients)
                .expect("a batch that fits the network"),
        };
        let figure = |&operation: &&'static str| {
            let flops = match operation {
                "layer forward" => 2 * convolution,
                "adjoint" | "weight gradient" => convolution,
                "network forward, K=15" => forward,
                _ => training,
            };
            let seconds = best_time(budget, || run(operation));
            Figure { work: self.name, operation, gflops: flops as f64 / seconds / 1e9, seconds }
        };
        operations.iter().map(figure).collect()
    }
}

/// The built-in model `best`: a picture forward, and a batch of training with its learned activations.
fn of_best(engine: &Cpu, budget: Duration, (work, channels): (&'static str, Channels)) -> [Figure; 2] {
    let network = &BuiltIn::Best.model(channels).network;
    let architecture = network.architecture();
    let images = |samples: usize, (height, width): (usize, usize), seed: u64| {
        let grid = architecture.grid(height, width).expect("a size with pixels");
        let planar = random_field(samples * architecture.channels * grid.pixels(), seed);
        Field::from_planar(samples, architecture.channels, grid, &planar).expect("numbers for every pixel")
    };
    let figure = |operation, flops: usize, seconds: f64| Figure {
        work,
        operation,
        gflops: flops as f64 / seconds / 1e9,
        seconds,
    };
    let picture = images(1, IMAGE, 1);
    let mut output = picture.clone();
    let seconds = best_time(budget, || engine.denoise(network, &picture, &mut output));
    let forward = figure("network forward", architecture.forward_flops() * IMAGE.0 * IMAGE.1, seconds);

    let (samples, size) = (4, (64, 64));
    let (z, x) = (images(samples, size, 1), images(samples, size, 2));
    let mut gradients = Gradients::zeros(network, samples).with_activations(network);
    let rule = ReverseRule::Lifted { mu: 1.0 };
    let seconds = best_time(budget, || {
        engine.training_pass(network, rule, &z, &x, &mut gradients).expect("a batch that fits the network");
    });
    let flops = architecture.training_flops() * samples * size.0 * size.1;
    [forward, figure("training pass, 4 x 64x64", flops, seconds)]
}

const OPERATIONS: [&str; 5] =
    ["layer forward", "adjoint", "weight gradient", "network forward, K=15", "training pass, K=15"];

/// The least time of `f` over as many calls as the budget allows.
fn best_time(budget: Duration, mut f: impl FnMut()) -> f64 {
    f();
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    while start.elapsed() < budget {
        let once = Instant::now();
        f();
        best = best.min(once.elapsed().as_secs_f64());
    }
    best
}

fn measure(arguments: &Arguments, threads: usize) -> anyhow::Result<()> {
    let engine = Cpu::new();
    let budget = Duration::from_secs_f64(arguments.seconds);
    let mut peak = fma_peak_gflops(30);
    let mut figures = Vec::new();
    for (i, work) in Work::all(threads).iter().enumerate() {
        let operations: &[&'static str] = match (arguments.short, i) {
            (false, _) => &OPERATIONS,
            (true, 0) => &["training pass, K=15"],
            (true, 1) => &["network forward, K=15"],
            (true, _) => continue,
        };
        figures.extend(work.measure(&engine, budget, operations));
        peak = peak.max(fma_peak_gflops(10));
    }
    if !arguments.short {
        for work in [("best, 481x321 grey", Channels::Grey), ("best, 481x321 RGB", Channels::Rgb)] {
            figures.extend(of_best(&engine, budget, work));
            peak = peak.max(fma_peak_gflops(10));
        }
    }
    let find = |work: usize, operation: &str| {
        let name = Work::all(threads)[work].name;
        figures.iter().find(|f| f.work == name && f.operation == operation).expect("a figure of the table")
    };
    let training = find(0, "training pass, K=15");
    let forward = find(1, "network forward, K=15");
    let patches_per_second = BATCH as f64 / training.seconds;
    let megapixels_per_second = (IMAGE.0 * IMAGE.1) as f64 / forward.seconds / 1e6;
    if arguments.json {
        let object = serde_json::json!({
            "engine": engine.name(),
            "threads": threads,
            "fma_peak_gflops": peak,
            "training_pass_gflops": training.gflops,
            "training_pass_patches_per_second": patches_per_second,
            "forward_megapixels_per_second": megapixels_per_second,
            "figures": figures,
        });
        return output::json(&object);
    }
    output::line(format_args!("{}, multiply-add peak {peak:.0} GFLOP/s\n", engine.name()))?;
    let (work, operation) = ("work", "operation");
    output::line(format_args!("{work:<28} {operation:<24}   GFLOP/s  of peak       time"))?;
    let mut last = "";
    for Figure { work, operation, gflops, seconds } in &figures {
        let shown = if *work == last { "" } else { work };
        let (share, time) = (100.0 * gflops / peak, 1e3 * seconds);
        output::line(format_args!(
            "{shown:<28} {operation:<24} {gflops:>9.1} {share:>6.0} % {time:>7.2} ms"
        ))?;
        last = work;
    }
    output::line(format_args!(
        "\ntraining {patches_per_second:.0} patches of 32x32 a second, denoising {megapixels_per_second:.1}\n\
         megapixels a second, both with the network K=15, J=16, 3x3, grey"
    ))
}

/// Writes a batch with its network, outputs, losses and back-propagation gradients.
fn export(path: &Path) -> anyhow::Result<()> {
    let engine = Cpu::new();
    let [patches, image, ..] = &Work::all(1)[..] else { unreachable!("the table has two rows and more") };
    let network = patches.network();
    let (z, x) = (patches.images(BATCH, 1), patches.images(BATCH, 2));
    let mut output = z.clone();
    engine.denoise(&network, &z, &mut output);
    let mut gradients = Gradients::zeros(&network, BATCH);
    engine.training_pass(&network, ReverseRule::Backprop, &z, &x, &mut gradients)?;
    let photo = image.images(1, 3);
    let mut photo_output = photo.clone();
    engine.denoise(&network, &photo, &mut photo_output);

    let batch = [BATCH, 1, PATCH.0, PATCH.1];
    let single = [1, 1, IMAGE.0, IMAGE.1];
    let filters = [PAPER.features, PAPER.channels, PAPER.kernel, PAPER.kernel];
    let loss = gradients.loss.iter().map(|l| *l as f32).collect();
    let lambda = network.activation[0].piecewise().map_or(Vec::new(), |clip| clip.knots().to_vec());
    let mut tensors: Vec<(String, Vec<usize>, Vec<f32>)> = vec![
        ("z".into(), batch.into(), z.to_planar()),
        ("x".into(), batch.into(), x.to_planar()),
        ("output".into(), batch.into(), output.to_planar()),
        ("loss".into(), vec![BATCH], loss),
        ("tau".into(), vec![network.tau.len()], network.tau.clone()),
        ("lambda".into(), vec![PAPER.features], lambda),
        ("image".into(), single.into(), photo.to_planar()),
        ("image_output".into(), single.into(), photo_output.to_planar()),
    ];
    for (k, (theta, gradient)) in network.theta.iter().zip(&gradients.theta).enumerate() {
        tensors.push((format!("theta_{k}"), filters.into(), theta.weights().to_vec()));
        tensors.push((format!("grad_theta_{k}"), filters.into(), gradient.weights().to_vec()));
    }
    let numbers = tensors.iter().map(|(n, shape, data)| (n.clone(), shape.clone(), Numbers::Single(data)));
    let numbers: Vec<_> = numbers.collect();
    let mut bytes = Vec::new();
    write_tensors(&mut bytes, &Metadata::new(), &numbers)?;
    crate::files::write(path, &bytes)?;
    output::line(format_args!("wrote {}", path.display()))
}
