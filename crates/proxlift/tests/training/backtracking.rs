//! The search for a step: it shortens, it grows, and every block finds its own.

use proxlift::training::backtracking::{Backtracking, Found, Trial};

/// `f(t) = c/2 t^2` from `t = 1` along its gradient: the inequality holds up to `1/c`.
fn search(curvatures: &[f64], start: f64) -> (Backtracking, Found, Vec<f64>) {
    let mut backtracking = Backtracking { step: start, ..Backtracking::default() };
    let f: Vec<f64> = curvatures.iter().map(|c| 0.5 * c).collect();
    let mut last = Vec::new();
    let found = backtracking.search(&f, |steps| {
        last = steps.to_vec();
        let trial = |(c, step): (&f64, &f64)| Trial {
            value: 0.5 * c * (1.0 - step * c).powi(2),
            model: -0.5 * step * c * c,
        };
        curvatures.iter().zip(steps).map(trial).collect()
    });
    (backtracking, found, last)
}

#[test]
fn a_step_that_is_too_long_is_shortened_and_a_short_one_grows() {
    let (after, found, _) = search(&[4.0], 100.0);
    assert!(after.step <= 0.25 + 1e-6 && after.step > 0.125 && found.refused > 5);
    let (after, found, _) = search(&[4.0], 0.01);
    assert_eq!((after.step, found.refused), (0.01 * 1.5, 0));
}

#[test]
fn every_block_finds_its_own_step_and_the_longest_is_remembered() {
    let (after, _, steps) = search(&[4.0, 1.0, 16.0], 100.0);
    for (step, curvature) in steps.iter().zip([4.0, 1.0, 16.0]) {
        assert!(*step <= 1.0 / curvature + 1e-6 && *step > 0.5 / curvature, "{steps:?}");
    }
    assert_eq!(after.step, steps[1]);
}

#[test]
fn a_function_that_only_rises_gets_no_step_and_is_put_back() {
    let mut backtracking = Backtracking::default();
    let mut last = f64::NAN;
    let found = backtracking.search(&[1.0], |steps| {
        last = steps[0];
        vec![Trial { value: 1.0 + steps[0].sqrt(), model: -0.5 * steps[0] }]
    });
    assert_eq!((found.step, found.refused, last), (None, 31, 0.0));
    assert_eq!(backtracking, Backtracking::default());
}

#[test]
fn no_step_is_longer_than_allowed() {
    let mut backtracking = Backtracking { step: 0.9, longest: 1.0, ..Backtracking::default() };
    assert_eq!(backtracking.search(&[1.0], |_| vec![Trial { value: 0.0, model: 0.0 }]).step, Some(1.0));
}
