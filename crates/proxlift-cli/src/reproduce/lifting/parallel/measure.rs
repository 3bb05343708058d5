//! Times of an iteration, and losses over a training, of LB-FB in both orders.

use crate::flags::pool;
use crate::reproduce::lifting::pieces::pairs;
use anyhow::Result;
use proxlift::lifting::{Batch, LbFb, LbFbOptions, Network, Rows, Trainer};
use proxlift::network::{self, Architecture};
use proxlift::training::{Auxiliary, BlockOrder};
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The side of the pictures, filters of a layer, and samples of the training.
const SIDE: usize = 24;
const FEATURES: usize = 8;
pub const SAMPLES: usize = 8;
/// Iterations on a batch before the next: where all layers move at once, each carries errors two layers further.
pub const INNER: usize = 4;
/// The sweep, and all layers at once.
const ORDERS: [BlockOrder; 2] = [BlockOrder::Sweep, BlockOrder::Simultaneous];
/// Visits that each timing has at least.
const LEAST_VISITS: usize = 3;

/// A chain, how many samples it sees at once, and on how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub depth: usize,
    pub batch: usize,
    pub threads: usize,
}

/// Milliseconds of an iteration, on one thread and on all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub sweep: [f64; 2],
    pub parallel: [f64; 2],
}

/// After a round over the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    pub iterations: usize,
    /// Seconds of training, by the clock on the wall.
    pub seconds: f64,
    /// The mean loss of the network itself on all samples.
    pub loss: f64,
}

/// A training in both orders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Courses {
    pub sweep: Vec<Moment>,
    pub parallel: Vec<Moment>,
}

impl Setting {
    /// The least time of all visits, in turns: what else the machine does says little then, and the same of all.
    pub fn times(self, seconds: f64) -> Result<Times> {
        let pools = [pool(Some(1))?, pool(Some(self.threads))?];
        let variants = ORDERS.iter().flat_map(|order| pools.iter().map(move |pool| (*order, pool)));
        let mut runs = variants
            .map(|(order, pool)| Ok((Run::new(self.depth, order, self.batch, 0)?, pool, f64::INFINITY)))
            .collect::<Result<Vec<_>>>()?;
        let (samples, begin) = (Samples::new(self.batch, 0)?, Instant::now());
        let enough = Duration::from_secs_f64(seconds * runs.len() as f64);
        for visit in 0.. {
            if visit >= LEAST_VISITS && begin.elapsed() > enough {
                break;
            }
            for (run, pool, least) in &mut runs {
                *least = least.min(run.visit(pool, &samples, 0)?);
            }
        }
        let ms = |i: usize| 1e3 * runs[i].2 / INNER as f64;
        Ok(Times { sweep: [ms(0), ms(1)], parallel: [ms(2), ms(3)] })
    }

    /// Both trainings from the same start, batch by batch in turns, each on all threads.
    pub fn courses(self, rounds: usize, seed: u64) -> Result<Courses> {
        let pool = pool(Some(self.threads))?;
        let samples = Samples::new(SAMPLES, seed)?;
        let batches = (0..SAMPLES).step_by(self.batch).map(|first| samples.part(first, self.batch));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let mut runs = Vec::new();
        for order in ORDERS {
            let run = Run::new(self.depth, order, SAMPLES, seed)?;
            let start = Moment { iterations: 0, seconds: 0.0, loss: run.loss(&samples) };
            runs.push((run, vec![start]));
        }
        let mut seconds = [0.0; ORDERS.len()];
        for round in 1..=rounds {
            for (i, batch) in batches.iter().enumerate() {
                for ((run, _), seconds) in runs.iter_mut().zip(&mut seconds) {
                    *seconds += run.visit(&pool, batch, i * self.batch)?;
                }
            }
            let iterations = round * batches.len() * INNER;
            for ((run, course), &seconds) in runs.iter_mut().zip(&seconds) {
                course.push(Moment { iterations, seconds, loss: run.loss(&samples) });
            }
        }
        let mut courses = runs.into_iter().map(|(_, course)| course);
        let mut next = || courses.next().unwrap_or_default();
        Ok(Courses { sweep: next(), parallel: next() })
    }
}

/// Noisy pictures and clean ones.
struct Samples {
    z: Rows<f32>,
    x: Rows<f32>,
}

impl Samples {
    fn new(count: usize, seed: u64) -> Result<Self> {
        let (z, x) = pairs(30 + 2 * seed, 0, count, SIDE)?;
        Ok(Self { z: Rows::new(SIDE * SIDE, z)?, x: Rows::new(SIDE * SIDE, x)? })
    }

    fn part(&self, first: usize, count: usize) -> Result<Self> {
        let width = SIDE * SIDE;
        let cut =
            |rows: &Rows<f32>| Rows::new(width, rows.data()[first * width..(first + count) * width].to_vec());
        Ok(Self { z: cut(&self.z)?, x: cut(&self.x)? })
    }
}

/// A training.
struct Run {
    network: Network<f32>,
    trainer: LbFb<f32>,
}

impl Run {
    fn new(depth: usize, order: BlockOrder, samples: usize, seed: u64) -> Result<Self> {
        let sizes = Architecture { depth, features: FEATURES, kernel: 3, channels: 1 };
        let denoiser = network::Network::<f32>::glorot(sizes, 0.1, seed)?.centered(seed);
        let network = Network::from_denoiser(&denoiser, SIDE, SIDE)?;
        let auxiliary = Auxiliary::Persistent;
        let options = LbFbOptions { mu: 0.1, auxiliary, order, inner: INNER, ..LbFbOptions::default() };
        let trainer = LbFb::new(&network, options, samples)?;
        Ok(Self { network, trainer })
    }

    /// Iterates on a batch that begins with this sample; how long it took.
    fn visit(&mut self, pool: &ThreadPool, batch: &Samples, first: usize) -> Result<f64> {
        let indices: Vec<usize> = (first..first + batch.z.samples()).collect();
        pool.install(|| {
            let start = Instant::now();
            let batch = Batch { z: &batch.z, x: &batch.x, indices: &indices };
            self.trainer.step(&mut self.network, batch, 0.0)?;
            Ok(start.elapsed().as_secs_f64())
        })
    }

    fn loss(&self, samples: &Samples) -> f64 {
        let pass = self.network.forward(&samples.z);
        let losses = pass.output().rows().zip(samples.x.rows()).map(|(o, x)| self.network.loss.value(o, x));
        losses.sum::<f64>() / samples.z.samples() as f64
    }
}
