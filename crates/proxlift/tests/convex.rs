//! The network at its fixed point, whatever its weights, is the proximity operator of a convex function.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::field::Field;
use proxlift::fixed_point::{FixedPoint, FixedPointParams, Mirrored, Potential, PrimalDual, Regulariser};
use proxlift::image::{Channels, Image, noise::add_gaussian};
use proxlift::laws::{adjoint_mismatch, max_relative_difference, random_field};
use proxlift::model::BuiltIn;
use proxlift::network::Activation;
use proxlift::operator::{Convolution, Filters, PowerState, spectral_norm};
use proxlift::prox::{PiecewiseLinear, Prox, SquaredDistance};
use proxlift::real::{dot, norm_squared};
use proxlift::solver::{DualInfo, DualStop, StopRule};
use std::ops::ControlFlow;

const SIZE: (usize, usize) = (9, 7);
const PIXELS: usize = SIZE.0 * SIZE.1;

/// Random filters and random monotone activations: slopes between 0 and 1, steep and flat in any order.
fn network(seed: u64) -> FixedPoint<f64> {
    let theta = Filters::new(5, 1, 3, random_field(45, seed)).unwrap();
    let convolution = Convolution::new(&theta, SIZE.0, SIZE.1).unwrap();
    let norm = spectral_norm(&convolution, &mut PowerState::new(&convolution, 1), &Default::default()).norm;
    let mut random = random_field::<f64>(5 * 7, seed + 100).into_iter().map(f64::abs);
    let mut knots = Vec::new();
    for _ in 0..5 {
        let mut at = 0.0;
        knots.extend((0..3).map(|_| {
            at += 0.2 * random.next().unwrap();
            at
        }));
    }
    // The last slope below 1, so that the regulariser is finite everywhere.
    let slopes =
        (0..20).map(|i| (0.9 * random.next().unwrap()).min(if i % 4 == 3 { 0.8 } else { 1.0 })).collect();
    let activation = Activation::PiecewiseLinear(PiecewiseLinear::new(3, knots, slopes).unwrap());
    FixedPoint::new(theta, 0.9 / (norm * norm), activation).unwrap()
}

fn regulariser(network: &FixedPoint<f64>) -> Regulariser<'static, f64> {
    network.regulariser(&Reference, SIZE).unwrap()
}

fn prox(r: &Regulariser<'_, f64>, z: &[f64], tolerance: f64) -> (Vec<f64>, DualInfo) {
    let stop = StopRule::Gap { tolerance, max_iterations: 50_000, check_every: 20 };
    r.prox(z, stop, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[test]
fn wider_kernels_with_zeros_around_are_the_same_function() {
    let narrow = network(4);
    let wide = FixedPoint { theta: narrow.theta.widened(7).unwrap(), ..narrow.clone() };
    let z = random_field::<f64>(PIXELS, 8);
    let [a, b] = [&narrow, &wide].map(|limit| prox(&regulariser(limit), &z, 1e-12).0);
    assert!(max_relative_difference(&a, &b) < 1e-5);
    let [a, b] = [&narrow, &wide].map(|limit| regulariser(limit).value(&z));
    assert!((a - b).abs() < 1e-12 * a, "{a} {b}");
    assert!(narrow.theta.widened(1).is_err() && narrow.theta.widened(4).is_err());
}

#[test]
fn the_operator_has_its_adjoint_at_every_size_and_its_norm_is_bounded() {
    let theta = Filters::new(4, 3, 5, random_field::<f64>(300, 3)).unwrap();
    // Smaller than the kernel, a strip, and strips with a rest.
    for size in [(2, 9), (5, 4), (32, 5), (33, 6), (70, 8)] {
        let operator = Mirrored::new(&Reference, theta.clone(), size).unwrap();
        assert!(adjoint_mismatch(&operator, 5) < 1e-13, "{size:?}");
        let norm = spectral_norm(&operator, &mut PowerState::new(&operator, 1), &Default::default()).norm;
        let bound = operator.norm().unwrap();
        assert!(norm <= bound && bound < 2.0 * norm, "{size:?}: {norm} {bound}");
    }
}

#[test]
fn strips_are_the_whole_and_the_fast_engine_computes_the_same() {
    // The mirror image of a constant is constant: filters of zero mean see nothing, up to the edges.
    let mut theta = Filters::new(2, 1, 3, random_field::<f64>(18, 3)).unwrap();
    theta.center();
    let operator = Mirrored::new(&Reference, theta.clone(), (40, 6)).unwrap();
    use proxlift::operator::LinearOperator;
    let mut features = vec![1.0; operator.range_len()];
    operator.apply(&vec![0.7; 240], &mut features);
    assert!(features.iter().all(|f| f.abs() < 1e-12));

    let cpu = Cpu::new();
    let fast = Mirrored::new(&cpu as &dyn Engine<f32>, theta.cast(), (40, 6)).unwrap();
    let x = random_field::<f64>(240, 9);
    operator.apply(&x, &mut features);
    let x: Vec<f32> = x.iter().map(|x| *x as f32).collect();
    let mut found = vec![0.0; fast.range_len()];
    fast.apply(&x, &mut found);
    let found: Vec<f64> = found.iter().map(|f| f64::from(*f)).collect();
    assert!(max_relative_difference(&found, &features) < 1e-5);
}

#[test]
fn an_activation_for_another_step_is_the_prox_for_it() {
    let network = network(4);
    let s = network.activation.piecewise().unwrap();
    for rho in [0.2, 0.9, 1.0, 3.0] {
        let mut v = random_field::<f64>(5 * 40, 8);
        let mut expected = v.clone();
        s.prox_in_place(rho, &mut expected);
        let other = s.with_step(rho);
        v.chunks_mut(40).enumerate().for_each(|(j, v)| other.activate(j, v));
        assert!(max_relative_difference(&v, &expected) < 1e-12, "{rho}");
    }
}

#[test]
fn a_weight_multiplies_the_regulariser() {
    let (one, x) = (network(3), random_field::<f64>(PIXELS, 5));
    for weight in [0.1, 0.7, 1.0, 4.0] {
        let more = regulariser(&one.weighted(weight).unwrap());
        let expected = weight * regulariser(&one).value(&x);
        assert!((more.value(&x) / expected - 1.0).abs() < 1e-9, "{weight}: {} {expected}", more.value(&x));
    }
    assert!(one.weighted(0.0).unwrap_err().to_string().contains("above zero"));
    assert!(one.weighted(f64::NAN).is_err());
}

/// With the distance to a picture as the other part, the solution is the proximity operator; every iteration approaches it, and
/// the gap says how near it is.
#[test]
fn the_primal_dual_method_finds_the_prox() {
    for seed in 0..3 {
        let (r, z) = (regulariser(&network(seed)), random_field::<f64>(PIXELS, seed + 7));
        let (solution, _) = prox(&r, &z, 1e-13);
        let data = SquaredDistance::new(z.clone(), 1.0).unwrap();
        for balance in [0.3, 1.0, 3.0] {
            let mut method = PrimalDual::new(&r, &vec![0.0; PIXELS], balance * r.tau).unwrap();
            let mut gap = f64::INFINITY;
            for round in 0..60 {
                for _ in 0..20 {
                    method.advance(&data);
                }
                let (penalty, fenchel, back) = method.look();
                let x = method.picture();
                assert!((penalty / r.value(x) - 1.0).abs() < 1e-9 && fenchel >= 0.0);
                // 1/2 ||x - z||^2 + R(x) less its value at any other t is at most fenchel + <x - z + L* u, x - t> - 1/2 ||x - t||^2.
                let d: Vec<f64> = x.iter().zip(&z).zip(&back).map(|((x, z), l)| x - z + l).collect();
                gap = fenchel + 0.5 * norm_squared(&d);
                let apart = 0.5 * norm_squared(&minus(x, &solution));
                assert!(apart <= gap * (1.0 + 1e-6) + 1e-9, "{seed} {balance} {round}: {apart} {gap}");
            }
            assert!(gap < 1e-6, "{seed} {balance}: {gap}");
        }
        assert!(PrimalDual::new(&r, &z[1..], 1.0).is_err() && PrimalDual::new(&r, &z, 0.0).is_err());
    }
}

#[test]
fn away_from_the_edges_the_prox_is_the_fixed_point() {
    let network = network(2);
    let (side, size) = (24, (24, 24));
    let z = random_field::<f64>(side * side, 3);
    let field = Field::from_planar(1, 1, network.grid(side, side).unwrap(), &z).unwrap();
    let params = FixedPointParams { tolerance: 1e-12, most: 20_000, ..FixedPointParams::default() };
    let limit = network.solve(&Reference, &field, None, params).unwrap().output().sample_to_planar(0);
    let (x, _) = prox(&network.regulariser(&Reference, size).unwrap(), &z, 1e-12);
    let at = 12 * side + 12;
    assert!((x[at] - limit[at]).abs() < 1e-3, "{} {}", x[at], limit[at]);
    assert!((x[at] - z[at]).abs() > 1e-2);
}

#[test]
fn the_gap_bounds_the_distance_and_vanishes() {
    for seed in 0..4 {
        let (r, z) = (regulariser(&network(seed)), random_field::<f64>(PIXELS, seed + 7));
        let (exact, best) = prox(&r, &z, 1e-11);
        assert!(best.stop == DualStop::GapReached && best.primal > 0.0, "{best:?}");
        for tolerance in [1e-1, 1e-3, 1e-6] {
            let (x, found) = prox(&r, &z, tolerance);
            assert!(found.gap <= tolerance * found.primal, "{found:?}");
            let distance = 0.5 * norm_squared(&minus(&x, &exact));
            assert!(distance <= found.gap + 2.0 * best.gap, "{distance:e} {:e}", found.gap);
            assert!(found.primal >= best.primal - best.gap && found.primal - found.gap <= best.primal);
        }
        // The objective at other points is larger.
        for trial in 0..20 {
            let step = random_field::<f64>(z.len(), 1000 + trial);
            let other: Vec<f64> = exact.iter().zip(&step).map(|(x, d)| x + 0.05 * d).collect();
            let value = 0.5 * norm_squared(&minus(&other, &z)) + r.value(&other);
            assert!(value > best.primal, "{value} {}", best.primal);
        }
    }
}

#[test]
fn no_pair_of_images_is_a_counter_example_to_firm_non_expansiveness() {
    let (mut worst, mut longest) = (f64::NEG_INFINITY, 0.0f64);
    for seed in 0..3 {
        let r = regulariser(&network(seed));
        let z = random_field::<f64>(PIXELS, seed + 50);
        let x = prox(&r, &z, 1e-10).0;
        for (start, length) in [1.0, 0.1].into_iter().enumerate() {
            // The power iteration on the Jacobian, which is symmetric, as a walk to the worst neighbour at this distance.
            let mut step = random_field::<f64>(z.len(), seed + 60 + start as u64);
            for _ in 0..10 {
                let scale = length / norm_squared(&step).sqrt();
                step.iter_mut().for_each(|d| *d *= scale);
                let other: Vec<f64> = z.iter().zip(&step).map(|(z, d)| z + d).collect();
                let change = minus(&prox(&r, &other, 1e-10).0, &x);
                let excess = norm_squared(&change) - dot(&change, &step);
                worst = worst.max(excess / norm_squared(&step));
                longest = longest.max((norm_squared(&change) / norm_squared(&step)).sqrt());
                step = change;
            }
        }
    }
    assert!(worst <= 1e-3, "{worst:e}");
    assert!(longest <= 1.0 + 1e-3 && longest > 0.3, "{longest}");
}

#[test]
fn potentials_are_those_of_the_activation() {
    for seed in 0..3 {
        let limit = network(seed);
        let s = limit.activation.piecewise().unwrap();
        for j in 0..5 {
            let potential = Potential::new(s, limit.tau, j);
            for t in [-3.0, -0.4, -0.1, 0.0, 0.03, 0.2, 0.9] {
                let (u, w) = (s.at(j, t), (t - s.at(j, t)) / limit.tau);
                let (g, conjugate) = (potential.g.at(w), potential.conjugate.at(u));
                let rounding = 1e-11 * (1.0 + (u * w).abs() + t * t / limit.tau);
                assert!((conjugate - s.value_at(j, u) / limit.tau).abs() < rounding, "{j} {t}");
                assert!((g - s.conjugate_at(j, limit.tau * w) / limit.tau).abs() < rounding, "{j} {t}");
                // Fenchel-Young, with equality as u is the slope of g at w.
                assert!((g + conjugate - u * w).abs() < rounding && g >= 0.0 && conjugate >= 0.0);
                assert!(potential.g.at(w + 0.1) + conjugate - u * (w + 0.1) >= -rounding);
            }
        }
    }
    // A clip is the absolute value, and its conjugate ends at the threshold.
    let clip = PiecewiseLinear::clip(vec![0.3]);
    let potential = Potential::new(&clip, 0.7, 0);
    assert!((potential.g.at(-2.0) - 0.6).abs() < 1e-12);
    assert!(potential.conjugate.at(0.3) == 0.0 && potential.conjugate.at(0.31).is_infinite());
}

/// Slopes of at most `p`: the dual objective falls by `1 - sqrt(1 - p)` each time, and so does a bound on the gap.
#[test]
fn smooth_potentials_are_solved_at_the_known_rate() {
    let mut limit = network(1);
    let mut s = limit.activation.piecewise().unwrap().clone();
    s.flatten(0.8);
    limit.activation = s.into();
    let (r, z) = (regulariser(&limit), random_field::<f64>(PIXELS, 3));
    let (_, found) = prox(&r, &z, 1e-12);
    let rate = 1.0 - (1.0 - r.steepest()).sqrt();
    let bound = (1e-12f64.ln() / rate.ln()).ceil() as usize;
    assert!(found.stop == DualStop::GapReached && found.iterations < 2 * bound, "{found:?} {bound}");
}

#[test]
fn the_built_in_convex_networks_are_proven() {
    for channels in [Channels::Grey, Channels::Rgb] {
        let model = BuiltIn::Convex.model(channels);
        let limit = FixedPoint::of(&model.network).unwrap();
        let cpu = Cpu::new();
        let size = (31, 26);
        let r = limit.regulariser(&cpu as &dyn Engine<f32>, size).unwrap();
        let clean = dead_leaves(3, 0, size.0, size.1, channels).unwrap();
        let solve = |z: &Image| {
            // Single precision leaves a gap of about 1e-7, by how a processor rounds.
            let stop = StopRule::Gap { tolerance: 1e-6, max_iterations: 2000, check_every: 10 };
            let (x, info) = r.prox(z.data(), stop, &mut |_| ControlFlow::Continue(())).unwrap();
            assert!(info.stop == DualStop::GapReached && info.iterations <= 200, "{info:?}");
            x
        };
        let z = add_gaussian(&clean, model.sigma as f32, 1, 0).unwrap();
        let x = solve(&z);
        let error =
            |a: &[f32]| a.iter().zip(clean.data()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        assert!(error(&x) < 0.4 * error(z.data()), "{} {}", error(&x), error(z.data()));
        // Pairs of pictures, near and far: the worst direction by power iteration, and other noise.
        let mut other = add_gaussian(&clean, 0.05, 2, 0).unwrap();
        for _ in 0..6 {
            let y = solve(&other);
            let change: Vec<f64> = y.iter().zip(&x).map(|(y, x)| f64::from(y - x)).collect();
            let step: Vec<f64> = other.data().iter().zip(z.data()).map(|(o, z)| f64::from(o - z)).collect();
            assert!(norm_squared(&change) <= dot(&change, &step) * (1.0 + 1e-3) + 1e-6);
            let scale = 0.3 / norm_squared(&change).sqrt();
            let moved = z.data().iter().zip(&change).map(|(z, d)| z + (scale * d) as f32);
            other = Image::new(channels.count(), size.0, size.1, moved.collect()).unwrap();
        }
    }
}
