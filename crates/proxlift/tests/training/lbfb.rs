//! What the lifted Bregman trainer promises: on a batch, backtracking never raises the energy; it lowers the loss.

use proxlift::engine::Cpu;
use proxlift::field::Field;
use proxlift::network::{Architecture, Network};
use proxlift::random::{Purpose, stream, unit};
use proxlift::training::{
    Auxiliary, Batch, Constraint, Descent, GradientDescent, LbFb, Metric, Mu, Options, Order, Rate, Rule,
    Schedule, Snapshot, ThetaSteps, Trainer, UStep,
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

const SWEEP: Options = Options {
    mu: Mu { start: 1.0, schedule: Schedule::Constant },
    auxiliary: Auxiliary::Anchored,
    order: Order::Sweep,
    metric: Metric::Euclidean,
    theta_steps: ThetaSteps::Layer,
    u_step: UStep::Closed,
    inner: 1,
    constraint: Constraint::FREE,
};

#[test]
fn the_energy_never_rises_on_a_batch_under_backtracking() {
    let persistent = Auxiliary::Persistent;
    for options in [
        SWEEP,
        Options { inner: 3, ..SWEEP },
        Options { auxiliary: persistent, ..SWEEP },
        Options { auxiliary: persistent, order: Order::Simultaneous, ..SWEEP },
        Options { mu: Mu::constant(0.1), ..SWEEP },
        Options { metric: Metric::Diagonal, ..SWEEP },
        Options { metric: Metric::GaussNewton, ..SWEEP },
        Options { metric: Metric::GaussNewton, mu: Mu::constant(0.1), u_step: UStep::Backtracked, ..SWEEP },
        Options { metric: Metric::Diagonal, auxiliary: persistent, ..SWEEP },
        Options { metric: Metric::GaussNewton, auxiliary: persistent, ..SWEEP },
        Options { u_step: UStep::Backtracked, ..SWEEP },
        Options { u_step: UStep::Backtracked, auxiliary: persistent, ..SWEEP },
        Options { u_step: UStep::Minimiser, ..SWEEP },
        Options { u_step: UStep::Minimiser, mu: Mu::constant(10.0), auxiliary: persistent, ..SWEEP },
        Options { u_step: UStep::Minimiser, constraint: Constraint::ZERO_MEAN, ..SWEEP },
        Options { constraint: Constraint::ZERO_MEAN, metric: Metric::GaussNewton, ..SWEEP },
        Options { constraint: Constraint::ZERO_MEAN, ..Options::PAPER },
        Options { inner: 5, order: Order::Simultaneous, ..SWEEP },
        Options::PAPER,
        Options { theta_steps: ThetaSteps::Global, ..SWEEP },
        Options { theta_steps: ThetaSteps::Global, metric: Metric::GaussNewton, ..SWEEP },
    ] {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        if options.constraint == Constraint::ZERO_MEAN {
            network = network.centered(1);
        }
        let mut trainer = LbFb::new(&network, options, SAMPLES, 1).unwrap();
        let (mut first, mut last) = (0.0, 0.0);
        for step in 0..30 {
            let report = trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
            let (before, after) = (report.energy_before.unwrap(), report.energy.unwrap());
            // Inner iterations that start anew at the forward pass may begin above where the last one ended.
            if options.inner == 1 {
                assert!(after <= before * (1.0 + 1e-6), "{options:?}, step {step}: {before} -> {after}");
            }
            assert_eq!(report.blocks.len(), 5, "four penalties and the loss");
            assert!((report.blocks.iter().sum::<f64>() - after).abs() <= 1e-12 * after);
            if step == 0 {
                first = report.loss;
            }
            last = report.loss;
        }
        if options.constraint == Constraint::ZERO_MEAN {
            for filter in network.theta.iter().flat_map(|theta| theta.weights().chunks(9)) {
                assert!(filter.iter().sum::<f32>().abs() < 1e-5, "{options:?}: {filter:?}");
            }
        }
        assert!(last < 0.9 * first, "{options:?}: the loss went from {first} to {last}");
    }
}

#[test]
fn backtracking_in_the_gauss_newton_metric_falls_faster_than_in_the_euclidean() {
    let loss_after = |metric| {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        let mut trainer = LbFb::new(&network, Options { metric, ..SWEEP }, SAMPLES, 1).unwrap();
        (0..15).map(|_| trainer.step(&engine, &mut network, &batch, 0.0).unwrap().loss).last().unwrap()
    };
    let (plain, metric) = (loss_after(Metric::Euclidean), loss_after(Metric::GaussNewton));
    assert!(metric < plain, "{metric} in the metric, {plain} without");
}

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

#[test]
fn a_rate_in_a_metric_lowers_the_loss() {
    for (rule, metric, start) in rules_and_metrics() {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        let mut trainer = rated(rule, metric, start, Schedule::Constant);
        let mut losses = Vec::new();
        for _ in 0..40 {
            losses.push(trainer.step(&engine, &mut network, &batch, 0.0).unwrap().loss);
        }
        assert!(losses[39] < 0.7 * losses[0], "{rule:?} {metric:?}: {} -> {}", losses[0], losses[39]);
    }
}

/// 24 steps at once, and 12 with 12 more by a trainer that goes on from a snapshot.
fn continues_to_the_same_bits<T: Trainer>(what: &str, make: impl Fn() -> T) {
    let (engine, batch, mut whole) = (Cpu::new(), batch(), network());
    let mut trainer = make();
    let (mut half, mut state) = (whole.clone(), Snapshot::default());
    for step in 0..24 {
        if step == 12 {
            half = whole.clone();
            trainer.save(&mut state);
        }
        trainer.step(&engine, &mut whole, &batch, step as f64 / 24.0).unwrap();
    }
    let mut resumed = make();
    resumed.restore(&state).unwrap();
    for step in 12..24 {
        resumed.step(&engine, &mut half, &batch, step as f64 / 24.0).unwrap();
    }
    assert_eq!(half, whole, "{what}");
}

#[test]
fn a_snapshot_continues_to_the_same_bits() {
    for options in [
        SWEEP,
        Options::PAPER,
        Options { metric: Metric::Diagonal, u_step: UStep::Backtracked, ..SWEEP },
        Options { metric: Metric::GaussNewton, auxiliary: Auxiliary::Persistent, ..SWEEP },
        Options { theta_steps: ThetaSteps::Global, u_step: UStep::Minimiser, ..SWEEP },
    ] {
        let make = || LbFb::new(&network(), options, SAMPLES, 1).unwrap();
        continues_to_the_same_bits(&options.to_string(), make);
    }
    for (rule, metric, start) in rules_and_metrics() {
        let make = || rated(rule, metric, start, Schedule::Cosine);
        continues_to_the_same_bits(&format!("{rule:?} {metric:?}"), make);
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for (options, word) in [
        (Options { mu: Mu::constant(0.0), ..SWEEP }, "mu"),
        (Options { inner: 0, ..SWEEP }, "inner"),
        (Options { order: Order::Simultaneous, metric: Metric::Diagonal, ..SWEEP }, "Euclidean"),
        (Options { order: Order::Simultaneous, ..SWEEP }, "only the last 1 of 6 operators"),
        (Options { order: Order::Simultaneous, inner: 4, ..SWEEP }, "only the last 4 of 6 operators"),
        (Options { metric: Metric::Kronecker, ..SWEEP }, "Kronecker"),
    ] {
        let error = LbFb::new(&network(), options, SAMPLES, 1).err().expect("refused").to_string();
        assert!(error.contains(word), "{error}");
    }
    let long = network().unrolled(Default::default(), 6.0, 1);
    let error = LbFb::new(&long, SWEEP, SAMPLES, 1).err().expect("refused").to_string();
    assert!(error.contains("rate"), "{error}");
    let descent = |momentum, start| Descent {
        metric: Metric::Diagonal,
        momentum,
        beta2: 0.99,
        rate: Rate { start, schedule: Schedule::Constant },
    };
    for (descent, word) in [(descent(1.0, 1e-3), "momentum"), (descent(0.9, 0.0), "rate")] {
        let refused = GradientDescent::new(&network(), Rule::Backprop, descent, Constraint::FREE, 1);
        assert!(refused.err().expect("refused").to_string().contains(word));
    }
}
