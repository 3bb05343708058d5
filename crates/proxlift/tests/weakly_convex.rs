//! Activations that fall somewhere: the network at its fixed point minimises a weakly convex function beside the distance.

use proxlift::Denoiser;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::engine::SampleLoss;
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::field::Field;
use proxlift::fixed_point::{Acceleration, FixedPoint, FixedPointParams, Potential, Regulariser};
use proxlift::image::{Channels, Image, noise::add_gaussian};
use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field};
use proxlift::model::BuiltIn;
use proxlift::network::Activation;
use proxlift::operator::{Filters, convolution_norm_bound};
use proxlift::prox::{PiecewiseLinear, Prox};
use proxlift::real::{dot, norm_squared};
use proxlift::solver::{DualInfo, DualStop, StopRule};
use proxlift::training::FixedPointRule;
use safetensors::SafeTensors;
use std::ops::ControlFlow;

const SIZE: (usize, usize) = (9, 7);
const PIXELS: usize = SIZE.0 * SIZE.1;
const FEATURES: usize = 4;
const KNOTS: usize = 4;

const EXACT: FixedPointParams = FixedPointParams {
    acceleration: Acceleration::Nesterov,
    tolerance: 1e-13,
    most: 50_000,
    adjoint_tolerance: 1e-13,
    adjoint_most: 2000,
};

/// Random functions that rise to 0.9 at most and fall by up to `a`.
fn functions(a: f64, seed: u64) -> PiecewiseLinear<f64> {
    let mut random = random_field::<f64>(FEATURES * (2 * KNOTS + 1), seed).into_iter().map(f64::abs);
    let mut next = || random.next().unwrap().min(1.0);
    let (mut knots, mut slopes) = (Vec::new(), Vec::new());
    for _ in 0..FEATURES {
        let mut at = 0.0;
        knots.extend((0..KNOTS).map(|_| {
            at += 0.02 + 0.3 * next();
            at
        }));
        slopes.push(0.5 + 0.4 * next());
        slopes.extend((1..KNOTS).map(|m| if m % 2 == 0 { 0.9 * next() } else { -a * (0.3 + 0.7 * next()) }));
        slopes.push(0.0);
    }
    PiecewiseLinear::redescending(KNOTS, knots, slopes).unwrap()
}

fn network(a: f64, seed: u64) -> FixedPoint<f64> {
    let theta = Filters::new(FEATURES, 1, 3, random_field(FEATURES * 9, seed)).unwrap();
    let norm = convolution_norm_bound(&theta, 64).unwrap().upper;
    FixedPoint::new(theta, 0.9 / (norm * norm), functions(a, seed + 100).into()).unwrap()
}

fn regulariser(network: &FixedPoint<f64>) -> Regulariser<'static, f64> {
    network.regulariser(&Reference, SIZE).unwrap()
}

fn prox(r: &Regulariser<'_, f64>, z: &[f64], tolerance: f64) -> (Vec<f64>, DualInfo) {
    let stop = StopRule::Gap { tolerance, max_iterations: 50_000, check_every: 5 };
    r.prox(z, stop, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// `R(x) + 1/2 ||x - z||^2` and its gradient.
fn objective(r: &Regulariser<'_, f64>, x: &[f64], z: &[f64]) -> (f64, Vec<f64>) {
    let mut gradient = vec![0.0; x.len()];
    let value = r.gradient(x, &mut gradient, &mut r.room(), true).unwrap().unwrap();
    let away = minus(x, z);
    gradient.iter_mut().zip(&away).for_each(|(g, d)| *g += d);
    (value + 0.5 * norm_squared(&away), gradient)
}

#[test]
fn the_influence_is_the_slope_of_the_potential() {
    let (s, tau) = (functions(3.0, 1), 0.4);
    let influence = s.influence(tau);
    for j in 0..FEATURES {
        let potential = Potential::new(&s, tau, j).g;
        for t in [-2.0, -0.6, -0.2, 0.01, 0.1, 0.3, 0.5, 0.8, 1.5] {
            let (u, w) = (s.at(j, t), (t - s.at(j, t)) / tau);
            assert!((influence.at(j, w) - u).abs() < 1e-12 && w * t > 0.0);
            let slope = (potential.at(w + 1e-6) - potential.at(w - 1e-6)) / 2e-6;
            assert!((slope - u).abs() < 1e-5, "{j} {t}: {slope} {u}");
        }
    }
    assert!(influence.flattest() >= -tau * 3.0 / 4.0 && influence.flattest() < 0.0);
    // No prox, and not taken for one.
    assert!(s.validate().is_err() && s.flattest() < 0.0);
    assert!(PiecewiseLinear::new(1, vec![0.1], vec![0.5, -0.1]).is_err());
}

#[test]
fn what_is_minimised_is_strongly_convex_and_smooth() {
    for (seed, a) in [(0, 0.5), (1, 2.0), (2, 8.0)] {
        let r = regulariser(&network(a, seed));
        let rho = r.weak_convexity();
        assert!(rho > 0.0 && rho < a / (1.0 + a) && r.smoothness() > 0.0, "{rho}");
        let z = random_field::<f64>(PIXELS, seed + 9);
        for trial in 0..40 {
            let x = random_field::<f64>(PIXELS, 50 + trial);
            let step = random_field::<f64>(PIXELS, 900 + trial);
            let scale = [1.0, 0.1, 0.01][trial as usize % 3];
            let y: Vec<f64> = x.iter().zip(&step).map(|(x, d)| x + scale * d).collect();
            let ((at_x, slope_x), (at_y, slope_y)) = (objective(&r, &x, &z), objective(&r, &y, &z));
            let (apart, steeper) = (minus(&y, &x), minus(&slope_y, &slope_x));
            let curvature = dot(&apart, &steeper) / norm_squared(&apart);
            assert!(curvature >= 1.0 - rho && curvature <= 1.0 + r.smoothness(), "{curvature} {rho}");
            let middle: Vec<f64> = x.iter().zip(&y).map(|(x, y)| 0.5 * (x + y)).collect();
            let below = 0.5 * (at_x + at_y) - 0.125 * (1.0 - rho) * norm_squared(&apart);
            assert!(objective(&r, &middle, &z).0 <= below + 1e-12 * below.abs());
        }
    }
}

/// The least curvature, by power iteration with differences of gradients.
#[test]
fn power_iteration_finds_no_curvature_below_the_modulus() {
    let r = regulariser(&network(8.0, 3));
    let (x, most) = (random_field::<f64>(PIXELS, 4), 1.0 + r.smoothness());
    let at = objective(&r, &x, &x).1;
    let (mut step, mut curvature) = (random_field::<f64>(PIXELS, 5), 0.0);
    for _ in 0..200 {
        let scale = 1e-6 / norm_squared(&step).sqrt();
        step.iter_mut().for_each(|d| *d *= scale);
        let moved: Vec<f64> = x.iter().zip(&step).map(|(x, d)| x + d).collect();
        let change = minus(&objective(&r, &moved, &x).1, &at);
        curvature = dot(&change, &step) / norm_squared(&step);
        step.iter_mut().zip(&change).for_each(|(d, c)| *d = most * *d - c);
    }
    assert!(curvature < 1.0 && curvature >= 1.0 - r.weak_convexity() - 1e-6, "{curvature}");
}

#[test]
fn the_gap_bounds_the_objective_and_the_distance() {
    for (seed, a) in [(0, 0.5), (1, 2.0), (2, 8.0)] {
        let (r, z) = (regulariser(&network(a, seed)), random_field::<f64>(PIXELS, seed + 7));
        let (exact, best) = prox(&r, &z, 1e-20);
        assert!(best.stop == DualStop::GapReached && norm_squared(&objective(&r, &exact, &z).1) < 1e-15);
        assert!((objective(&r, &exact, &z).0 - best.primal).abs() < 1e-12 * best.primal);
        for tolerance in [1e-1, 1e-3, 1e-6] {
            let (x, found) = prox(&r, &z, tolerance);
            assert!(
                found.gap <= tolerance * found.primal && found.iterations <= best.iterations,
                "{found:?}"
            );
            assert!(found.primal - best.primal <= found.gap + 1e-12, "{found:?} {best:?}");
            let distance = norm_squared(&minus(&x, &exact));
            assert!(
                distance <= 2.0 * found.gap / (1.0 - r.weak_convexity()) + 1e-12,
                "{distance:e} {found:?}"
            );
        }
    }
}

/// The Jacobian of the result by the noisy picture is the inverse of the Hessian: symmetric, and between 0 and `1 / (1 - rho)`.
#[test]
fn the_jacobian_is_symmetric_and_bounded() {
    let r = regulariser(&network(3.0, 2));
    let z = random_field::<f64>(PIXELS, 6);
    let x = prox(&r, &z, 1e-24).0;
    let along = |d: &[f64]| -> Vec<f64> {
        let moved: Vec<f64> = z.iter().zip(d).map(|(z, d)| z + 1e-5 * d).collect();
        minus(&prox(&r, &moved, 1e-24).0, &x).iter().map(|c| 1e5 * c).collect()
    };
    let most = 1.0 / (1.0 - r.weak_convexity());
    for seed in 0..4 {
        let (a, b) = (random_field::<f64>(PIXELS, 20 + seed), random_field::<f64>(PIXELS, 40 + seed));
        let (ja, jb) = (along(&a), along(&b));
        assert!((dot(&ja, &b) - dot(&a, &jb)).abs() < 1e-3 * norm_squared(&a), "{seed}");
        let within = dot(&ja, &a) / norm_squared(&a);
        assert!(within > 0.0 && within <= most * (1.0 + 1e-6), "{within}");
    }
    let mut step = random_field::<f64>(PIXELS, 60);
    for _ in 0..20 {
        let change = along(&step);
        let longer = (norm_squared(&change) / norm_squared(&step)).sqrt();
        assert!(longer <= most * (1.0 + 1e-6), "{longer}");
        let scale = norm_squared(&change).sqrt().recip();
        step = change.iter().map(|c| scale * c).collect();
    }
}

fn images(limit: &FixedPoint<f64>, seed: u64) -> Field<f64> {
    let grid = limit.grid(6, 5).unwrap();
    Field::from_planar(2, 1, grid, &random_field(2 * grid.pixels(), seed)).unwrap()
}

fn loss(limit: &FixedPoint<f64>, z: &Field<f64>, x: &Field<f64>) -> f64 {
    let output = limit.solve(&Reference, z, None, EXACT).unwrap().output();
    0.5 * output.data().iter().zip(x.data()).map(|(o, x)| (o - x).powi(2)).sum::<f64>()
}

#[test]
fn implicit_gradients_are_those_of_finite_differences() {
    for (a, seed) in [(0.5, 1), (4.0, 2)] {
        let limit = network(a, seed);
        let (z, x) = (images(&limit, 10), images(&limit, 11));
        let rule = (FixedPointRule::Implicit, SampleLoss::Squared);
        let found = limit.gradients(&Reference, rule, (&z, &x), None, EXACT).unwrap();
        assert!(found.solution.converged(), "{:?}", found.solution.residuals);
        let by_theta = |weights: &[f64]| {
            let theta = Filters::new(FEATURES, 1, 3, weights.to_vec()).unwrap();
            loss(&FixedPoint { theta, ..limit.clone() }, &z, &x)
        };
        let mismatch = gradient_mismatch(by_theta, found.theta.weights(), limit.theta.weights(), 1);
        assert!(mismatch < 1e-6, "theta: {mismatch:e}");
        let s = limit.activation.piecewise().unwrap();
        let gradient = found.activation.unwrap();
        let with = |knots: &[f64], slopes: &[f64]| {
            let s = PiecewiseLinear::redescending(KNOTS, knots.to_vec(), slopes.to_vec()).unwrap();
            loss(&FixedPoint { activation: s.into(), ..limit.clone() }, &z, &x)
        };
        let mismatch = gradient_mismatch(|knots| with(knots, s.slopes()), &gradient.knots, s.knots(), 2);
        assert!(mismatch < 1e-6, "knots: {mismatch:e}");
        let mismatch = gradient_mismatch(|slopes| with(s.knots(), slopes), &gradient.slopes, s.slopes(), 3);
        assert!(mismatch < 1e-6, "slopes: {mismatch:e}");
    }
}

#[test]
fn lifted_gradients_become_the_implicit_ones() {
    let limit = network(2.0, 1);
    let (z, x) = (images(&limit, 10), images(&limit, 11));
    let of = |rule| {
        let rule = (rule, SampleLoss::Squared);
        let found = limit.gradients(&Reference, rule, (&z, &x), None, EXACT).unwrap();
        let activation = found.activation.unwrap();
        [found.theta.weights(), &activation.knots, &activation.slopes].concat()
    };
    let implicit = of(FixedPointRule::Implicit);
    let lifted = of(FixedPointRule::Centred { mu: 1e-4 });
    let away = max_relative_difference(&lifted, &implicit);
    assert!(away < 1e-3, "{away:e}");
}

/// Where no function falls, the picture-sized system gives what that of the features gives.
#[test]
fn monotone_functions_are_solved_alike_either_way() {
    let limit = network(0.0, 4);
    let monotone: Vec<f64> =
        limit.activation.piecewise().unwrap().slopes().iter().map(|p| p.max(0.05)).collect();
    let s = limit.activation.piecewise().unwrap();
    let smooth: Activation<f64> =
        PiecewiseLinear::new(KNOTS, s.knots().to_vec(), monotone.clone()).unwrap().into();
    let mut steep = monotone;
    steep[0] = 1.0;
    let steep: Activation<f64> = PiecewiseLinear::new(KNOTS, s.knots().to_vec(), steep).unwrap().into();
    for activation in [smooth, steep] {
        let limit = FixedPoint { activation, ..limit.clone() };
        let (z, x) = (images(&limit, 10), images(&limit, 11));
        let rule = (FixedPointRule::Implicit, SampleLoss::Squared);
        let found = limit.gradients(&Reference, rule, (&z, &x), None, EXACT).unwrap();
        let by_theta = |weights: &[f64]| {
            let theta = Filters::new(FEATURES, 1, 3, weights.to_vec()).unwrap();
            loss(&FixedPoint { theta, ..limit.clone() }, &z, &x)
        };
        let mismatch = gradient_mismatch(by_theta, found.theta.weights(), limit.theta.weights(), 1);
        assert!(mismatch < 1e-6, "{mismatch:e}");
    }
}

#[test]
fn what_is_not_weakly_convex_enough_is_refused() {
    let limit = network(8.0, 1);
    // A step ten times as long means a function ten times as concave.
    let concave = FixedPoint { tau: 10.0 * limit.tau, ..limit.clone() };
    let said = concave.regulariser(&Reference, SIZE).err().unwrap().to_string();
    assert!(said.contains("weakly convex"), "{said}");
    // Layers that differ have no limit.
    let mut network = limit.unrolled(4).unwrap();
    network.theta[1].weights_mut()[0] += 0.1;
    let said = network.validate().unwrap_err().to_string();
    assert!(said.contains("a slope of an activation is negative"), "{said}");
}

/// A picture through the built-in model, against Newton's method in double precision (`reference/weakly_convex.py`).
#[test]
fn the_built_in_model_is_what_another_solver_finds() {
    let bytes = include_bytes!("data/golden_weakly_convex.safetensors");
    let golden = SafeTensors::deserialize(bytes).unwrap();
    let trained = BuiltIn::WeaklyConvex.model(Channels::Grey).sigma;
    for (name, noise) in [("1", 1.0), ("2", 2.0)] {
        let expected: Vec<f32> = golden
            .tensor(name)
            .unwrap()
            .data()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        let denoiser = Denoiser::from(BuiltIn::WeaklyConvex).sigma(noise * trained).tolerance(1e-8);
        let found = denoiser.denoise(&picture()).unwrap();
        let away = max_relative_difference(found.data(), &expected);
        assert!(away < 1e-3, "{name}: {away:e}");
    }
}

/// As `picture` of `reference/shipped.py` has it.
fn picture() -> Image {
    let (mut state, mut data) = (7u32, Vec::new());
    for (y, x) in (0..480).map(|i| (i / 20, i % 20)) {
        let wave = (0.31 * x as f64).sin() * (0.23 * y as f64).cos();
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state) / 4_294_967_296.0 - 0.5;
        data.push((0.5 + 0.25 * wave + 0.15 * ((x / 5 + y / 4) % 2) as f64 + 0.34 * noise) as f32);
    }
    Image::new(1, 24, 20, data).unwrap()
}

#[test]
fn the_built_in_model_is_proven_and_better_than_the_convex_one() {
    let model = BuiltIn::WeaklyConvex.model(Channels::Grey);
    assert!(model.network.redescends() && model.to_onnx().is_err());
    assert!(model.network.activation[0].piecewise().unwrap().keeps_signs());
    let cpu = Cpu::new();
    let clean = dead_leaves(3, 0, 96, 80, Channels::Grey).unwrap();
    let r = FixedPoint::of(&model.network).unwrap();
    let r = r.regulariser(&cpu as &dyn Engine<f32>, (96, 80)).unwrap();
    let rho = r.weak_convexity();
    assert!(rho > 0.8 && rho <= 0.9, "{rho}");
    let z = add_gaussian(&clean, model.sigma as f32, 1, 0).unwrap();
    let stop = StopRule::Gap { tolerance: 1e-6, max_iterations: 5000, check_every: 10 };
    let (x, info) = r.prox(z.data(), stop, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(info.stop == DualStop::GapReached && info.iterations < 1500, "{info:?}");
    let error = |a: &[f32]| a.iter().zip(clean.data()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    let convex = Denoiser::from(BuiltIn::Convex).sigma(model.sigma).denoise(&z).unwrap();
    assert!(error(&x) < 0.95 * error(convex.data()), "{} {}", error(&x), error(convex.data()));
}
