//! Training steps of a dense autoencoder: what the trainers of general networks cost.

use super::{Duration, Instant};
use crate::output;
use proxlift::engine::cpu::peak::fma_peak_gflops;
use proxlift::engine::{Cpu, Engine};
use proxlift::laws::random_field;
use proxlift::lifting::{
    Batch, Builder, Dense, GradientDescent, LbFb, LbFbOptions, Loss, Network, Rows, Rule, Trainer, sweep,
};
use proxlift::model::{Metadata, Numbers, write_tensors};
use proxlift::prox::Relu;
use proxlift::training::{Descent, Metric, Rate, Schedule};
use std::path::Path;

const WIDTHS: [usize; 5] = [784, 256, 64, 256, 784];
const BATCH: usize = 100;
/// Samples of an epoch.
const SAMPLES: usize = 5000;
const MU: f32 = 0.1;
/// Adam's settings, those that PyTorch has by default.
const DESCENT: Descent = Descent {
    metric: Metric::Diagonal,
    momentum: 0.9,
    beta2: 0.999,
    rate: Rate { start: 1e-3, schedule: Schedule::Constant },
};
/// Steps that the export holds the losses of.
const STEPS: usize = 10;

fn network() -> Network<f32> {
    let last = WIDTHS.len() - 2;
    let layer = |k: usize| {
        let (inputs, outputs) = (WIDTHS[k], WIDTHS[k + 1]);
        let scale = (2.0 / inputs as f64).sqrt();
        let weights = random_field::<f64>(inputs * outputs, k as u64 + 1);
        let weights = weights.iter().map(|w| (scale * w) as f32).collect();
        Dense::new(inputs, weights, vec![0.01; outputs]).expect("weights that fit")
    };
    let hidden = |network: Builder<f32>, k| network.layer(layer(k), Relu);
    (0..last).fold(Network::new(Loss::Squared), hidden).output(layer(last)).expect("layers that fit")
}

fn samples() -> Rows<f32> {
    let values = random_field::<f64>(SAMPLES * WIDTHS[0], 9);
    Rows::new(WIDTHS[0], values.iter().map(|v| v.abs().min(1.0) as f32).collect()).expect("whole samples")
}

/// The samples in an order of their own for each epoch, by a step that no batch size divides.
fn shuffled(epoch: usize) -> Vec<usize> {
    (0..SAMPLES).map(|i| (i * (1999 + 4 * epoch) + 17 * epoch) % SAMPLES).collect()
}

fn descent(network: &Network<f32>, rule: Rule<f32>) -> proxlift::Result<Box<dyn Trainer<f32>>> {
    Ok(Box::new(GradientDescent::new(network, rule, DESCENT)?))
}

/// One figure of the table.
#[derive(serde::Serialize)]
struct Figure {
    operation: &'static str,
    /// The least time of a step.
    seconds: f64,
    /// The median of the steps.
    median_seconds: f64,
    /// Of the products of one sweep, over the least time.
    gflops: f64,
    /// The least time of an epoch, batches drawn at random.
    epoch_seconds: f64,
}

/// Times every trainer in turn.
pub fn measure(budget: Duration, json: bool) -> anyhow::Result<()> {
    let samples = samples();
    let start = network();
    let lifted = Rule::Lifted { mu: MU };
    let mut trainers: Vec<(&'static str, Box<dyn Trainer<f32>>)> = vec![
        ("back-propagation, Adam", descent(&start, Rule::Backprop)?),
        ("lifted, Adam", descent(&start, lifted)?),
        ("centred, Adam", descent(&start, Rule::Centred { mu: MU })?),
        ("LB-FB", Box::new(LbFb::new(&start, LbFbOptions::default(), SAMPLES)?)),
    ];
    let mut networks: Vec<Network<f32>> = trainers.iter().map(|_| network()).collect();
    let mut times: Vec<(Vec<f64>, Vec<f64>)> = trainers.iter().map(|_| Default::default()).collect();
    let (mut batch, mut peak) = (Rows::zeros(BATCH, WIDTHS[0]), 0f64);
    let (begin, mut epoch) = (Instant::now(), 0);
    while epoch < 2 || begin.elapsed() < budget * trainers.len() as u32 {
        peak = peak.max(fma_peak_gflops(2));
        let order = shuffled(epoch);
        for (((_, trainer), network), (steps, epochs)) in
            trainers.iter_mut().zip(&mut networks).zip(&mut times)
        {
            let whole = Instant::now();
            for indices in order.chunks_exact(BATCH) {
                batch.gather(&samples, indices)?;
                let step = Instant::now();
                trainer.step(network, Batch { z: &batch, x: &batch, indices }, 0.0)?;
                steps.push(step.elapsed().as_secs_f64());
            }
            epochs.push(whole.elapsed().as_secs_f64());
        }
        epoch += 1;
    }
    let flops = flops();
    let figures: Vec<Figure> = trainers
        .iter()
        .zip(&mut times)
        .map(|((operation, _), (steps, epochs))| {
            steps.sort_by(f64::total_cmp);
            let least = epochs.iter().copied().fold(f64::INFINITY, f64::min);
            Figure {
                operation,
                seconds: steps[0],
                median_seconds: steps[steps.len() / 2],
                gflops: flops / steps[0] / 1e9,
                epoch_seconds: least,
            }
        })
        .collect();
    report(&figures, peak, json)
}

/// Operations of a step: forward, adjoint but for the first layer, and gradients.
fn flops() -> f64 {
    let layers = WIDTHS.windows(2).map(|pair| 2 * pair[0] * pair[1] * BATCH);
    layers.enumerate().map(|(k, product)| if k == 0 { 2 * product } else { 3 * product }).sum::<usize>()
        as f64
}

fn report(figures: &[Figure], peak: f64, json: bool) -> anyhow::Result<()> {
    let (engine, flops) = (Cpu::new().name(), flops());
    if json {
        return output::json(&serde_json::json!({
            "engine": engine,
            "threads": rayon::current_num_threads(),
            "fma_peak_gflops": peak,
            "flops": flops,
            "epoch_samples": SAMPLES,
            "figures": figures,
        }));
    }
    output::line(format_args!(
        "{engine}, multiply-add peak {peak:.0} GFLOP/s\n\
         autoencoder 784-256-64-256-784, batch {BATCH}: {:.0} million operations a step, which take {:.2} ms at peak\n",
        flops / 1e6,
        flops / peak / 1e6
    ))?;
    let head = "operation";
    output::line(format_args!("{head:<26} GFLOP/s  of peak      step    median  epoch of {SAMPLES}"))?;
    for Figure { operation, seconds, median_seconds, gflops, epoch_seconds } in figures {
        let [step, median, epoch] = [seconds, median_seconds, epoch_seconds].map(|seconds| 1e3 * seconds);
        let share = 100.0 * gflops / peak;
        output::line(format_args!(
            "{operation:<26} {gflops:>7.1} {share:>6.0} % {step:>6.2} ms {median:>6.2} ms {epoch:>9.1} ms"
        ))?;
    }
    Ok(())
}

/// Writes a batch with the network, the losses and gradients of every rule, and the losses of a few steps of Adam.
pub fn export(path: &Path) -> anyhow::Result<()> {
    let (start, mut z) = (network(), Rows::zeros(BATCH, WIDTHS[0]));
    let samples = samples();
    z.gather(&samples, &shuffled(0)[..BATCH])?;
    let mut tensors: Vec<(String, Vec<usize>, Vec<f32>)> =
        vec![("z".into(), vec![BATCH, WIDTHS[0]], z.data().to_vec())];
    for (k, layer) in start.layers().iter().enumerate() {
        let shape = vec![layer.outputs(), layer.inputs()];
        tensors.push((format!("weight_{k}"), shape, layer.parameters()[0].to_vec()));
        tensors.push((format!("bias_{k}"), vec![layer.outputs()], layer.parameters()[1].to_vec()));
    }
    for (name, rule) in [("backprop", Rule::Backprop), ("lifted", Rule::Lifted { mu: MU })] {
        let (losses, gradients) = sweep(&start, rule, &z, &z)?;
        let losses = losses.iter().map(|loss| *loss as f32).collect();
        tensors.push((format!("{name}_loss"), vec![BATCH], losses));
        for (k, (gradient, layer)) in gradients.into_iter().zip(start.layers()).enumerate() {
            let shapes = [vec![layer.outputs(), layer.inputs()], vec![layer.outputs()]];
            for ((kind, block), shape) in ["weight", "bias"].iter().zip(gradient).zip(shapes) {
                tensors.push((format!("{name}_grad_{kind}_{k}"), shape, block));
            }
        }
        let (mut network, mut trainer) = (network(), descent(&start, rule)?);
        let batch = Batch { z: &z, x: &z, indices: &[] };
        let step = |_| Ok(trainer.step(&mut network, batch, 0.0)?.loss as f32);
        let losses = (0..STEPS).map(step).collect::<proxlift::Result<Vec<f32>>>()?;
        tensors.push((format!("{name}_steps"), vec![STEPS], losses));
    }
    let numbers = tensors.iter().map(|(n, shape, data)| (n.clone(), shape.clone(), Numbers::Single(data)));
    let numbers: Vec<_> = numbers.collect();
    let mut bytes = Vec::new();
    write_tensors(&mut bytes, &Metadata::new(), &numbers)?;
    crate::files::write(path, &bytes)?;
    output::line(format_args!("wrote {}", path.display()))
}
