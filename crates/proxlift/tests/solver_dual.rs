//! The dual solver reaches the solution its gap promises, plain and inertial, for any operator and penalty.

use proxlift::Real;
use proxlift::laws::{max_relative_difference, random_field, same_bits_for_threads};
use proxlift::operator::{Convolution, Filters, FiniteDifferences, LinearOperator, convolution_norm_bound};
use proxlift::prox::{BoxClip, Identity, L2Ball, Prox};
use proxlift::solver::{
    DualForwardBackward, DualParams, DualStop, Inertia, StopRule, TotalVariation, TvParams, total_variation,
};

const ALL_INERTIAS: [Inertia; 3] = [Inertia::None, Inertia::Nesterov, Inertia::ChambolleDossal { a: 4.0 }];
const ALL_KINDS: [TotalVariation; 3] =
    [TotalVariation::Anisotropic, TotalVariation::Isotropic, TotalVariation::Vectorial];

fn to_gap(tolerance: f64) -> StopRule {
    StopRule::Gap { tolerance, max_iterations: 50_000, check_every: 10 }
}

#[test]
fn an_orthogonal_operator_has_a_closed_form() {
    // L = 2 I (one tap): the solution of 1/2 (x - z)^2 + lambda |2 x| is soft(z, 2 lambda).
    let filters = Filters::new(1, 1, 1, vec![2.0]).unwrap();
    let op = Convolution::new(&filters, 3, 5).unwrap();
    let z = random_field::<f64>(15, 1);
    let expected: Vec<f64> = z.iter().map(|z| z.signum() * (z.abs() - 0.6).max(0.0)).collect();
    for inertia in ALL_INERTIAS {
        let mut solver = DualForwardBackward::new(&op);
        let params = DualParams::for_norm(2.0, inertia, to_gap(1e-13));
        let info = solver.solve(&op, &BoxClip::symmetric(vec![0.3]).unwrap(), &z, &params).unwrap();
        assert_eq!(info.stop, DualStop::GapReached);
        assert!(max_relative_difference(solver.x(), &expected) < 1e-6, "{inertia:?}");
    }
}

#[test]
fn a_step_edge_under_total_variation_has_a_closed_form() {
    // A row of four zeros and four ones: each half moves towards the other by lambda / 4.
    let z = [0.0f64, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    for kind in ALL_KINDS {
        for (h, w) in [(1, 8), (8, 1)] {
            let params = TvParams { stop: to_gap(1e-12), ..TvParams::default() };
            let (x, info) = total_variation(&z, 1, h, w, 0.2, kind, &params).unwrap();
            for (x, z) in x.iter().zip(z) {
                assert!((x - (0.05 + 0.9 * z)).abs() < 1e-5, "{kind:?}: {x}");
            }
            assert!((info.primal - (8.0 * 0.05f64.powi(2) / 2.0 + 0.2 * 0.9)).abs() < 1e-9);
        }
    }
}

#[test]
fn the_gap_bounds_the_distance_and_never_lies() {
    let filters = Filters::new(4, 1, 3, random_field(36, 3)).unwrap();
    let norm = convolution_norm_bound(&filters, 64).unwrap().upper;
    let (z, clip) = (random_field::<f64>(63, 5), BoxClip::symmetric(vec![0.1, 0.2, 0.05, 0.1]).unwrap());
    let op = Convolution::new(&filters, 7, 9).unwrap();
    let run = |inertia, stop| {
        let mut solver = DualForwardBackward::new(&op);
        let info = solver.solve(&op, &clip, &z, &DualParams::for_norm(norm, inertia, stop)).unwrap();
        (solver.into_x(), info)
    };
    let (solution, best) = run(Inertia::Nesterov, to_gap(1e-12));
    for inertia in ALL_INERTIAS {
        let (x, info) = run(inertia, to_gap(1e-9));
        assert_eq!(info.stop, DualStop::GapReached, "{info:?}");
        assert!(max_relative_difference(&x, &solution) < 1e-3);
        for iterations in [0, 1, 5, 40] {
            let (x, info) = run(inertia, StopRule::Iterations(iterations));
            assert_eq!((info.iterations, info.stop), (iterations, DualStop::IterationsDone));
            let distance: f64 = x.iter().zip(&solution).map(|(a, b)| (a - b).powi(2)).sum();
            assert!(0.5 * distance <= info.gap + best.gap + 1e-9, "{inertia:?}: {distance} and {info:?}");
            assert!(info.primal >= best.primal - best.gap);
            assert!(info.gap >= info.primal - best.primal - 1e-9);
        }
    }
}

#[test]
fn exactly_k_iterations_are_the_formula() {
    let op = FiniteDifferences::new(1, 5, 6).unwrap();
    let (z, ball) = (random_field::<f64>(30, 2), L2Ball::new(2, 2, vec![0.3]).unwrap());
    let tau = 0.2;
    let mut u = vec![0.0; 60];
    let (mut x, mut lx) = (vec![0.0; 30], vec![0.0; 60]);
    for _ in 0..7 {
        op.adjoint(&u, &mut x);
        x.iter_mut().zip(&z).for_each(|(x, z)| *x -= z);
        op.apply(&x, &mut lx);
        u.iter_mut().zip(&lx).for_each(|(u, lx)| *u -= tau * lx);
        ball.prox_in_place(tau, &mut u);
    }
    op.adjoint(&u, &mut x);
    x.iter_mut().zip(&z).for_each(|(x, z)| *x = z - *x);
    let mut solver = DualForwardBackward::new(&op);
    let params = DualParams { tau, inertia: Inertia::None, stop: StopRule::Iterations(7) };
    solver.solve(&op, &ball, &z, &params).unwrap();
    assert!(
        max_relative_difference(solver.u(), &u) < 1e-14 && max_relative_difference(solver.x(), &x) < 1e-14
    );
    // Three and four iterations from where the first call ended are seven.
    let mut twice = DualForwardBackward::new(&op);
    twice.solve(&op, &ball, &z, &DualParams { stop: StopRule::Iterations(3), ..params }).unwrap();
    twice.solve(&op, &ball, &z, &DualParams { stop: StopRule::Iterations(4), ..params }).unwrap();
    assert_eq!(twice.u(), solver.u());
}

#[test]
fn inertia_needs_fewer_iterations() {
    let z = random_field::<f32>(31 * 29, 8);
    let iterations = |inertia| {
        let params = TvParams { inertia, stop: to_gap(1e-3) };
        total_variation(&z, 1, 31, 29, 2.0, TotalVariation::Isotropic, &params).unwrap().1.iterations
    };
    assert!(3 * iterations(Inertia::Nesterov) < iterations(Inertia::None));
}

fn kinds_agree_where_they_must<T: Real>(tolerance: f64) {
    let z = random_field::<T>(3 * 9 * 7, 4);
    let params = TvParams { stop: to_gap(tolerance), ..TvParams::default() };
    let solve =
        |z: &[T], channels, kind| total_variation(z, channels, 9, 7, T::of(0.3), kind, &params).unwrap().0;
    let (grey, colour) = (&z[..63], &z[..]);
    let isotropic = solve(grey, 1, TotalVariation::Isotropic);
    assert_eq!(isotropic, solve(grey, 1, TotalVariation::Vectorial));
    assert!(max_relative_difference(&isotropic, &solve(grey, 1, TotalVariation::Anisotropic)) > 0.01);
    let (by_channel, coupled) =
        (solve(colour, 3, TotalVariation::Isotropic), solve(colour, 3, TotalVariation::Vectorial));
    assert!(max_relative_difference(&by_channel[..63], &isotropic) < 20.0 * tolerance.sqrt());
    assert!(max_relative_difference(&by_channel, &coupled) > 0.01);
}

#[test]
fn colour_is_by_channel_or_coupled() {
    kinds_agree_where_they_must::<f64>(1e-8);
    kinds_agree_where_they_must::<f32>(1e-5);
}

#[test]
fn odd_sizes_constants_and_extremes() {
    for kind in ALL_KINDS {
        for (c, h, w) in [(1, 1, 1), (3, 1, 1), (1, 1, 7), (3, 5, 1), (1, 13, 11)] {
            let z = random_field::<f32>(c * h * w, 6);
            let solve =
                |z: &[f32], lambda| total_variation(z, c, h, w, lambda, kind, &TvParams::default()).unwrap();
            assert_eq!(solve(&z, 0.0).0, z);
            let (flat, info) = solve(&vec![0.5; z.len()], 1.0);
            assert!(flat.iter().all(|x| *x == 0.5) && info.iterations == 0);
            // With a huge lambda only the mean of every channel is left, and it is kept.
            let (mean, _) = solve(&z, 1e3);
            for (x, z) in mean.chunks(h * w).zip(z.chunks(h * w)) {
                let z = z.iter().sum::<f32>() / (h * w) as f32;
                assert!(x.iter().all(|x| (x - z).abs() < 0.05), "{kind:?} {c} {h} {w}: {x:?} {z}");
            }
        }
    }
}

#[test]
fn refuses_and_explains() {
    let op = FiniteDifferences::new(1, 4, 4).unwrap();
    let mut solver = DualForwardBackward::<f64>::new(&op);
    let clip = BoxClip::symmetric(vec![0.1]).unwrap();
    let good = DualParams::for_norm(op.norm(), Inertia::None, to_gap(1e-6));
    let z = random_field::<f64>(16, 1);
    let mut refuse = |z: &[f64], params| solver.solve(&op, &clip, z, &params).unwrap_err().to_string();
    assert_eq!(refuse(&z[1..], good), "a field has 15 entries, but the operator needs 16");
    assert_eq!(refuse(&z, DualParams { tau: -1.0, ..good }), "the step -1 is not a finite positive number");
    let inertia = Inertia::ChambolleDossal { a: 2.0 };
    assert!(refuse(&z, DualParams { inertia, ..good }).contains("a be above 2"));
    assert!(refuse(&[f64::NAN; 16], good).contains("not finite after 0 iterations"));
    for (tolerance, check_every) in [(-1.0, 1), (f64::NAN, 1), (0.1, 0)] {
        let stop = StopRule::Gap { tolerance, max_iterations: 5, check_every };
        assert!(refuse(&z, DualParams { stop, ..good }).contains("the tolerance must be >= 0"));
    }
    // Without a bound on u, a step that is too long blows up, and says so.
    let mut solver = DualForwardBackward::<f64>::new(&op);
    let long = DualParams { tau: 1e3, inertia: Inertia::None, stop: StopRule::Iterations(500) };
    let blown_up = solver.solve(&op, &Identity, &z, &long).unwrap_err().to_string();
    assert!(blown_up.contains("not finite after 500 iterations"), "{blown_up}");
    let limit = StopRule::Gap { tolerance: 0.0, max_iterations: 3, check_every: 2 };
    let mut solver = DualForwardBackward::<f64>::new(&op);
    let info = solver.solve(&op, &clip, &z, &DualParams { stop: limit, ..good }).unwrap();
    assert_eq!((info.iterations, info.stop), (3, DualStop::IterationLimit));
    assert!(total_variation(&z, 1, 4, 5, 0.1, TotalVariation::Isotropic, &TvParams::default()).is_err());
    assert!(total_variation(&z, 1, 4, 4, -0.1, TotalVariation::Isotropic, &TvParams::default()).is_err());
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let z = random_field::<f32>(33 * 21, 12);
    let denoise =
        || total_variation(&z, 1, 33, 21, 0.2, TotalVariation::Isotropic, &TvParams::default()).unwrap().0;
    assert_eq!(same_bits_for_threads(denoise, &[1, 2, 3, 5]), 0);
    let calls = std::sync::atomic::AtomicU32::new(0);
    let wrong = || vec![calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as f32; 4];
    assert_eq!(same_bits_for_threads(wrong, &[1, 2, 3]), 8);
}
