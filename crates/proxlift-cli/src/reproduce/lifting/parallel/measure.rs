//! Times of an iteration, and losses over a training, of LB-FB in both orders.

use crate::flags::pool;
use crate::reproduce::lifting::pieces::pairs;
use anyhow::Result;
use proxlift::lifting::{Batch, LbFb, LbFbOptions, Network, Rows, Trainer};
use proxlift::network::{self, Architecture};
use proxlift::team::{Alone, Ranks};
use proxlift::training::{Auxiliary, BlockOrder};
use rayon::ThreadPool;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
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

/// Milliseconds of an iteration, on one thread and on all; or by one process and by all.
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

/// Who iterates: in which order, on which threads, alone or with others.
type Variant<'a> = (BlockOrder, &'a ThreadPool, Arc<Ranks>);

/// A process of its own.
pub fn alone() -> Arc<Ranks> {
    Arc::new(Ranks::new(Arc::new(Alone)))
}

impl Setting {
    /// Of both orders on one thread and on all.
    pub fn times(self, seconds: f64) -> Result<Times> {
        let pools = [pool(Some(1))?, pool(Some(self.threads))?];
        let variants = ORDERS.iter().flat_map(|order| pools.iter().map(move |pool| (*order, pool, alone())));
        let ms = self.least(&variants.collect::<Vec<_>>(), seconds, &alone())?;
        Ok(Times { sweep: [ms[0], ms[1]], parallel: [ms[2], ms[3]] })
    }

    /// Of the sweep by one process, and of all layers at once by one and by all, on as many threads each.
    pub fn times_among(self, seconds: f64, ranks: &Arc<Ranks>) -> Result<Times> {
        let [sweep, at_once] = ORDERS;
        let pool = pool(Some(self.threads))?;
        let variants = [(sweep, &pool, alone()), (at_once, &pool, alone()), (at_once, &pool, ranks.clone())];
        let ms = self.least(&variants, seconds, ranks)?;
        Ok(Times { sweep: [ms[0]; 2], parallel: [ms[1], ms[2]] })
    }

    /// The least time of all visits, in turns: what else the machine does says little then, and the same of all. What one
    /// process does, the first of all does while the others wait.
    fn least(self, variants: &[Variant<'_>], seconds: f64, ranks: &Arc<Ranks>) -> Result<Vec<f64>> {
        let mut runs = Vec::new();
        for (order, pool, team) in variants {
            runs.push((Run::new(self.depth, *order, self.batch, 0, team)?, *pool, f64::INFINITY));
        }
        let (samples, begin) = (Samples::new(self.batch, 0)?, Instant::now());
        let enough = Duration::from_secs_f64(seconds * runs.len() as f64);
        for visit in 0.. {
            if ranks.from_first(|| Ok(visit >= LEAST_VISITS && begin.elapsed() > enough))? {
                break;
            }
            for (run, pool, least) in runs.iter_mut().filter(|(run, ..)| run.is_ours(ranks)) {
                *least = least.min(run.visit(pool, &samples, 0)?);
            }
        }
        Ok(runs.iter().map(|(_, _, least)| 1e3 * least / INNER as f64).collect())
    }

    /// Both trainings from the same start, batch by batch in turns, each on all threads, that of all layers at once by all
    /// processes; for the first one.
    pub fn courses(self, rounds: usize, seed: u64, ranks: &Arc<Ranks>) -> Result<Courses> {
        let pool = pool(Some(self.threads))?;
        let samples = Samples::new(SAMPLES, seed)?;
        let batches = (0..SAMPLES).step_by(self.batch).map(|first| samples.part(first, self.batch));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let mut runs = Vec::new();
        for (order, team) in ORDERS.into_iter().zip([alone(), ranks.clone()]) {
            let run = Run::new(self.depth, order, SAMPLES, seed, &team)?;
            let start = Moment { iterations: 0, seconds: 0.0, loss: run.loss(&samples) };
            runs.push((run, vec![start]));
        }
        let mut seconds = [0.0; ORDERS.len()];
        for round in 1..=rounds {
            for (i, batch) in batches.iter().enumerate() {
                for ((run, _), seconds) in runs.iter_mut().zip(&mut seconds) {
                    if run.is_ours(ranks) {
                        *seconds += run.visit(&pool, batch, i * self.batch)?;
                    }
                }
            }
            let iterations = round * batches.len() * INNER;
            for ((run, course), &seconds) in runs.iter_mut().zip(&seconds) {
                run.trainer.collect(&mut run.network);
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

/// A training, by one process or by all of a team.
struct Run {
    network: Network<f32>,
    trainer: LbFb<f32>,
    members: usize,
}

impl Run {
    fn new(depth: usize, order: BlockOrder, samples: usize, seed: u64, team: &Arc<Ranks>) -> Result<Self> {
        let sizes = Architecture { depth, features: FEATURES, kernel: 3, channels: 1 };
        let denoiser = network::Network::<f32>::glorot(sizes, 0.1, seed)?.centered(seed);
        let network = Network::from_denoiser(&denoiser, SIDE, SIDE)?;
        let auxiliary = Auxiliary::Persistent;
        let options = LbFbOptions { mu: 0.1, auxiliary, order, inner: INNER, ..LbFbOptions::default() };
        let trainer = LbFb::new(&network, options, samples)?.among(team.clone())?;
        Ok(Self { network, trainer, members: team.size() })
    }

    /// Whether this process has a part in it.
    fn is_ours(&self, ranks: &Ranks) -> bool {
        self.members > 1 || ranks.is_first()
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
