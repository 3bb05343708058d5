//! The unrolled network and the problem it is unrolled from.

use super::*;

/// A network with the same operator and step in every layer.
fn tied<T: Real>(theta: &Filters<T>, tau: T, lambda: T, depth: usize) -> Network<T> {
    Network::new(vec![theta.clone(); depth + 1], vec![tau; depth - 1], vec![lambda; theta.features()])
        .unwrap()
}

/// Forward differences along rows and columns, with zeros outside: anisotropic total variation up to the border.
fn differences() -> Filters<f64> {
    let mut weights = vec![0.0; 18];
    (weights[4], weights[5]) = (-1.0, 1.0);
    (weights[9 + 4], weights[9 + 7]) = (-1.0, 1.0);
    Filters::new(2, 1, 3, weights).unwrap()
}

/// The solver after `iterations` from `u_0 = L z`, and what it says.
fn solve(
    theta: &Filters<f64>,
    z: &[f64],
    params: &DualParams<f64>,
    lambda: f64,
) -> (Vec<f64>, f64, DualStop) {
    use proxlift::operator::LinearOperator;
    let op = Convolution::new(theta, SIDES.0, SIDES.1).unwrap();
    let mut solver = DualForwardBackward::new(&op);
    op.apply(z, solver.u_mut());
    let info = solver.solve(&op, &BoxClip::symmetric(vec![lambda]).unwrap(), z, params).unwrap();
    (solver.into_x(), info.gap, info.stop)
}

fn unrolled<T: Real>(engine: &dyn Engine<T>, net: &Network<T>, z: &[T]) -> Vec<T> {
    let architecture = net.architecture();
    let grid = architecture.grid(SIDES.0, SIDES.1).unwrap();
    let field = Field::from_planar(1, architecture.channels, grid, z).unwrap();
    let mut output = field.clone();
    engine.denoise(net, &field, &mut output);
    output.to_planar()
}

#[test]
fn a_tied_network_is_the_dual_solver_stopped_after_k_minus_1_iterations() {
    let random = |j, c, k| Filters::new(j, c, k, random_field::<f64>(j * c * k * k, 4)).unwrap();
    for theta in [differences(), random(3, 1, 3), random(4, 3, 3), random(5, 1, 5), random(2, 3, 5)] {
        let z = random_field::<f64>(theta.channels() * SIDES.0 * SIDES.1, 6);
        for (depth, lambda) in [(2, 0.1), (3, 0.5), (5, 0.02), (40, 0.3)] {
            let tau = STEP / norm(&theta, SIDES).powi(2);
            let stop = StopRule::Iterations(depth - 1);
            let (x, _, _) = solve(&theta, &z, &DualParams { tau, inertia: Inertia::None, stop }, lambda);
            let net = tied(&theta, tau, lambda, depth);
            // x = z - L* u cancels, so the rounding is that of z.
            let scale = z.iter().fold(0.0f64, |scale, z| scale.max(z.abs()));
            let check = |ours: &[f64], tolerance: f64| {
                let off = ours.iter().zip(&x).fold(0.0f64, |off, (a, b)| off.max((a - b).abs())) / scale;
                assert!(off < tolerance, "K = {depth}, lambda = {lambda}: {off:e}");
            };
            check(&unrolled(&Reference, &net, &z), 1e-13);
            let single: Vec<f32> = z.iter().map(|z| *z as f32).collect();
            let fast = unrolled(&Cpu::new(), &net.cast(), &single);
            check(&fast.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), 1e-5);
        }
    }
}

#[test]
fn a_deep_tied_network_reaches_the_variational_solution() {
    let random = Filters::new(3, 1, 3, random_field::<f64>(27, 4)).unwrap();
    for (theta, lambda) in [(differences(), 0.3), (random, 0.05)] {
        let z = random_field::<f64>(SIDES.0 * SIDES.1, 6);
        let norm = norm(&theta, SIDES);
        let to_the_end = StopRule::Gap { tolerance: 1e-13, max_iterations: 200_000, check_every: 50 };
        // Started at u = L z and by another method, so that the two meet only at the solution.
        let (solution, _, stop) =
            solve(&theta, &z, &DualParams::for_norm(1.01 * norm, Inertia::Nesterov, to_the_end), lambda);
        assert_eq!(stop, DualStop::GapReached);
        let mut last = f64::INFINITY;
        for depth in [5, 20, 80, 320] {
            let tau = STEP / (norm * norm);
            let x = unrolled(&Reference, &tied(&theta, tau, lambda, depth), &z);
            let stop = StopRule::Iterations(depth - 1);
            let (_, gap, _) = solve(&theta, &z, &DualParams { tau, inertia: Inertia::None, stop }, lambda);
            let distance = squared_distance(&x, &solution);
            assert!(0.5 * distance <= gap * (1.0 + 1e-6) + 1e-10, "K = {depth}: {distance} and {gap}");
            assert!(distance < 0.5 * last || distance < 1e-10, "K = {depth}: {distance} after {last}");
            last = distance;
        }
        assert!(last < 1e-6, "{last}");
    }
}

#[test]
fn every_unrolling_reaches_the_variational_solution() {
    let (theta, lambda) = (differences(), 0.3);
    let z = random_field::<f64>(SIDES.0 * SIDES.1, 6);
    let norm = norm(&theta, SIDES);
    let to_the_end = StopRule::Gap { tolerance: 1e-13, max_iterations: 200_000, check_every: 50 };
    let (solution, _, _) =
        solve(&theta, &z, &DualParams::for_norm(1.01 * norm, Inertia::Nesterov, to_the_end), lambda);
    let distance = |unrolling: Unrolling, depth: usize| {
        let tau = (1..depth).map(|k| 0.99 * unrolling.step(k) / (norm * norm)).collect();
        let net = Network { tau, unrolling, ..tied(&theta, 1.0, lambda, depth) };
        squared_distance(&unrolled(&Reference, &net, &z), &solution)
    };
    use Unrolling::*;
    for unrolling in
        [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated, AveragedDualForwardBackward]
    {
        // The accelerations promise 1 / k^2: a sixteenth after four times as many layers.
        let (near, nearer) = (distance(unrolling, 100), distance(unrolling, 400));
        assert!(near < 1e-2 && nearer < (near / 8.0).max(1e-9), "{unrolling:?}: {near:e}, {nearer:e}");
    }
}

#[test]
fn a_bounded_network_solves_the_bounded_problem() {
    // With no penalty but the box, the solution is the projection of the image, whatever the layers do.
    let z = random_field::<f64>(SIDES.0 * SIDES.1, 6);
    let free = tied(&differences(), 0.1, 0.0, 12);
    let x = unrolled(&Reference, &Network { bounded: true, ..free.clone() }, &z);
    assert!(x.iter().zip(&z).all(|(x, z)| *x == z.clamp(0.0, 1.0)));
    // With one, it stays in the box.
    for unrolling in [Unrolling::DualForwardBackward, Unrolling::ChambollePockAccelerated] {
        let mut net = Network { unrolling, bounded: true, ..free.clone() };
        net.activation.fill(Activation::clip(vec![0.2; 2]));
        assert!(unrolled(&Reference, &net, &z).iter().all(|x| (0.0..=1.0).contains(x)));
    }
}

#[test]
fn the_acceleration_keeps_the_product_of_its_steps_and_lengthens_the_dual_one() {
    let steps: Vec<f64> = (1..20).map(|k| Unrolling::ChambollePockAccelerated.step(k)).collect();
    assert!(steps.windows(2).all(|pair| pair[1] > pair[0]) && steps[0] == 1.0);
    for k in 2..20 {
        let momentum = Unrolling::ChambollePockAccelerated.layer_memory::<f64>(k);
        let primal = 1.0 / momentum.memory - 1.0;
        assert!((primal * steps[k - 1] - 1.0).abs() < 1e-12);
        assert!((momentum.extrapolation - steps[k - 2] / steps[k - 1]).abs() < 1e-12);
    }
}

#[test]
fn the_first_layer_remembers_nothing() {
    use Unrolling::*;
    for unrolling in
        [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated, AveragedDualForwardBackward]
    {
        assert_eq!(unrolling.layer_memory::<f64>(1), proxlift::network::LayerMemory::default());
    }
}
