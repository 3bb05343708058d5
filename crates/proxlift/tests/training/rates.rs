//! Steps with a rate: what a step is in each metric, and that every parameter takes part.

use super::*;
use proxlift::network::Unrolling;
use proxlift::training::{Trial, best_trial, search_rates};
use proxlift::{Error, Result};

/// A trainer without momentum.
fn trainer(network: &Network<f32>, rule: Rule, metric: Metric, start: f64) -> GradientDescent {
    let rate = Rate { start, schedule: Schedule::Constant };
    let descent = Descent { metric, momentum: 0.0, beta2: 0.99, rate };
    GradientDescent::new(network, rule, descent, Constraint::FREE, 1).unwrap()
}

/// `theta_k` after minus before, of a step on the batch.
fn moves(rule: Rule, metric: Metric, rate: f64) -> Vec<Vec<f64>> {
    let (engine, start) = (Cpu::new(), network());
    let mut network = start.clone();
    trainer(&start, rule, metric, rate).step(&engine, &mut network, &batch(), 0.0).unwrap();
    let weights = |network: &Network<f32>, k: usize| network.theta[k].cast::<f64>().weights().to_vec();
    let change = |k| weights(&network, k).iter().zip(weights(&start, k)).map(|(a, b)| a - b).collect();
    (0..=DEPTH).map(change).collect()
}

#[test]
fn the_first_step_is_along_the_gradient_or_along_its_signs() {
    let rate = 1e-2;
    for rule in [Rule::Backprop, Rule::Lifted(Mu::constant(0.1))] {
        let [plain, half] = [rate, 0.5 * rate].map(|rate| moves(rule, Metric::Euclidean, rate));
        // The mean square of one gradient is its square: every entry moves by the rate, downhill. The Kronecker metric is
        // the same as long as it has no basis.
        for metric in [Metric::Diagonal, Metric::Kronecker] {
            let signs = moves(rule, metric, rate);
            for (k, plain) in plain.iter().enumerate() {
                let size = plain.iter().fold(0.0f64, |size, s| size.max(s.abs()));
                assert!(size > 1e-6, "theta_{k} does not move");
                for (i, step) in plain.iter().enumerate() {
                    assert!((step - 2.0 * half[k][i]).abs() < 1e-6, "theta_{k}[{i}]");
                    let off = (signs[k][i] - rate.copysign(*step)).abs();
                    assert!(off < 1e-3 * rate || step.abs() < 1e-3 * size, "theta_{k}[{i}]: {off}");
                }
            }
        }
    }
}

/// The loss before each of 40 steps on one batch.
fn losses(rule: Rule, metric: Metric, start: f64) -> Vec<f64> {
    let (engine, batch, mut network) = (Cpu::new(), batch(), network());
    let mut trainer = rated(rule, metric, start, Schedule::Constant);
    (0..40).map(|_| trainer.step(&engine, &mut network, &batch, 0.0).unwrap().loss).collect()
}

#[test]
fn each_metric_lowers_the_loss_further_than_the_one_before() {
    for rule in [Rule::Backprop, Rule::Lifted(Mu::constant(0.1))] {
        let runs: Vec<(Metric, Vec<f64>)> = rules_and_metrics()
            .filter(|(of, ..)| *of == rule)
            .map(|(rule, metric, rate)| (metric, losses(rule, metric, rate)))
            .collect();
        // What is left of the loss after 40 steps, as measured, and a little more.
        for ((metric, losses), most) in runs.iter().zip([0.47, 0.42, 0.39, 0.13]) {
            let left = losses[39] / losses[0];
            println!("{rule:?}, {metric}: {left:.3} of the loss is left");
            assert!(left < most, "{rule:?}, {metric}: {left} of the loss is left");
        }
        assert!(runs.windows(2).all(|pair| pair[1].1[39] < pair[0].1[39]), "{runs:?}");
        // The Kronecker metric gets its basis at step 20, and is the diagonal one until then, but for rounding.
        let (diagonal, kronecker) = (&runs[1].1, &runs[2].1);
        assert!(diagonal[..20].iter().zip(&kronecker[..20]).all(|(a, b)| (a / b - 1.0).abs() < 1e-6));
        assert!(kronecker[25..].iter().zip(&diagonal[25..]).all(|(basis, none)| basis < none));
    }
}

#[test]
fn every_parameter_moves_in_every_rule_and_metric() {
    let engine = Cpu::new();
    use Unrolling::*;
    for unrolling in
        [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated, AveragedDualForwardBackward]
    {
        for (rule, metric, rate) in rules_and_metrics() {
            let learned = metric != Metric::GaussNewton;
            let start = match learned {
                true => network().with_knots(3).unrolled(unrolling, 2.0, 1),
                false => network(),
            };
            let mut network = start.clone();
            let mut trainer = trainer(&start, rule, metric, rate);
            (0..2).for_each(|_| drop(trainer.step(&engine, &mut network, &batch(), 0.0).unwrap()));
            for (k, (after, before)) in
                network.trained_mut().iter().zip(start.clone().trained_mut()).enumerate()
            {
                assert!(**after != *before, "{unrolling}, {}: block {k} stands still", trainer.describe());
            }
            assert_eq!(network.trained_mut().len(), DEPTH + 1 + if learned { 2 * (DEPTH - 1) } else { 0 });
        }
    }
}

#[test]
fn every_filter_moves_in_every_order_of_blocks_that_is_accepted() {
    let (engine, batch) = (Cpu::new(), batch());
    let (mut accepted, mut refused) = (0, 0);
    let orders = [BlockOrder::Sweep, BlockOrder::Simultaneous];
    let metrics = [Metric::Euclidean, Metric::Diagonal, Metric::GaussNewton];
    let u_steps = [UStep::Closed, UStep::Backtracked, UStep::Minimiser];
    for (order, metric) in orders.into_iter().flat_map(|order| metrics.map(|metric| (order, metric))) {
        for (u_step, inner) in
            u_steps.into_iter().flat_map(|u_step| [1, 2, DEPTH].map(|inner| (u_step, inner)))
        {
            for auxiliary in [Auxiliary::Anchored, Auxiliary::Persistent] {
                let options = Options { order, metric, u_step, inner, auxiliary, ..SWEEP };
                let start = network();
                let Ok(mut trainer) = LbFb::new(&start, options, SAMPLES, 1) else {
                    refused += 1;
                    continue;
                };
                accepted += 1;
                let mut network = start.clone();
                // Where u is kept and all blocks move at once, the error takes a batch for each layer.
                let steps = if order == BlockOrder::Simultaneous { DEPTH + 1 } else { 1 };
                (0..steps).for_each(|_| drop(trainer.step(&engine, &mut network, &batch, 0.0).unwrap()));
                for (k, (after, before)) in network.theta.iter().zip(&start.theta).enumerate() {
                    assert!(after != before, "{options}: theta_{k} stands still after {steps} batches");
                }
            }
        }
    }
    assert!(accepted > 50 && refused > 20, "{accepted} settings accepted, {refused} refused");
}

fn outcome(rate: f64) -> Result<Option<(f64, f64)>> {
    if rate > 1.0 { Err(Error::Diverged { epoch: 1 }) } else { Ok(Some(((rate - 0.3).abs(), 1.0))) }
}

#[test]
fn the_least_loss_wins_and_a_rate_that_diverges_does_not_end_the_search() {
    let trials = search_rates(&[2.0, 0.1, 0.4, 1.0], vec![], outcome, |_| Ok(())).unwrap().unwrap();
    assert_eq!(trials.iter().map(|t| t.rate).collect::<Vec<_>>(), [2.0, 0.1, 0.4, 1.0]);
    assert_eq!((trials[0].loss, best_trial(&trials).unwrap().rate), (None, 0.4));
    assert!(best_trial(&trials[..1]).unwrap_err().to_string().contains("every rate"));
}

#[test]
fn a_rate_that_is_done_is_not_tried_again_and_a_stop_is_not_a_trial() {
    let mut kept = Vec::new();
    let stop_at = |rate| if rate == 0.4 { Ok(None) } else { outcome(rate) };
    let keep = |trials: &[Trial]| {
        kept = trials.to_vec();
        Ok(())
    };
    assert_eq!(search_rates(&[0.1, 0.4, 1.0], vec![], stop_at, keep).unwrap(), None);
    assert_eq!(kept.len(), 1);
    let mut tried = Vec::new();
    let count = |rate| {
        tried.push(rate);
        outcome(rate)
    };
    let trials = search_rates(&[0.1, 0.4, 1.0], kept, count, |_| Ok(())).unwrap().unwrap();
    assert_eq!((trials.len(), tried), (3, vec![0.4, 1.0]));
}

#[test]
fn a_cosine_falls_from_the_start_to_zero() {
    let rate = Rate { start: 2.0, schedule: Schedule::Cosine };
    assert_eq!(rate.at(0.0), 2.0);
    assert!((rate.at(0.5) - 1.0).abs() < 1e-15);
    assert!(rate.at(1.0).abs() < 1e-15);
    assert_eq!(Rate { start: 2.0, schedule: Schedule::Constant }.at(0.7), 2.0);
}
