//! What the trainers promise, on one small batch: norms that are right from the first step on, an energy that falls,
//! majorants that hold, parameters that all move.

mod backtracking;
mod energy;
mod kronecker;
mod lbfb;
mod majorants;
mod norms;
mod rates;
mod taught;

use proxlift::engine::Cpu;
use proxlift::field::Field;
use proxlift::network::{Architecture, Network};
use proxlift::random::{Purpose, stream, unit};
use proxlift::training::{
    Auxiliary, Batch, BlockOrder, Constraint, Descent, GradientDescent, LbFb, Metric, Mu, Options, Rate,
    Rule, Schedule, Snapshot, ThetaSteps, Trainer, UStep,
};

const SAMPLES: usize = 6;
const SIZE: usize = 14;
const DEPTH: usize = 5;

/// The paper's network.
fn network() -> Network<f32> {
    let architecture = Architecture { depth: DEPTH, features: 6, kernel: 3, channels: 1 };
    Network::glorot(architecture, 0.1, 4).unwrap()
}

/// Smooth images with edges, and noise on them.
fn batch() -> Batch {
    let grid = network().architecture().grid(SIZE, SIZE).unwrap();
    let mut rng = stream(5, Purpose::ImageNoise, 0, 0);
    let (mut x, mut z) = (Vec::new(), Vec::new());
    for s in 0..SAMPLES {
        for (i, j) in (0..SIZE).flat_map(|i| (0..SIZE).map(move |j| (i, j))) {
            let edge = if i + s > j { 0.7 } else { 0.2 };
            let clean = edge + 0.01 * (i * s) as f32 / SIZE as f32;
            x.push(clean);
            z.push(clean + 0.35 * (unit(&mut rng) as f32 - 0.5));
        }
    }
    let field = |planar: &[f32]| Field::from_planar(SAMPLES, 1, grid, planar).unwrap();
    Batch { z: field(&z), x: field(&x), indices: (0..SAMPLES).collect() }
}

const SWEEP: Options = Options {
    mu: Mu { start: 1.0, schedule: Schedule::Constant },
    auxiliary: Auxiliary::Anchored,
    order: BlockOrder::Sweep,
    metric: Metric::Euclidean,
    theta_steps: ThetaSteps::Layer,
    u_step: UStep::Closed,
    inner: 1,
    constraint: Constraint::FREE,
};

fn rated(rule: Rule, metric: Metric, start: f64, schedule: Schedule) -> GradientDescent {
    let descent = Descent { metric, momentum: 0.9, beta2: 0.99, rate: Rate { start, schedule } };
    GradientDescent::new(&network(), rule, descent, Constraint::FREE, 1).unwrap()
}

/// The rules and metrics of steps with a rate, with a rate for each.
fn rules_and_metrics() -> impl Iterator<Item = (Rule, Metric, f64)> {
    let metrics = [
        (Metric::Euclidean, 3e-3),
        (Metric::Diagonal, 4e-3),
        (Metric::Kronecker, 4e-3),
        (Metric::GaussNewton, 0.3),
    ];
    let rules = [Rule::Backprop, Rule::Lifted(Mu::constant(0.1))];
    rules.into_iter().flat_map(move |rule| metrics.map(|(metric, rate)| (rule, metric, rate)))
}

/// A trainer of every kind for `network`, the paper's.
fn every_trainer(network: &Network<f32>) -> Vec<Box<dyn Trainer>> {
    let persistent = Auxiliary::Persistent;
    let backtracking = [
        Options::PAPER,
        SWEEP,
        Options { auxiliary: persistent, u_step: UStep::Backtracked, ..SWEEP },
        Options { metric: Metric::Diagonal, ..SWEEP },
        Options { metric: Metric::GaussNewton, theta_steps: ThetaSteps::Global, ..SWEEP },
    ];
    let backtracking = backtracking.map(|options| LbFb::new(network, options, SAMPLES, 1).unwrap());
    let rated = rules_and_metrics().map(|(rule, metric, start)| {
        let rate = Rate { start, schedule: Schedule::Constant };
        let descent = Descent { metric, momentum: 0.9, beta2: 0.99, rate };
        GradientDescent::new(network, rule, descent, Constraint::FREE, 1).unwrap()
    });
    let boxed = backtracking.into_iter().map(|trainer| Box::new(trainer) as Box<dyn Trainer>);
    boxed.chain(rated.map(|trainer| Box::new(trainer) as Box<dyn Trainer>)).collect()
}
