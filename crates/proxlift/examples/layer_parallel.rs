//! What it brings, and what it costs, to move all layers at once.
//!
//!     cargo run --release --example layer_parallel [timings | losses | both [JSON]]
//!
//! LB-FB on denoisers of growing depth, with `u` kept for every sample and a batch too small to be shared between threads:
//!
//! - **sweep**: the layers one after the other, from the last to the first;
//! - **layers in parallel**: all parameters, then `u` of the even layers, then of the odd ones ([`BlockOrder::Simultaneous`]).
//!
//! The first table has the time of an iteration, the second the loss of the network itself after as many iterations of both,
//! and after as many seconds; times mean something on an idle machine only. With a file name the same figures are written as
//! JSON.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::lifting::{Batch, LbFb, LbFbOptions, Network, Rows, Trainer};
use proxlift::network::{self, Architecture};
use proxlift::training::{Auxiliary, BlockOrder};
use proxlift::{Error, Result};
use serde_json::json;
use std::time::{Duration, Instant};

const SIDE: usize = 32;
const FEATURES: usize = 8;
const DEPTHS: [usize; 5] = [5, 10, 20, 40, 60];
const BATCHES: [usize; 3] = [1, 2, 4];
/// Iterations on a batch before the next; where all layers move at once, each carries errors two layers further.
const INNER: usize = 4;
const WHILE: Duration = Duration::from_millis(700);
/// Samples of the comparison of losses, and visits to each of them.
const SAMPLES: usize = 8;
const VISITS: usize = 12;

fn main() -> Result<()> {
    let what = std::env::args().nth(1).unwrap_or_else(|| "both".into());
    let timings = if what == "losses" { Vec::new() } else { timings()? };
    let losses = if what == "timings" { Vec::new() } else { losses()? };
    if let Some(path) = std::env::args().nth(2) {
        let text = json!({ "inner": INNER, "timings": timings, "losses": losses }).to_string();
        std::fs::write(&path, text).map_err(Error::io(&path))?;
    }
    Ok(())
}

fn timings() -> Result<Vec<serde_json::Value>> {
    println!(
        "| K | batch | sweep, 1 thread (ms) | 2 threads | layers in parallel, 1 thread | 2 threads | speed-up of 2 threads: sweep | parallel |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut rows = Vec::new();
    for depth in DEPTHS {
        for batch in BATCHES {
            let time = |order, threads| milliseconds(depth, batch, order, threads);
            let sweep = [time(BlockOrder::Sweep, 1)?, time(BlockOrder::Sweep, 2)?];
            let parallel = [time(BlockOrder::Simultaneous, 1)?, time(BlockOrder::Simultaneous, 2)?];
            println!(
                "| {depth} | {batch} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                sweep[0],
                sweep[1],
                parallel[0],
                parallel[1],
                sweep[0] / sweep[1],
                parallel[0] / parallel[1]
            );
            rows.push(json!({ "depth": depth, "batch": batch, "sweep_ms": sweep, "parallel_ms": parallel }));
        }
    }
    Ok(rows)
}

/// The time of an iteration: the least of all visits in a while, so that it says little of what else the machine does.
fn milliseconds(depth: usize, batch: usize, order: BlockOrder, threads: usize) -> Result<f64> {
    in_pool(threads, || {
        let (mut network, mut trainer) = trainer(depth, order, batch)?;
        let (z, x) = samples(batch)?;
        let indices: Vec<usize> = (0..batch).collect();
        let (mut least, begin) = (f64::INFINITY, Instant::now());
        for visit in 0.. {
            if visit > 3 && begin.elapsed() > WHILE {
                break;
            }
            let start = Instant::now();
            trainer.step(&mut network, Batch { z: &z, x: &x, indices: &indices }, 0.0)?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(1e3 * least / INNER as f64)
    })
}

fn losses() -> Result<Vec<serde_json::Value>> {
    println!(
        "\n| K | loss at the start | after {} iterations: sweep | parallel | after the seconds of the faster: sweep | parallel |",
        VISITS * INNER * SAMPLES / 2
    );
    println!("|---|---|---|---|---|---|");
    let mut rows = Vec::new();
    for depth in DEPTHS {
        let sweep = in_pool(2, || run(depth, BlockOrder::Sweep))?;
        let parallel = in_pool(2, || run(depth, BlockOrder::Simultaneous))?;
        let end = |run: &[(f64, f64)]| run[run.len() - 1];
        let seconds = end(&sweep).0.min(end(&parallel).0);
        let by_then =
            |run: &[(f64, f64)]| run.iter().rev().find(|(at, _)| *at <= seconds).map_or(f64::NAN, |at| at.1);
        println!(
            "| {depth} | {:.2} | {:.3} | {:.3} | {:.3} | {:.3} |",
            sweep[0].1,
            end(&sweep).1,
            end(&parallel).1,
            by_then(&sweep),
            by_then(&parallel)
        );
        rows.push(json!({ "depth": depth, "sweep": sweep, "parallel": parallel }));
    }
    Ok(rows)
}

/// Seconds of training, and the mean loss of the network on all samples then, after each round of visits.
fn run(depth: usize, order: BlockOrder) -> Result<Vec<(f64, f64)>> {
    let (mut network, mut trainer) = trainer(depth, order, SAMPLES)?;
    let (z, x) = samples(SAMPLES)?;
    let loss = |network: &Network<f32>| {
        let pass = network.forward(&z);
        let losses = pass.output().rows().zip(x.rows()).map(|(o, x)| network.loss.value(o, x));
        losses.sum::<f64>() / SAMPLES as f64
    };
    let cut = |rows: &Rows<f32>, i: usize| Rows::new(rows.width(), [rows.row(i), rows.row(i + 1)].concat());
    let (mut history, mut seconds) = (vec![(0.0, loss(&network))], 0.0);
    for _ in 0..VISITS {
        for i in (0..SAMPLES).step_by(2) {
            let (z, x) = (cut(&z, i)?, cut(&x, i)?);
            let start = Instant::now();
            trainer.step(&mut network, Batch { z: &z, x: &x, indices: &[i, i + 1] }, 0.0)?;
            seconds += start.elapsed().as_secs_f64();
        }
        history.push((seconds, loss(&network)));
    }
    Ok(history)
}

fn trainer(depth: usize, order: BlockOrder, samples: usize) -> Result<(Network<f32>, LbFb<f32>)> {
    let sizes = Architecture { depth, features: FEATURES, kernel: 3, channels: 1 };
    let denoiser = network::Network::<f32>::glorot(sizes, 0.1, 0)?.centered(0);
    let network = Network::from_denoiser(&denoiser, SIDE, SIDE)?;
    let auxiliary = Auxiliary::Persistent;
    let options = LbFbOptions { mu: 0.1, auxiliary, order, inner: INNER, ..LbFbOptions::default() };
    let trainer = LbFb::new(&network, options, samples)?;
    Ok((network, trainer))
}

fn samples(count: usize) -> Result<(Rows<f32>, Rows<f32>)> {
    let (mut z, mut x) = (Vec::new(), Vec::new());
    for i in 0..count as u64 {
        let clean = dead_leaves(3, i, SIDE, SIDE, Channels::Grey)?;
        z.extend_from_slice(add_gaussian(&clean, 0.1, 4, i)?.data());
        x.extend_from_slice(clean.data());
    }
    Ok((Rows::new(SIDE * SIDE, z)?, Rows::new(SIDE * SIDE, x)?))
}

fn in_pool<R: Send>(threads: usize, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::invalid(format!("no threads: {error}")))?.install(work)
}
