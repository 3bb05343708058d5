//! What the lifted Bregman trainer promises: on a batch, backtracking never raises the energy; it lowers the loss.

use proxlift::engine::Cpu;
use proxlift::field::Field;
use proxlift::network::{Architecture, Network};
use proxlift::random::{Purpose, stream, unit};
use proxlift::training::backtracking::Backtracking;
use proxlift::training::u_steps::USearch;
use proxlift::training::{
    Auxiliary, Batch, Constraint, LbFb, Lifted, MetricKind, Options, Order, Rate, Schedule, Snapshot, Steps,
    ThetaSteps, Trainer, UStep,
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
    theta_steps: ThetaSteps::Layer,
    u_step: UStep::Closed,
    inertia: 0.0,
    inner: 1,
    constraint: Constraint::FREE,
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
        Options { metric: MetricKind::Diagonal, ..PAPER },
        Options { metric: MetricKind::GaussNewton, ..PAPER },
        Options { metric: MetricKind::GaussNewton, mu: 0.1, u_step: UStep::Backtracked, ..PAPER },
        Options { metric: MetricKind::Diagonal, auxiliary: persistent, ..PAPER },
        Options { metric: MetricKind::GaussNewton, auxiliary: persistent, ..PAPER },
        Options { u_step: UStep::Backtracked, ..PAPER },
        Options { u_step: UStep::Backtracked, auxiliary: persistent, ..PAPER },
        Options { u_step: UStep::Minimiser, ..PAPER },
        Options { u_step: UStep::Minimiser, mu: 10.0, auxiliary: persistent, ..PAPER },
        Options { u_step: UStep::Minimiser, constraint: Constraint::ZERO_MEAN, ..PAPER },
        Options { constraint: Constraint::ZERO_MEAN, metric: MetricKind::GaussNewton, ..PAPER },
        Options { constraint: Constraint::ZERO_MEAN, order: Order::Simultaneous, ..PAPER },
        Options { theta_steps: ThetaSteps::Global, ..PAPER },
        Options { theta_steps: ThetaSteps::Global, metric: MetricKind::GaussNewton, ..PAPER },
    ] {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        if options.constraint == Constraint::ZERO_MEAN {
            network = network.centered(1);
        }
        let mut trainer = LbFb::new(&network, options, 1).unwrap();
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
        let mut trainer = LbFb::new(&network, Options { metric, ..PAPER }, 1).unwrap();
        (0..15).map(|_| trainer.step(&engine, &mut network, &batch, 0.0).unwrap().loss).last().unwrap()
    };
    let (plain, metric) = (loss_after(MetricKind::Euclidean), loss_after(MetricKind::GaussNewton));
    assert!(metric < plain, "{metric} in the metric, {plain} without");
}

/// The searched step lowers a block sample by sample.
#[test]
fn a_backtracked_u_step_lowers_every_sample_and_is_no_shorter_than_the_closed_one() {
    let (engine, batch, network) = (Cpu::new(), batch(), network());
    let mut lifted = Lifted::new(&network, batch.z.clone(), batch.x.clone()).unwrap();
    let mut search = USearch::new(&lifted);
    for k in (1..5).rev() {
        lifted.anchor(&engine, &network);
        // Away from the forward pass, so that every block has something to do.
        lifted.u[k].data_mut().iter_mut().for_each(|u| *u *= 0.5);
        lifted.refresh(&engine, &network);
        let before = lifted.energy(&engine, &network, 1.0);
        let mut gamma = Backtracking { step: 0.5, ..Backtracking::default() };
        lifted.u_search(&engine, &network, (k, 1.0), &mut gamma, &mut search);
        let after = lifted.energy(&engine, &network, 1.0);
        for s in 0..SAMPLES {
            assert!(after.sample(s) < before.sample(s), "u_{k} of sample {s}");
        }
        assert!((0.37..=1.0).contains(&gamma.step), "{}", gamma.step);
    }
}

#[test]
fn a_rate_in_a_metric_lowers_the_loss() {
    for (metric, start) in
        [(MetricKind::Diagonal, 4e-3), (MetricKind::Kronecker, 4e-3), (MetricKind::GaussNewton, 0.5)]
    {
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
        Options { metric: MetricKind::Diagonal, u_step: UStep::Backtracked, ..PAPER },
        Options { metric: MetricKind::GaussNewton, auxiliary: persistent, ..PAPER },
        Options { theta_steps: ThetaSteps::Global, u_step: UStep::Minimiser, ..PAPER },
        rated(MetricKind::Diagonal, 4e-3),
        rated(MetricKind::Kronecker, 4e-3),
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
        (Options { order: Order::Simultaneous, metric: MetricKind::Diagonal, ..PAPER }, "Euclidean"),
        (Options { metric: MetricKind::Kronecker, ..PAPER }, "Kronecker"),
    ] {
        let error = LbFb::new(&network(), options, 1).err().expect("refused").to_string();
        assert!(error.contains(word), "{error}");
    }
}
