//! Settings, snapshots, and what the metric is for.

use super::*;

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
        (Options { order: BlockOrder::Simultaneous, metric: Metric::Diagonal, ..SWEEP }, "Euclidean"),
        (Options { order: BlockOrder::Simultaneous, ..SWEEP }, "only the last 1 of 6 operators"),
        (Options { order: BlockOrder::Simultaneous, inner: 4, ..SWEEP }, "only the last 4 of 6 operators"),
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
