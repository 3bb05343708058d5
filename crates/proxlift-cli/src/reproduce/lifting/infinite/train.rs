//! A tied denoiser, trained at its fixed point or through a number of its layers.

use crate::reproduce::lifting::pieces::pairs;
use crate::reproduce::machine::Stopwatch;
use anyhow::Result;
use proxlift::Image;
use proxlift::engine;
use proxlift::evaluation::mean_psnr;
use proxlift::field::Field;
use proxlift::fixed_point::{Acceleration, FixedPoint, FixedPointParams};
use proxlift::network::{Architecture, Network};
use proxlift::training::{
    Batch, Constraint, Descent, GradientDescent, Metric, Mu, Rate, Rule, Schedule, Trainer,
};
use proxlift::training::{FixedPointOptions, FixedPointRule, FixedPointTrainer};
use serde::{Deserialize, Serialize};

const SIDE: usize = 32;
const FEATURES: usize = 16;
const BATCH: usize = 20;
pub const MU: f32 = 0.1;
/// For training, fixed points and their linear systems need not be solved as well as for use.
const PARAMS: FixedPointParams = FixedPointParams {
    acceleration: Acceleration::Nesterov,
    tolerance: 1e-3,
    most: 200,
    adjoint_tolerance: 3e-2,
    adjoint_most: 40,
};
/// To score the limit.
const SCORED: FixedPointParams = FixedPointParams { tolerance: 1e-4, most: 1000, ..PARAMS };
/// The series of pictures that no training sees; the others follow.
const UNSEEN: u64 = 50;

/// How the operator is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    Implicit,
    Lifted,
    Centred,
    /// Back-propagation through so many layers.
    Unrolled(usize),
    /// Lifted through so many.
    UnrolledLifted(usize),
}

impl Way {
    pub const ALL: [Self; 7] = [
        Self::Implicit,
        Self::Lifted,
        Self::Centred,
        Self::Unrolled(5),
        Self::UnrolledLifted(5),
        Self::Unrolled(20),
        Self::UnrolledLifted(20),
    ];

    pub fn label(self) -> String {
        match self {
            Self::Implicit => "fixed point, implicit".into(),
            Self::Lifted => format!("fixed point, lifted, μ {MU}"),
            Self::Centred => format!("fixed point, centred, μ {MU}"),
            Self::Unrolled(depth) => format!("{depth} layers, back-propagation"),
            Self::UnrolledLifted(depth) => format!("{depth} layers, lifted, μ {MU}"),
        }
    }
}

/// What came of a training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    pub epochs: f64,
    /// Layers of a batch on its way forward, and layers or iterations of linear systems after them.
    pub layers: [f64; 2],
    /// The mean over the last epoch, while the network changed.
    pub loss: f64,
    /// PSNR of the network as it was trained, and of its limit at infinite depth.
    pub psnr: f64,
    pub psnr_of_limit: f64,
}

/// A training of so many seconds of one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    pub way: Way,
    pub seconds: f64,
    pub samples: usize,
    pub tests: usize,
    pub seed: u64,
}

impl Training {
    pub fn work(self) -> Result<Trained> {
        match self.way {
            Way::Implicit => self.at_the_limit(FixedPointRule::Implicit),
            Way::Lifted => self.at_the_limit(FixedPointRule::Lifted { mu: MU }),
            Way::Centred => self.at_the_limit(FixedPointRule::Centred { mu: MU }),
            Way::Unrolled(depth) => self.unrolled(depth, Rule::Backprop),
            Way::UnrolledLifted(depth) => self.unrolled(depth, Rule::Lifted(Mu::constant(MU))),
        }
    }

    fn at_the_limit(self, rule: FixedPointRule<f32>) -> Result<Trained> {
        let mut network = self.start()?.unrolled(2)?;
        let options = FixedPointOptions {
            rule,
            loss: proxlift::engine::SampleLoss::Squared,
            descent: descent(),
            params: PARAMS,
            warm: true,
            zero_mean: true,
            weak: 0.0,
        };
        let mut trainer = FixedPointTrainer::new(&network, options, self.samples, self.seed)?;
        let (batches, loss) = self.train(&mut network, &mut trainer)?;
        let (forward, after) = trainer.iterations();
        let each = |total: usize| total as f64 / batches as f64;
        let psnr_of_limit = self.psnr_of_limit(&network)?;
        let (epochs, layers) = (self.epochs(batches), [each(forward), each(after)]);
        Ok(Trained { epochs, layers, loss, psnr: psnr_of_limit, psnr_of_limit })
    }

    fn unrolled(self, depth: usize, rule: Rule) -> Result<Trained> {
        let mut network = self.start()?.unrolled(depth)?;
        let constraint = Constraint { tied: true, ..Constraint::ZERO_MEAN };
        let mut trainer = GradientDescent::new(&network, rule, descent(), constraint, self.seed)?;
        let (batches, loss) = self.train(&mut network, &mut trainer)?;
        let (psnr, psnr_of_limit) = (self.psnr(&network)?, self.psnr_of_limit(&network)?);
        Ok(Trained { epochs: self.epochs(batches), layers: [depth as f64; 2], loss, psnr, psnr_of_limit })
    }

    /// What all ways start from.
    fn start(self) -> Result<FixedPoint<f32>> {
        let sizes = Architecture { depth: 2, features: FEATURES, kernel: 3, channels: 1 };
        let network = Network::<f32>::glorot(sizes, 0.05, self.seed)?.centered(self.seed);
        Ok(FixedPoint::new(network.theta[1].clone(), network.tau[0], network.activation[0].clone())?)
    }

    /// Batches done, and the mean loss of the last epoch.
    fn train(self, network: &mut Network<f32>, trainer: &mut dyn Trainer) -> Result<(usize, f64)> {
        let series = UNSEEN + 2 + 2 * self.seed;
        let batches = (0..self.samples).step_by(BATCH).map(|first| samples(series, first, BATCH, network));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let (engine, clock) = (engine::standard(), Stopwatch::start());
        let (mut losses, mut done) = (vec![None; batches.len()], 0);
        loop {
            let progress = clock.seconds() / self.seconds;
            if done > 0 && progress >= 1.0 {
                break;
            }
            let i = done % batches.len();
            losses[i] = Some(trainer.step(&*engine, network, &batches[i], progress)?.loss / BATCH as f64);
            done += 1;
        }
        let known = losses.iter().flatten();
        Ok((done, known.clone().sum::<f64>() / known.count() as f64))
    }

    fn epochs(self, batches: usize) -> f64 {
        (batches * BATCH) as f64 / self.samples as f64
    }

    fn psnr(self, network: &Network<f32>) -> Result<f64> {
        let test = samples(UNSEEN, 0, self.tests, network)?;
        let mut output = test.z.zeros_like();
        engine::standard().denoise(network, &test.z, &mut output);
        score(&output, &test.x)
    }

    fn psnr_of_limit(self, network: &Network<f32>) -> Result<f64> {
        let test = samples(UNSEEN, 0, self.tests, network)?;
        let limit = FixedPoint::of(network)?;
        // Half the step of the paper, for inertia.
        let limit = FixedPoint { tau: 0.5 * limit.tau, ..limit };
        score(&limit.solve(&*engine::standard(), &test.z, None, SCORED)?.output(), &test.x)
    }
}

fn descent() -> Descent {
    let rate = Rate { start: 3e-3, schedule: Schedule::Cosine };
    Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate }
}

fn samples(series: u64, first: usize, count: usize, network: &Network<f32>) -> Result<Batch> {
    let (z, x) = pairs(series, first, count, SIDE)?;
    let grid = network.architecture().grid(SIDE, SIDE)?;
    let field = |planar: &[f32]| Field::from_planar(count, 1, grid, planar);
    Ok(Batch { z: field(&z)?, x: field(&x)?, indices: (first..first + count).collect() })
}

fn score(output: &Field<f32>, clean: &Field<f32>) -> Result<f64> {
    let images = |field: &Field<f32>| {
        let image = |s: usize| Image::new(1, SIDE, SIDE, field.sample_to_planar(s));
        (0..field.samples()).map(image).collect::<proxlift::Result<Vec<_>>>()
    };
    Ok(mean_psnr(&images(clean)?, &images(output)?)?)
}
