//! Infinite depth: the fixed point is the solver's solution, its gradients are those of finite differences and the limits of
//! unrolled and of lifted ones, and all rules learn.

use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule, SampleLoss};
use proxlift::field::Field;
use proxlift::fixed_point::{Acceleration, FixedPoint, FixedPointParams};
use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field, same_bits_for_threads};
use proxlift::network::{Activation, Architecture, Network};
use proxlift::operator::{Convolution, Filters, convolution_norm_bound};
use proxlift::prox::{BoxClip, L2Ball, PiecewiseLinear};
use proxlift::solver::{DualForwardBackward, DualParams, Inertia, StopRule};
use proxlift::training::{Batch, Descent, Metric, Rate, Schedule, Trainer};
use proxlift::training::{FixedPointOptions, FixedPointRule, FixedPointTrainer};

const SIDES: (usize, usize) = (6, 5);
const SAMPLES: usize = 2;

const EXACT: FixedPointParams = FixedPointParams {
    acceleration: Acceleration::Nesterov,
    tolerance: 1e-14,
    most: 20_000,
    adjoint_tolerance: 1e-13,
    adjoint_most: 2000,
};

fn filters(features: usize, channels: usize, seed: u64) -> Filters<f64> {
    let weights = random_field(features * channels * 9, seed).iter().map(|w: &f64| 0.5 * w).collect();
    Filters::new(features, channels, 3, weights).unwrap()
}

fn limit(theta: Filters<f64>, activation: Activation<f64>) -> FixedPoint<f64> {
    let norm = convolution_norm_bound(&theta, 64).unwrap().upper;
    FixedPoint::new(theta, 0.9 / (norm * norm), activation).unwrap()
}

fn clip() -> Activation<f64> {
    Activation::clip(vec![0.2, 0.3, 0.1])
}

fn pieces() -> Activation<f64> {
    let slopes = [[1.0, 0.5, 0.1]; 3].concat();
    PiecewiseLinear::new(2, [[0.05, 0.2]; 3].concat(), slopes).unwrap().into()
}

/// Clips, learned functions, and balls over the features of a pixel.
fn limits() -> Vec<FixedPoint<f64>> {
    let ball = L2Ball::new(3, 3, vec![0.3]).unwrap();
    vec![
        limit(filters(3, 1, 1), clip()),
        limit(filters(3, 1, 2), pieces()),
        limit(filters(3, 1, 3), ball.into()),
    ]
}

fn images(limit: &FixedPoint<f64>, seed: u64) -> Field<f64> {
    let grid = limit.grid(SIDES.0, SIDES.1).unwrap();
    let channels = limit.theta.channels();
    let numbers = random_field(SAMPLES * channels * grid.pixels(), seed);
    Field::from_planar(SAMPLES, channels, grid, &numbers).unwrap()
}

/// The loss of the fixed points.
fn loss(limit: &FixedPoint<f64>, z: &Field<f64>, x: &Field<f64>) -> f64 {
    let output = limit.solve(&Reference, z, None, EXACT).unwrap().output();
    0.5 * output.data().iter().zip(x.data()).map(|(o, x)| (o - x).powi(2)).sum::<f64>()
}

fn gradient(limit: &FixedPoint<f64>, rule: FixedPointRule<f64>) -> Vec<f64> {
    let (z, x) = (images(limit, 10), images(limit, 11));
    limit
        .gradients(&Reference, (rule, SampleLoss::Squared), (&z, &x), None, EXACT)
        .unwrap()
        .theta
        .weights()
        .to_vec()
}

#[test]
fn the_fixed_point_is_the_solution_of_the_variational_problem() {
    let limit = limit(filters(3, 3, 4), clip());
    let z = images(&limit, 5);
    let op = Convolution::new(&limit.theta, SIDES.0, SIDES.1).unwrap();
    for acceleration in [Acceleration::None, Acceleration::Nesterov] {
        let found = limit.solve(&Reference, &z, None, FixedPointParams { acceleration, ..EXACT }).unwrap();
        assert!(found.converged(), "{acceleration}: {:?}", found.residuals);
        for s in 0..SAMPLES {
            let mut solver = DualForwardBackward::new(&op);
            let stop = StopRule::Gap { tolerance: 1e-14, max_iterations: 100_000, check_every: 10 };
            let params = DualParams { tau: limit.tau, inertia: Inertia::ChambolleDossal { a: 4.0 }, stop };
            let conjugate = BoxClip::symmetric(vec![0.2, 0.3, 0.1]).unwrap();
            solver.solve(&op, &conjugate, &z.sample_to_planar(s), &params).unwrap();
            let away = max_relative_difference(&found.output().sample_to_planar(s), solver.x());
            assert!(away < 1e-6, "{acceleration}: {away:e}");
        }
    }
}

/// Layers in place: of the fast engine those of the plain one, for learned activations, clips and others.
#[test]
fn layers_in_place_are_the_same_in_both_engines() {
    for (limit, channels) in [(limit(filters(3, 1, 2), pieces()), 1), (limit(filters(3, 3, 4), clip()), 3)] {
        let limit = FixedPoint {
            theta: limit.theta.cast::<f32>(),
            tau: limit.tau as f32,
            activation: limit.activation.cast(),
            border: 0,
        };
        let grid = limit.grid(21, 37).unwrap();
        let field = |planes: usize, seed: u64| {
            let numbers = random_field::<f32>(SAMPLES * planes * grid.pixels(), seed);
            Field::from_planar(SAMPLES, planes, grid, &numbers).unwrap()
        };
        let z = field(channels, 3);
        let run = |engine: &dyn Engine<f32>| {
            let (mut u, mut y) = (field(3, 1), field(3, 2));
            engine.iterate(limit.layer(), &z, &[0.0, 0.3, 0.5], &mut u, &mut y);
            engine.advance(limit.layer(), &z, 0.4, &mut u, &mut y);
            [u.data().to_vec(), y.data().to_vec()].concat()
        };
        let (plain, fast) = (run(&Reference), run(&Cpu::new()));
        assert!(max_relative_difference(&fast, &plain) < 1e-5);
    }
}

#[test]
fn inertia_takes_fewer_layers() {
    let limit = limit(filters(3, 1, 1), clip());
    let z = images(&limit, 5);
    let layers = |acceleration| {
        let params = FixedPointParams { acceleration, tolerance: 1e-6, ..EXACT };
        limit.solve(&Reference, &z, None, params).unwrap().iterations
    };
    let (plain, fast) = (layers(Acceleration::None), layers(Acceleration::Nesterov));
    assert!(2 * fast < plain, "{fast} and {plain}");
}

#[test]
fn implicit_gradients_are_those_of_finite_differences() {
    for limit in limits() {
        let (z, x) = (images(&limit, 10), images(&limit, 11));
        let found = limit
            .gradients(&Reference, (FixedPointRule::Implicit, SampleLoss::Squared), (&z, &x), None, EXACT)
            .unwrap();
        assert!((found.loss.iter().sum::<f64>() - loss(&limit, &z, &x)).abs() < 1e-12);
        let by_theta = |weights: &[f64]| {
            let theta = Filters::new(3, 1, 3, weights.to_vec()).unwrap();
            loss(&FixedPoint { theta, ..limit.clone() }, &z, &x)
        };
        let mismatch = gradient_mismatch(by_theta, found.theta.weights(), limit.theta.weights(), 1);
        assert!(mismatch < 1e-7, "theta: {mismatch:e}");
        let by_tau = |tau: f64| loss(&FixedPoint { tau, ..limit.clone() }, &z, &x);
        let slope = (by_tau(limit.tau + 1e-5) - by_tau(limit.tau - 1e-5)) / 2e-5;
        assert!((slope - found.tau).abs() < 1e-7 * (1.0 + slope.abs()), "tau: {slope} and {}", found.tau);
        let Some(functions) = limit.activation.piecewise() else { continue };
        let gradient = found.activation.unwrap();
        let by_knots = |knots: &[f64]| {
            let s = PiecewiseLinear::new(functions.pieces(), knots.to_vec(), functions.slopes().to_vec())
                .unwrap();
            loss(&FixedPoint { activation: s.into(), ..limit.clone() }, &z, &x)
        };
        let mismatch = gradient_mismatch(by_knots, &gradient.knots, functions.knots(), 2);
        assert!(mismatch < 1e-7, "knots: {mismatch:e}");
    }
}

#[test]
fn gradients_of_the_norm_are_those_of_finite_differences() {
    for border in [0, 1] {
        let limit = FixedPoint { border, ..limit(filters(3, 1, 1), clip()) };
        let (z, x) = (images(&limit, 10), images(&limit, 11));
        let numbers = (z.grid().height() - 2 * border) * (z.grid().width() - 2 * border);
        let rule = |loss| (FixedPointRule::Implicit, loss);
        let of = |limit: &FixedPoint<f64>, loss| {
            limit.gradients(&Reference, rule(loss), (&z, &x), None, EXACT).unwrap()
        };
        let by_theta = |weights: &[f64]| {
            let theta = Filters::new(3, 1, 3, weights.to_vec()).unwrap();
            let squares = of(&FixedPoint { theta, ..limit.clone() }, SampleLoss::Squared).loss;
            squares.iter().map(|&square| SampleLoss::Norm.of(square, numbers)).sum()
        };
        let found = of(&limit, SampleLoss::Norm);
        let mismatch = gradient_mismatch(by_theta, found.theta.weights(), limit.theta.weights(), 1);
        assert!(mismatch < 1e-7, "{mismatch:e}");
    }
}

#[test]
fn gradients_of_ever_more_layers_become_the_implicit_one() {
    for limit in limits() {
        let implicit = gradient(&limit, FixedPointRule::Implicit);
        let (z, x) = (images(&limit, 10), images(&limit, 11));
        let apart = |depth: usize| {
            let network = limit.unrolled(depth).unwrap();
            let mut gradients = Gradients::zeros(&network, SAMPLES);
            Reference.training_pass(&network, ReverseRule::Backprop, &z, &x, &mut gradients).unwrap();
            let sum = |i: usize| gradients.theta.iter().map(|theta| theta.weights()[i]).sum::<f64>();
            let unrolled: Vec<f64> = (0..implicit.len()).map(sum).collect();
            max_relative_difference(&unrolled, &implicit)
        };
        let (few, many) = (apart(10), apart(1000));
        assert!(20.0 * many < few, "{few:e} and {many:e}");
    }
}

#[test]
fn lifted_gradients_become_the_implicit_one() {
    for limit in limits() {
        let implicit = gradient(&limit, FixedPointRule::Implicit);
        for rule in [|mu| FixedPointRule::Lifted { mu }, |mu| FixedPointRule::Centred { mu }] {
            let apart = |mu: f64| max_relative_difference(&gradient(&limit, rule(mu)), &implicit);
            let (far, near) = (apart(1.0), apart(1e-6));
            assert!(near < 1e-5 && far > 10.0 * near, "{far:e} and {near:e}");
        }
    }
}

/// Twice the same filter: `u*` can move from one feature to the other, and 1 is an eigenvalue of the linear system.
#[test]
fn where_the_dual_is_not_unique_the_gradient_is_that_of_the_image() {
    let once = filters(2, 1, 7);
    let twice = |once: &[f64]| Filters::new(4, 1, 3, [once, once].concat()).unwrap();
    let limit = limit(twice(once.weights()), Activation::clip(vec![0.1, 0.15, 0.1, 0.15]));
    let (z, x) = (images(&limit, 10), images(&limit, 11));
    let found = limit
        .gradients(&Reference, (FixedPointRule::Implicit, SampleLoss::Squared), (&z, &x), None, EXACT)
        .unwrap();
    let (first, second) = found.theta.weights().split_at(18);
    let along: Vec<f64> = first.iter().zip(second).map(|(a, b)| a + b).collect();
    let by_filter = |weights: &[f64]| loss(&FixedPoint { theta: twice(weights), ..limit.clone() }, &z, &x);
    let mismatch = gradient_mismatch(by_filter, &along, once.weights(), 3);
    assert!(mismatch < 1e-7, "{mismatch:e}");
    // From elsewhere, another u*, but the same image and the same gradient along both filters.
    let grid = z.grid();
    let start = Field::from_planar(SAMPLES, 4, grid, &random_field(SAMPLES * 4 * grid.pixels(), 9)).unwrap();
    let other = limit
        .gradients(&Reference, (FixedPointRule::Implicit, SampleLoss::Squared), (&z, &x), Some(&start), EXACT)
        .unwrap();
    assert!(max_relative_difference(other.solution.u.data(), found.solution.u.data()) > 1e-3);
    assert!(max_relative_difference(other.solution.r.data(), found.solution.r.data()) < 1e-9);
    let (first, second) = other.theta.weights().split_at(18);
    let other: Vec<f64> = first.iter().zip(second).map(|(a, b)| a + b).collect();
    assert!(max_relative_difference(&other, &along) < 1e-6);
}

/// Noisy flat pictures with an edge, in single precision.
fn batch(network: &Network<f32>) -> Batch {
    let grid = network.architecture().grid(16, 16).unwrap();
    let clean: Vec<f32> = (0..8 * 256).map(|i| if i % 16 < 2 * (i / 256) + 1 { 0.3 } else { 0.7 }).collect();
    let noise = random_field::<f64>(clean.len(), 8);
    let noisy: Vec<f32> = clean.iter().zip(noise).map(|(x, n)| x + 0.15 * n as f32).collect();
    let field = |numbers: &[f32]| Field::from_planar(8, 1, grid, numbers).unwrap();
    Batch { z: field(&noisy), x: field(&clean), indices: (0..8).collect() }
}

fn tied(knots: usize) -> Network<f32> {
    let sizes = Architecture { depth: 4, features: 6, kernel: 3, channels: 1 };
    let network = Network::<f32>::glorot(sizes, 0.05, 3).unwrap().centered(3);
    let network = if knots > 0 { network.with_knots(knots) } else { network };
    let (theta, tau) = (network.theta[1].clone(), network.tau[0]);
    let activations = vec![network.activation[0].clone(); 3];
    Network::with_activations(vec![theta; 5], vec![tau; 3], activations).unwrap()
}

fn options(rule: FixedPointRule<f32>) -> FixedPointOptions {
    let rate = Rate { start: 0.01, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
    FixedPointOptions {
        rule,
        loss: SampleLoss::Squared,
        descent,
        params: FixedPointParams::default(),
        warm: false,
        zero_mean: true,
        weak: 0.0,
    }
}

#[test]
fn every_rule_learns_at_infinite_depth() {
    for knots in [0, 4] {
        for rule in [
            FixedPointRule::Implicit,
            FixedPointRule::Lifted { mu: 0.1 },
            FixedPointRule::Centred { mu: 0.1 },
        ] {
            for warm in [false, true].into_iter().filter(|warm| !warm || knots == 0) {
                let mut network = tied(knots);
                let batch = batch(&network);
                let options = FixedPointOptions { warm, ..options(rule) };
                let mut trainer = FixedPointTrainer::new(&network, options, 8, 0).unwrap();
                let step = |trainer: &mut FixedPointTrainer, network: &mut Network<f32>| {
                    trainer.step(&Cpu::new(), network, &batch, 0.0).unwrap().loss
                };
                let losses: Vec<f64> = (0..30).map(|_| step(&mut trainer, &mut network)).collect();
                assert!(
                    losses[29] < 0.85 * losses[0],
                    "{rule:?}, {knots} knots: {} to {}",
                    losses[0],
                    losses[29]
                );
                FixedPoint::of(&network).unwrap();
            }
        }
    }
}

/// The further potentials may bend down, the lower the loss. The modulus is kept, on a picture with its edges, and potentials have their
/// minimum at zero.
#[test]
fn weakly_convex_functions_keep_their_modulus() {
    let run = |weak: f64| {
        let mut network = tied(5);
        let batch = batch(&network);
        let options = FixedPointOptions { weak, ..options(FixedPointRule::Implicit) };
        let mut trainer = FixedPointTrainer::new(&network, options, 8, 0).unwrap();
        let mut step = || trainer.step(&Cpu::new(), &mut network, &batch, 0.0).unwrap().loss;
        let losses: Vec<f64> = (0..60).map(|_| step()).collect();
        (losses[0], losses[59], FixedPoint::of(&network).unwrap())
    };
    let mut before = f64::INFINITY;
    for weak in [0.1, 0.4, 0.8] {
        let (first, last, limit) = run(weak);
        let modulus = limit.modulus(&Cpu::new(), (40, 40)).unwrap();
        assert!(modulus > 0.5 * weak && modulus < 1.01 * weak, "{modulus}");
        assert!(limit.activation.piecewise().unwrap().keeps_signs());
        assert!(last < 0.85 * first && last < before, "{weak}: {first} to {last}, before {before}");
        before = last;
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let run = |(knots, weak): (usize, f64)| {
        let mut network = tied(knots);
        let batch = batch(&network);
        let options = FixedPointOptions { weak, ..options(FixedPointRule::Implicit) };
        let mut trainer = FixedPointTrainer::new(&network, options, 8, 0).unwrap();
        for _ in 0..5 {
            trainer.step(&Cpu::new(), &mut network, &batch, 0.0).unwrap();
        }
        network.theta[0].weights().to_vec()
    };
    for kind in [(0, 0.0), (5, 0.8)] {
        assert_eq!(same_bits_for_threads(|| run(kind), &[1, 2, 3]), 0);
    }
}

#[test]
fn a_trainer_continues_where_it_stopped() {
    for (knots, warm, weak) in [(0, true, 0.0), (5, false, 0.0), (5, false, 0.8)] {
        let mut network = tied(knots);
        let options = FixedPointOptions { warm, weak, ..options(FixedPointRule::Implicit) };
        let batch = batch(&network);
        let mut trainer = FixedPointTrainer::new(&network, options, 8, 0).unwrap();
        let step = |trainer: &mut FixedPointTrainer, network: &mut Network<f32>| {
            trainer.step(&Cpu::new(), network, &batch, 0.0).unwrap();
        };
        (0..3).for_each(|_| step(&mut trainer, &mut network));
        let mut state = proxlift::training::Snapshot::default();
        trainer.save(&mut state);
        let mut copy = network.clone();
        let mut other = FixedPointTrainer::new(&copy, options, 8, 0).unwrap();
        other.restore(&state).unwrap();
        step(&mut trainer, &mut network);
        step(&mut other, &mut copy);
        assert_eq!(network, copy, "{knots} knots, {weak}");
    }
}

#[test]
fn what_has_no_fixed_point_is_refused() {
    let good = limit(filters(3, 1, 1), clip());
    assert!(FixedPoint::new(filters(3, 1, 1), -1.0, clip()).is_err());
    assert!(FixedPoint::new(filters(2, 1, 1), 0.1, clip()).is_err());
    let z = images(&good, 1);
    let said = |params| good.solve(&Reference, &z, None, params).unwrap_err().to_string();
    assert!(said(FixedPointParams { tolerance: 0.0, ..EXACT }).contains("tolerance"));
    assert!(said(FixedPointParams { most: 0, ..EXACT }).contains("at least one iteration"));
    let long = FixedPoint { tau: 1e6, activation: proxlift::prox::Identity.into(), ..good.clone() };
    let params = FixedPointParams { acceleration: Acceleration::None, ..EXACT };
    assert!(long.solve(&Reference, &z, None, params).unwrap_err().to_string().contains("not finite"));
    assert!(good.solve(&Reference, &z, Some(&z), EXACT).unwrap_err().to_string().contains("another shape"));
    let rule = FixedPointRule::Lifted { mu: -1.0 };
    assert!(
        good.gradients(&Reference, (rule, SampleLoss::Squared), (&z, &z), None, EXACT)
            .unwrap_err()
            .to_string()
            .contains("mu is -1")
    );
    let short = FixedPointParams { most: 2, ..EXACT };
    let unsolved = good.solve(&Reference, &z, None, short).unwrap();
    assert!(!unsolved.converged() && unsolved.iterations == 2 && unsolved.unsolved == SAMPLES);
    let sizes = Architecture { depth: 4, features: 2, kernel: 3, channels: 1 };
    let untied = Network::<f32>::glorot(sizes, 0.1, 0).unwrap();
    let said = FixedPoint::of(&untied).unwrap_err().to_string();
    assert!(said.contains("tie them"), "{said}");
    let mut wrong = options(FixedPointRule::Implicit);
    wrong.descent.metric = Metric::GaussNewton;
    let said = FixedPointTrainer::new(&tied(0), wrong, 8, 0).err().unwrap().to_string();
    assert!(said.contains("Gauss-Newton"), "{said}");
}

#[test]
fn a_sample_outside_the_set_is_refused() {
    let mut network = tied(0);
    let mut batch = batch(&network);
    let options = FixedPointOptions { warm: true, ..options(FixedPointRule::Implicit) };
    let mut trainer = FixedPointTrainer::new(&network, options, 8, 0).unwrap();
    let mut said =
        |batch: &Batch| trainer.step(&Cpu::new(), &mut network, batch, 0.0).unwrap_err().to_string();
    batch.indices[1] = 8;
    assert!(said(&batch).contains("sample 8"));
    batch.indices.pop();
    assert!(said(&batch).contains("indices"));
}
