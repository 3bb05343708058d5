//! Training at infinite depth, beside training through a number of tied layers.
//!
//!     cargo run --release --example fixed_point [SECONDS [JSON]]
//!
//! One operator of 16 filters is trained to denoise patches of 32 x 32 pixels (sigma 0.1, batches of 20, fixed noise), for so
//! many seconds with each of
//!
//! - **implicit**: the gradient at the fixed point, by conjugate gradients;
//! - **lifted**, **centred**: that of the lifted energy there, by one or two more fixed points;
//! - **unrolled K**: back-propagation through `K` tied layers.
//!
//! Scores are those of other patches: PSNR of the network that was trained, and of its limit at infinite depth.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::engine::{Cpu, Engine};
use proxlift::field::Field;
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::lifting::{
    Acceleration, FixedPoint, FixedPointOptions, FixedPointParams, FixedPointRule, FixedPointTrainer,
};
use proxlift::network::{Architecture, Network};
use proxlift::training::{
    self, Batch, Constraint, Descent, GradientDescent, Metric, Rate, Schedule, Trainer,
};
use proxlift::{Error, Result};
use serde_json::json;
use std::time::Instant;

const SIDE: usize = 32;
const SIGMA: f32 = 0.1;
const TRAINING: usize = 400;
const TEST: usize = 60;
const BATCH: usize = 20;
const FEATURES: usize = 16;
/// For training, fixed points and their linear systems need not be solved as well as for use.
const PARAMS: FixedPointParams = FixedPointParams {
    acceleration: Acceleration::Nesterov,
    tolerance: 1e-3,
    most: 200,
    adjoint_tolerance: 3e-2,
    adjoint_most: 40,
};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10.0);
    let start = start()?;
    let mut rows = Vec::new();
    println!(
        "| gradient | epochs | layers a batch | after them | training loss | PSNR | PSNR of the limit |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, rule) in [
        ("implicit", FixedPointRule::Implicit),
        ("lifted, mu 0.1", FixedPointRule::Lifted { mu: 0.1 }),
        ("centred, mu 0.1", FixedPointRule::Centred { mu: 0.1 }),
    ] {
        let mut network = start.unrolled(2)?;
        let params = PARAMS;
        let options = FixedPointOptions { rule, descent: descent(), params, warm: true, zero_mean: true };
        let mut trainer = FixedPointTrainer::new(&network, options, TRAINING, 0)?;
        let run = train(&mut network, &mut trainer, seconds)?;
        let (forward, backward) = trainer.iterations();
        let each = |total: usize| format!("{:.1}", total as f64 / run.batches as f64);
        let limit = psnr_of_limit(&network)?;
        rows.push(report(name, &run, [each(forward), each(backward)], (limit, limit)));
    }
    for depth in [5, 10, 20] {
        let mut network = start.unrolled(depth)?;
        let constraint = Constraint { zero_mean: true, tied: true };
        let mut trainer = GradientDescent::new(&network, training::Rule::Backprop, descent(), constraint, 0)?;
        let run = train(&mut network, &mut trainer, seconds)?;
        let scores = (psnr_of(&network)?, psnr_of_limit(&network)?);
        let layers = [depth.to_string(), depth.to_string()];
        rows.push(report(&format!("unrolled {depth}"), &run, layers, scores));
    }
    if let Some(path) = arguments.next() {
        std::fs::write(&path, json!(rows).to_string()).map_err(Error::io(&path))?;
    }
    Ok(())
}

/// What all start from.
fn start() -> Result<FixedPoint<f32>> {
    let sizes = Architecture { depth: 2, features: FEATURES, kernel: 3, channels: 1 };
    let network = Network::<f32>::glorot(sizes, 0.05, 1)?.centered(1);
    FixedPoint::new(network.theta[1].clone(), network.tau[0], network.activation[0].clone())
}

fn descent() -> Descent {
    let rate = Rate { start: 3e-3, schedule: Schedule::Cosine };
    Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate }
}

struct Run {
    batches: usize,
    loss: f64,
}

fn train(network: &mut Network<f32>, trainer: &mut dyn Trainer, seconds: f64) -> Result<Run> {
    let batches =
        (0..TRAINING / BATCH).map(|i| samples(i * BATCH, BATCH, network)).collect::<Result<Vec<_>>>()?;
    let (engine, begin) = (Cpu::new(), Instant::now());
    let (mut losses, mut done) = (vec![f64::NAN; batches.len()], 0);
    loop {
        let progress = begin.elapsed().as_secs_f64() / seconds;
        if progress >= 1.0 {
            break;
        }
        let i = done % batches.len();
        losses[i] = trainer.step(&engine, network, &batches[i], progress)?.loss;
        done += 1;
    }
    Ok(Run { batches: done, loss: losses.iter().sum::<f64>() / TRAINING as f64 })
}

fn samples(first: usize, count: usize, network: &Network<f32>) -> Result<Batch> {
    let (mut z, mut x) = (Vec::new(), Vec::new());
    for i in first..first + count {
        let clean = dead_leaves(11, i as u64, SIDE, SIDE, Channels::Grey)?;
        z.extend_from_slice(add_gaussian(&clean, SIGMA, 12, i as u64)?.data());
        x.extend_from_slice(clean.data());
    }
    let grid = network.architecture().grid(SIDE, SIDE)?;
    let field = |planar: &[f32]| Field::from_planar(count, 1, grid, planar);
    Ok(Batch { z: field(&z)?, x: field(&x)?, indices: (first..first + count).collect() })
}

fn psnr_of(network: &Network<f32>) -> Result<f64> {
    let test = samples(TRAINING, TEST, network)?;
    let mut output = test.z.zeros_like();
    Cpu::new().denoise(network, &test.z, &mut output);
    Ok(psnr(&output, &test.x))
}

fn psnr_of_limit(network: &Network<f32>) -> Result<f64> {
    let test = samples(TRAINING, TEST, network)?;
    let limit = FixedPoint::of(network)?;
    // Half the step of the paper, for inertia.
    let limit = FixedPoint { tau: 0.5 * limit.tau, ..limit };
    let params = FixedPointParams { tolerance: 1e-5, most: 3000, ..FixedPointParams::default() };
    Ok(psnr(&limit.solve(&Cpu::new(), &test.z, None, params)?.output(), &test.x))
}

/// The mean over the patches, at peak 1.
fn psnr(output: &Field<f32>, clean: &Field<f32>) -> f64 {
    let of = |s: usize| {
        let square = |(a, b): (f32, f32)| f64::from(a - b).powi(2);
        let (output, clean) = (output.sample_to_planar(s), clean.sample_to_planar(s));
        let pixels = output.len() as f64;
        -10.0 * (output.into_iter().zip(clean).map(square).sum::<f64>() / pixels).log10()
    };
    (0..clean.samples()).map(of).sum::<f64>() / clean.samples() as f64
}

fn report(name: &str, run: &Run, layers: [String; 2], (own, limit): (f64, f64)) -> serde_json::Value {
    let epochs = run.batches as f64 * BATCH as f64 / TRAINING as f64;
    let [forward, backward] = layers;
    println!("| {name} | {epochs:.1} | {forward} | {backward} | {:.3} | {own:.2} | {limit:.2} |", run.loss);
    json!({ "gradient": name, "epochs": epochs, "layers": forward, "after": backward, "loss": run.loss,
            "psnr": own, "psnr_of_limit": limit })
}
