//! Under backtracking `E` never rises on a batch: not in a step, and not from one step to the next.

use super::*;

/// A rise of `E` that cannot be told from rounding.
const ROUNDING: f64 = 1e-6;

fn settings() -> Vec<Options> {
    let persistent = Auxiliary::Persistent;
    let mu = Mu::constant;
    vec![
        SWEEP,
        Options { inner: 3, auxiliary: persistent, ..SWEEP },
        Options { auxiliary: persistent, ..SWEEP },
        Options { auxiliary: persistent, order: BlockOrder::Simultaneous, ..SWEEP },
        Options { mu: mu(0.1), ..SWEEP },
        Options { metric: Metric::Diagonal, ..SWEEP },
        Options { metric: Metric::GaussNewton, ..SWEEP },
        Options { metric: Metric::GaussNewton, mu: mu(0.1), u_step: UStep::Backtracked, ..SWEEP },
        Options { metric: Metric::Diagonal, auxiliary: persistent, ..SWEEP },
        Options { metric: Metric::GaussNewton, auxiliary: persistent, ..SWEEP },
        Options { u_step: UStep::Backtracked, ..SWEEP },
        Options { u_step: UStep::Backtracked, auxiliary: persistent, ..SWEEP },
        Options { u_step: UStep::Minimiser, ..SWEEP },
        Options { u_step: UStep::Minimiser, mu: mu(10.0), auxiliary: persistent, ..SWEEP },
        Options { u_step: UStep::Minimiser, constraint: Constraint::ZERO_MEAN, ..SWEEP },
        Options { constraint: Constraint::ZERO_MEAN, metric: Metric::GaussNewton, ..SWEEP },
        Options { constraint: Constraint::ZERO_MEAN, ..Options::PAPER },
        Options { inner: DEPTH, order: BlockOrder::Simultaneous, ..SWEEP },
        Options { inner: 3, ..Options::PAPER },
        Options::PAPER,
        Options { theta_steps: ThetaSteps::Global, ..SWEEP },
        Options { theta_steps: ThetaSteps::Global, metric: Metric::GaussNewton, ..SWEEP },
    ]
}

#[test]
fn it_never_rises_on_a_batch() {
    for options in settings() {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        if options.constraint == Constraint::ZERO_MEAN {
            network = network.centered(1);
        }
        let mut trainer = LbFb::new(&network, options, SAMPLES, 1).unwrap();
        let (mut losses, mut last) = (Vec::new(), f64::INFINITY);
        for step in 0..30 {
            let report = trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
            let (before, after) = (report.energy_before.unwrap(), report.energy.unwrap());
            assert!(after <= before * (1.0 + ROUNDING), "{options}, step {step}: {before} -> {after}");
            // Where u is kept, a step starts where the last one ended, but for the steps tau, which follow the filters. After
            // the long steps of a metric they move far, and E may then start higher.
            if options.auxiliary == Auxiliary::Persistent {
                let falls = after < last || options.metric != Metric::Euclidean;
                assert!(falls, "{options}, step {step}: {last} -> {after}");
            } else {
                let loss = f64::from(options.mu.start) * report.loss;
                assert!(
                    (before - loss).abs() < 1e-5 * loss,
                    "{options}: anchored, but {before} is not {loss}"
                );
            }
            last = after;
            assert_eq!(report.blocks.len(), DEPTH, "the penalties and the loss");
            assert!((report.blocks.iter().sum::<f64>() - after).abs() <= 1e-12 * after);
            losses.push(report.loss);
        }
        if options.constraint == Constraint::ZERO_MEAN {
            for filter in network.theta.iter().flat_map(|theta| theta.weights().chunks(9)) {
                assert!(filter.iter().sum::<f32>().abs() < 1e-5, "{options}: {filter:?}");
            }
        }
        println!("{options}: loss {:.4} -> {:.4}, E {last:.4}", losses[0], losses[29]);
        assert!(
            losses[29] < 0.9 * losses[0],
            "{options}: the loss went from {} to {}",
            losses[0],
            losses[29]
        );
    }
}

/// Iterations that start anew at the forward pass do more to a batch than one.
#[test]
fn inner_iterations_take_a_batch_further() {
    let losses = |inner| {
        let (engine, batch, mut network) = (Cpu::new(), batch(), network());
        let mut trainer = LbFb::new(&network, Options { inner, ..SWEEP }, SAMPLES, 1).unwrap();
        let mut step = || trainer.step(&engine, &mut network, &batch, 0.0).unwrap().loss;
        (0..12).map(|_| step()).collect::<Vec<_>>()
    };
    let (one, three) = (losses(1), losses(3));
    assert_eq!(one[0], three[0]);
    for step in 1..4 {
        // Three batches with one iteration each, but for the steps tau, which follow once a batch.
        let gap = (three[step] - one[3 * step]).abs();
        assert!(gap < 0.1 * (one[0] - one[3 * step]), "{step}: {} and {}", three[step], one[3 * step]);
    }
}
