//! The splitting algorithms: monotone at every iteration, and at the optimum that another one finds.

use proxlift::laws::{max_relative_difference, random_field};
use proxlift::operator::{Blur, FiniteDifferences, LinearOperator, Stacked};
use proxlift::prox::{
    BoxClip, GroupL2, Identity, Joined, KullbackLeibler, LeastSquares, Prox, SoftThreshold,
};
use proxlift::real::{dot, norm_squared};
use proxlift::solver::{
    Ended, Flat, Inertia, Iterate, PrimalDualSteps, Smooth, TotalVariation, TvParams, Until, admm, condat_vu,
    douglas_rachford, forward_backward, half_quadratic, multipliers, safe_norm, total_variation,
};
use std::ops::ControlFlow;

const SIZE: (usize, usize) = (9, 8);
const EXACT: Until = Until { tolerance: 1e-13, most: 200_000 };

type Data = LeastSquares<Blur, f64>;

fn data() -> Data {
    let kernel = [0.02, 0.1, 0.0, 0.1, 0.5, 0.08, 0.05, 0.1, 0.05];
    let blur = Blur::new(&kernel, (3, 3), 1, SIZE).unwrap();
    LeastSquares::new(blur, random_field(72, 1)).unwrap()
}

fn sparse() -> SoftThreshold<f64> {
    SoftThreshold::new(vec![0.15]).unwrap()
}

fn quiet(_: &Iterate<'_, f64>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm_squared(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// Asserts that a number does not grow from call to call, but for rounding.
struct Falling(f64, usize);

impl Falling {
    fn new() -> Self {
        Self(f64::INFINITY, 0)
    }

    fn next(&mut self, value: f64) -> ControlFlow<()> {
        assert!(value <= self.0 * (1.0 + 1e-12) + 1e-15, "call {}: {value:e} after {:e}", self.1, self.0);
        (self.0, self.1) = (value, self.1 + 1);
        ControlFlow::Continue(())
    }
}

/// The solution of `1/2 ||A x - y||^2 + 0.15 ||x||_1`, by plain forward-backward.
fn by_forward_backward() -> Vec<f64> {
    let (data, mut x) = (data(), vec![0.0; 72]);
    let lipschitz = (data.operator().norm().powi(2), Inertia::None);
    let course = forward_backward(&data, &sparse(), &mut x, lipschitz, &EXACT, &mut quiet).unwrap();
    assert_eq!(course.ended, Ended::Settled);
    x
}

#[test]
fn forward_backward_descends_and_approaches() {
    let (data, solution) = (data(), by_forward_backward());
    let lipschitz = data.operator().norm().powi(2);
    let (mut objective, mut away, mut x) = (Falling::new(), Falling::new(), vec![0.0; 72]);
    let mut watch = |i: &Iterate<'_, f64>| {
        let _ = objective.next(data.at(i.x) + sparse().value(i.x));
        away.next(distance(i.x, &solution))
    };
    let until = Until { tolerance: 1e-7, most: 5000 };
    forward_backward(&data, &sparse(), &mut x, (lipschitz, Inertia::None), &until, &mut watch).unwrap();
    assert!(away.1 > 20);
    // With inertia, the same optimum in fewer iterations.
    let mut fast = vec![0.0; 72];
    let with = (lipschitz, Inertia::ChambolleDossal { a: 4.0 });
    forward_backward(&data, &sparse(), &mut fast, with, &EXACT, &mut quiet).unwrap();
    assert!(max_relative_difference(&fast, &solution) < 1e-6);
}

#[test]
fn douglas_rachford_finds_the_same_and_approaches() {
    let (data, mut x, mut last) = (data(), vec![0.0; 72], Vec::new());
    let mut keep = |i: &Iterate<'_, f64>| {
        last = i.other.to_vec();
        ControlFlow::Continue(())
    };
    douglas_rachford(&data, &sparse(), &mut x, 1.5, &EXACT, &mut keep).unwrap();
    assert!(max_relative_difference(&x, &by_forward_backward()) < 1e-6);
    let (mut away, mut again) = (Falling::new(), vec![0.0; 72]);
    let mut watch = |i: &Iterate<'_, f64>| away.next(distance(i.other, &last));
    let until = Until { tolerance: 1e-7, most: 5000 };
    douglas_rachford(&data, &sparse(), &mut again, 1.5, &until, &mut watch).unwrap();
    assert!(away.1 > 10);
}

#[test]
fn admm_finds_the_same_and_approaches() {
    let (data, mut x, mut last) = (data(), vec![0.0; 72], Vec::new());
    let mut keep = |i: &Iterate<'_, f64>| {
        last = i.other.to_vec();
        ControlFlow::Continue(())
    };
    admm(&data, &sparse(), &mut x, 0.7, &EXACT, &mut keep).unwrap();
    assert!(max_relative_difference(&x, &by_forward_backward()) < 1e-6);
    let (mut away, mut again) = (Falling::new(), vec![0.0; 72]);
    let mut watch = |i: &Iterate<'_, f64>| away.next(distance(i.other, &last));
    admm(&data, &sparse(), &mut again, 0.7, &Until { tolerance: 1e-7, most: 5000 }, &mut watch).unwrap();
    assert!(away.1 > 10);
}

#[test]
fn half_quadratic_splitting_descends() {
    let (data, tau, mut z) = (data(), 0.8, vec![0.0; 72]);
    let mut falling = Falling::new();
    let mut watch = |i: &Iterate<'_, f64>| {
        falling.next(data.at(i.other) + sparse().value(i.x) + distance(i.x, i.other) / (2.0 * tau))
    };
    let mut forward = |tau: f64, x: &mut Vec<f64>| {
        data.prox_in_place(tau, x);
        Ok(())
    };
    let mut backward = |tau: f64, z: &mut Vec<f64>| {
        sparse().prox_in_place(tau, z);
        Ok(())
    };
    let changes = half_quadratic(&mut forward, &mut backward, &mut z, &[tau; 60], &mut watch).unwrap();
    assert!(changes.len() == 60 && changes[59] < 0.01 * changes[1]);
    let mut failing = |_: f64, _: &mut Vec<f64>| Err(proxlift::Error::invalid("no more"));
    let failed = half_quadratic(&mut forward, &mut failing, &mut z, &[tau; 5], &mut quiet);
    assert_eq!(failed.unwrap_err().to_string(), "no more");
}

#[test]
fn multipliers_by_turns_are_admm_and_steps_may_change() {
    let (data, tau) = (data(), 0.8);
    let mut forward = |tau: f64, x: &mut Vec<f64>| {
        data.prox_in_place(tau, x);
        Ok(())
    };
    let mut backward = |tau: f64, z: &mut Vec<f64>| {
        sparse().prox_in_place(tau, z);
        Ok(())
    };
    // With one step, these are the iterates of `admm`.
    let (mut iterates, mut x) = (Vec::new(), vec![0.0; 72]);
    let mut keep = |i: &Iterate<'_, f64>| {
        iterates.push((i.x.to_vec(), i.other[..72].to_vec()));
        ControlFlow::Continue(())
    };
    let until = Until { tolerance: 0.0, most: 30 };
    admm(&data, &sparse(), &mut x, 1.0 / tau, &until, &mut keep).unwrap();
    let mut z = vec![0.0; 72];
    let mut same = |i: &Iterate<'_, f64>| {
        let (x, z) = &iterates[i.iteration - 1];
        assert!(max_relative_difference(i.other, x) < 1e-12 && distance(i.x, z) < 1e-24);
        ControlFlow::Continue(())
    };
    multipliers(&mut forward, &mut backward, &mut z, &[tau; 30], &mut same).unwrap();
    // Steps that fall to another one: the solution does not depend on them.
    let taus: Vec<f64> = (0..4000).map(|k| 0.2 + 3.0 * 0.9f64.powi(k)).collect();
    let mut z = vec![0.0; 72];
    multipliers(&mut forward, &mut backward, &mut z, &taus, &mut quiet).unwrap();
    assert!(max_relative_difference(&z, &by_forward_backward()) < 1e-6);
}

/// `||x||^2 / tau - 2 <L x, u> + ||u||^2 / sigma`.
fn metric(op: &impl LinearOperator<f64>, steps: PrimalDualSteps, x: &[f64], u: &[f64]) -> f64 {
    let mut image = vec![0.0; op.range_len()];
    op.apply(x, &mut image);
    norm_squared(x) / steps.tau - 2.0 * dot(&image, u) + norm_squared(u) / steps.sigma
}

#[test]
fn condat_vu_approaches_and_finds_what_others_find() {
    let (data, differences) = (data(), FiniteDifferences::new(1, SIZE.0, SIZE.1).unwrap());
    let steps = PrimalDualSteps::for_norms(data.operator().norm().powi(2), differences.norm(), 1.0);
    let (inside, variation) =
        (BoxClip::interval(vec![-0.5], vec![1.0]).unwrap(), GroupL2::new(2, 2, vec![0.1]).unwrap());
    let parts = (&data, &inside, &variation);
    let mut found = (vec![0.0; 72], vec![]);
    let mut keep = |i: &Iterate<'_, f64>| {
        found.1 = i.other.to_vec();
        ControlFlow::Continue(())
    };
    condat_vu(parts, &differences, (&mut found.0, &mut Vec::new()), steps, &EXACT, &mut keep).unwrap();
    let (mut away, mut x) = (Falling::new(), vec![0.0; 72]);
    let mut watch = |i: &Iterate<'_, f64>| {
        let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        away.next(metric(&differences, steps, &apart(i.x, &found.0), &apart(i.other, &found.1)))
    };
    let until = Until { tolerance: 1e-7, most: 5000 };
    condat_vu(parts, &differences, (&mut x, &mut Vec::new()), steps, &until, &mut watch).unwrap();
    assert!(away.1 > 20);
    // The same problem without a smooth part: the data become a part of `h`.
    let stacked = Stacked::new::<f64>(data.operator().clone(), differences).unwrap();
    let distance = proxlift::prox::SquaredDistance::new(data.data().to_vec(), 1.0).unwrap();
    let steps = PrimalDualSteps::for_norms(0.0, safe_norm::<f64>(&stacked), 1.0);
    let (joined, mut second) = (Joined::new(distance, 72, variation), vec![0.0; 72]);
    condat_vu((&Flat, &inside, &joined), &stacked, (&mut second, &mut Vec::new()), steps, &EXACT, &mut quiet)
        .unwrap();
    assert!(max_relative_difference(&second, &found.0) < 1e-6);
}

#[test]
fn condat_vu_denoises_as_dual_forward_backward_does() {
    let (z, differences) = (random_field::<f64>(72, 5), FiniteDifferences::new(1, 9, 8).unwrap());
    let exact =
        proxlift::solver::StopRule::Gap { tolerance: 1e-15, max_iterations: 100_000, check_every: 50 };
    let params = TvParams { stop: exact, ..TvParams::default() };
    let (expected, _) = total_variation(&z, 1, 9, 8, 0.2, TotalVariation::Isotropic, &params).unwrap();
    let near = proxlift::prox::SquaredDistance::new(z, 1.0).unwrap();
    let steps = PrimalDualSteps::for_norms(0.0, differences.norm(), 1.0);
    let (variation, mut x) = (GroupL2::new(2, 2, vec![0.2]).unwrap(), vec![0.0; 72]);
    condat_vu((&Flat, &near, &variation), &differences, (&mut x, &mut Vec::new()), steps, &EXACT, &mut quiet)
        .unwrap();
    assert!(max_relative_difference(&x, &expected) < 1e-6);
}

#[test]
fn counts_are_fitted_alike_by_two_algorithms() {
    // min KL(y; x) + 0.3 ||x||_1, entry by entry: x = y / (1 + 0.3).
    let y: Vec<f64> = random_field::<f64>(72, 4).iter().map(|y| y.abs()).collect();
    let counts = KullbackLeibler::new(y.clone(), 1.0).unwrap();
    let sparse = SoftThreshold::new(vec![0.3]).unwrap();
    let expected: Vec<f64> = y.iter().map(|y| y / 1.3).collect();
    let mut x = vec![0.5; 72];
    douglas_rachford(&counts, &sparse, &mut x, 1.0, &EXACT, &mut quiet).unwrap();
    assert!(max_relative_difference(&x, &expected) < 1e-6);
    let mut x = vec![0.5; 72];
    let identity = Blur::new(&[1.0], (1, 1), 1, SIZE).unwrap();
    let steps = PrimalDualSteps::for_norms(0.0, 1.0, 1.0);
    condat_vu((&Flat, &sparse, &counts), &identity, (&mut x, &mut Vec::new()), steps, &EXACT, &mut quiet)
        .unwrap();
    assert!(max_relative_difference(&x, &expected) < 1e-6);
}

#[test]
fn steps_and_limits_are_held() {
    let steps = PrimalDualSteps::for_norms(3.0, 2.0, 0.5);
    assert!((1.0 / steps.tau - steps.sigma * 4.0 - 1.5).abs() < 1e-12);
    let (data, mut x) = (data(), vec![0.0; 72]);
    let once = Until { tolerance: 0.0, most: 3 };
    let course = douglas_rachford(&data, &Identity, &mut x, 1.0, &once, &mut quiet).unwrap();
    assert_eq!((course.iterations, course.ended), (3, Ended::IterationLimit));
    assert!(douglas_rachford(&data, &Identity, &mut x, 0.0, &once, &mut quiet).is_err());
    assert!(admm(&data, &Identity, &mut x, f64::NAN, &once, &mut quiet).is_err());
    let stop = &mut |_: &Iterate<'_, f64>| ControlFlow::Break(());
    assert!(matches!(admm(&data, &Identity, &mut x, 1.0, &once, stop), Err(proxlift::Error::Cancelled)));
}
