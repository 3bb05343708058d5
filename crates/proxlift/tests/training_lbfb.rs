//! What the lifted Bregman trainer promises: on a batch, backtracking never raises the energy; it lowers the loss.

use proxlift::engine::{Cpu, Field};
use proxlift::image::random::{Purpose, stream, unit};
use proxlift::network::{Architecture, Network};
use proxlift::training::{
    Auxiliary, Batch, LbFb, MetricKind, Options, Order, Rate, Schedule, Snapshot, Steps, Trainer,
};

const SAMPLES: usize = 6;
const SIZE: usize = 14;

fn network() -> Network<f32> {
    let architecture = Architecture { depth: 5, features: 6, kernel: 3, channels: 1 };
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

const PAPER: Options = Options {
    mu: 1.0,
    mu_schedule: Schedule::Constant,
    auxiliary: Auxiliary::Anchored,
    order: Order::Sweep,
    metric: MetricKind::Euclidean,
    steps: Steps::Backtracking,
    inertia: 0.0,
    inner: 1,
};

#[test]
fn the_energy_never_rises_on_a_batch_under_backtracking() {
    let persistent = Auxiliary::Persistent { samples: SAMPLES };
    for options in [
        PAPER,
        Options { inner: 3, ..PAPER },
        Options { auxiliary: persistent, ..PAPER },
        Options { auxiliary: persistent, order: Order::Simultaneous, ..PAPER },
        Options { mu: 0.1, ..PAPER },
    ] {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        let mut trainer = LbFb::new(&network, options, 1).unwrap();
        let (mut first, mut last) = (0.0, 0.0);
        for step in 0..30 {
            let report = trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
            let (before, after) = (report.energy_before.unwrap(), report.energy.unwrap());
            // Inner iterations that start anew at the forward pass may begin above where the last one ended.
            if options.inner == 1 {
                assert!(after <= before * (1.0 + 1e-6), "{options:?}, step {step}: {before} -> {after}");
            }
            if step == 0 {
                first = report.loss;
            }
            last = report.loss;
        }
        assert!(last < 0.9 * first, "{options:?}: the loss went from {first} to {last}");
    }
}

#[test]
fn a_rate_in_a_metric_lowers_the_loss() {
    for (metric, start) in [(MetricKind::Diagonal, 4e-3), (MetricKind::GaussNewton, 0.5)] {
        let steps = Steps::Rate(Rate { start, schedule: Schedule::Constant });
        let options = Options { mu: 0.1, metric, steps, inertia: 0.9, ..PAPER };
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        let mut trainer = LbFb::new(&network, options, 1).unwrap();
        let mut losses = Vec::new();
        for _ in 0..40 {
            losses.push(trainer.step(&engine, &mut network, &batch, 0.0).unwrap().loss);
        }
        assert!(losses[39] < 0.7 * losses[0], "{metric:?}: {} -> {}", losses[0], losses[39]);
    }
}

#[test]
fn a_snapshot_continues_to_the_same_bits() {
    let rated = |metric, start| {
        let steps = Steps::Rate(Rate { start, schedule: Schedule::Cosine });
        Options { mu: 0.1, metric, steps, inertia: 0.9, ..PAPER }
    };
    let persistent = Auxiliary::Persistent { samples: SAMPLES };
    for options in [
        PAPER,
        Options { auxiliary: persistent, order: Order::Simultaneous, ..PAPER },
        rated(MetricKind::Diagonal, 4e-3),
        rated(MetricKind::GaussNewton, 0.3),
    ] {
        let (engine, batch, mut whole) = (Cpu::new(), batch(), network());
        let mut trainer = LbFb::new(&whole, options, 1).unwrap();
        let (mut half, mut state) = (whole.clone(), Snapshot::default());
        for step in 0..24 {
            if step == 12 {
                half = whole.clone();
                trainer.save(&mut state);
            }
            trainer.step(&engine, &mut whole, &batch, step as f64 / 24.0).unwrap();
        }
        let mut resumed = LbFb::new(&network(), options, 1).unwrap();
        resumed.restore(&state).unwrap();
        for step in 12..24 {
            resumed.step(&engine, &mut half, &batch, step as f64 / 24.0).unwrap();
        }
        assert_eq!(half, whole, "{options:?}");
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let rate = Steps::Rate(Rate { start: 0.1, schedule: Schedule::Constant });
    for (options, word) in [
        (Options { mu: 0.0, ..PAPER }, "mu"),
        (Options { inner: 0, ..PAPER }, "inner"),
        (Options { inertia: 1.0, ..PAPER }, "inertia"),
        (Options { steps: rate, ..PAPER }, "backtracking"),
        (Options { metric: MetricKind::Diagonal, ..PAPER }, "take a rate"),
        (Options { order: Order::Simultaneous, metric: MetricKind::Diagonal, ..PAPER }, "Euclidean"),
    ] {
        let error = LbFb::new(&network(), options, 1).err().expect("refused").to_string();
        assert!(error.contains(word), "{error}");
    }
}
