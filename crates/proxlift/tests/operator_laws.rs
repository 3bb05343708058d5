//! Operators keep the adjoint law, and their norms are what the theory says.

use proxlift::Real;
use proxlift::laws::{adjoint_mismatch, random_field};
use proxlift::operator::{
    Convolution, Filters, FiniteDifferences, LinearOperator, NormParams, NormStop, PowerState,
    convolution_norm_bound, spectral_norm,
};

const SIZES: [(usize, usize); 7] = [(1, 1), (1, 6), (5, 1), (2, 3), (3, 3), (7, 13), (16, 9)];

fn filters<T: Real>(features: usize, channels: usize, size: usize, seed: u64) -> Filters<T> {
    let weights = random_field(features * channels * size * size, seed);
    Filters::new(features, channels, size, weights).unwrap()
}

fn convolutions_keep_the_adjoint_law<T: Real>(tolerance: f64) {
    for (h, w) in SIZES {
        for size in [1, 3, 5, 7] {
            for (features, channels) in [(1, 1), (5, 1), (4, 3)] {
                let filters = filters::<T>(features, channels, size, 1);
                let mismatch = adjoint_mismatch(&Convolution::new(&filters, h, w).unwrap(), 7);
                assert!(
                    mismatch <= tolerance,
                    "{mismatch:e} at {h} x {w}, kernel {size}, {channels} channels"
                );
            }
        }
    }
}

#[test]
fn convolutions_have_exact_adjoints() {
    convolutions_keep_the_adjoint_law::<f64>(1e-14);
    convolutions_keep_the_adjoint_law::<f32>(2e-6);
}

#[test]
fn differences_have_exact_adjoints() {
    for (h, w) in SIZES {
        for channels in [1, 3] {
            let d = FiniteDifferences::new(channels, h, w).unwrap();
            assert!(adjoint_mismatch::<f64>(&d, 3) <= 1e-14, "{h} x {w}");
            assert!(adjoint_mismatch::<f32>(&d, 3) <= 2e-6, "{h} x {w}");
        }
    }
}

/// Differences whose adjoint also reads the last column, a mistake easily made.
struct WrongBorder(FiniteDifferences, usize);

impl LinearOperator<f64> for WrongBorder {
    fn domain_len(&self) -> usize {
        LinearOperator::<f64>::domain_len(&self.0)
    }
    fn range_len(&self) -> usize {
        LinearOperator::<f64>::range_len(&self.0)
    }
    fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.0.apply(x, y);
    }
    fn adjoint(&self, y: &[f64], x: &mut [f64]) {
        self.0.adjoint(y, x);
        x[self.1 - 1] -= y[self.1 - 1];
    }
}

#[test]
fn the_law_sees_a_wrong_border() {
    assert!(adjoint_mismatch(&WrongBorder(FiniteDifferences::new(1, 9, 8).unwrap(), 8), 3) > 1e-3);
}

#[test]
fn the_norm_of_the_differences_is_known() {
    let params = NormParams { tolerance: 1e-5, max_iterations: 20_000, min_iterations: 1 };
    for (h, w) in [(1, 1), (1, 2), (3, 1), (4, 5), (12, 7)] {
        let d = FiniteDifferences::new(2, h, w).unwrap();
        let info = spectral_norm::<f64>(&d, &mut PowerState::new(&d, 5), &params);
        assert!(info.converged() && (info.norm - d.norm()).abs() <= 1e-5 * d.norm(), "{h} x {w}: {info:?}");
        assert!(d.norm() <= 8f64.sqrt());
    }
}

#[test]
fn power_iteration_climbs_to_the_symbol_norm() {
    for (channels, size) in [(1, 3), (3, 5), (1, 7)] {
        let filters = filters::<f64>(6, channels, size, 11);
        let bound = convolution_norm_bound(&filters, 128).unwrap();
        assert!(bound.upper / bound.lower < 1.012);
        let norms: Vec<f64> = [4, 8, 16, 32]
            .map(|side| {
                let op = Convolution::new(&filters, side, side).unwrap();
                let params = NormParams { tolerance: 1e-4, max_iterations: 5000, min_iterations: 1 };
                let info = spectral_norm(&op, &mut PowerState::new(&op, 2), &params);
                assert_eq!(info.stop, NormStop::Converged);
                info.norm
            })
            .to_vec();
        assert!(norms[3] <= bound.upper && norms[3] > 0.95 * bound.lower, "{norms:?} against {bound:?}");
        // What is missing falls with every doubling of the side.
        let missing: Vec<f64> = norms.iter().map(|norm| bound.lower - norm).collect();
        assert!(missing.windows(2).all(|pair| pair[1] < 0.6 * pair[0]), "{norms:?} against {bound:?}");
    }
}

#[test]
fn the_symbol_bound_tightens_from_above() {
    let filters = filters::<f64>(4, 2, 3, 23);
    let fine = convolution_norm_bound(&filters, 512).unwrap();
    for grid in [8, 16, 64] {
        let coarse = convolution_norm_bound(&filters, grid).unwrap();
        assert!(coarse.lower <= fine.lower && coarse.upper >= fine.lower, "{coarse:?} against {fine:?}");
    }
}

#[test]
fn a_warm_start_saves_iterations_and_a_seed_fixes_the_bits() {
    let mut filters = filters::<f32>(8, 1, 3, 4);
    let params = NormParams { tolerance: 1e-3, max_iterations: 5000, min_iterations: 1 };
    let op = Convolution::new(&filters, 24, 24).unwrap();
    let (mut state, mut twin) = (PowerState::new(&op, 9), PowerState::new(&op, 9));
    let cold = spectral_norm(&op, &mut state, &params);
    assert_eq!(cold, spectral_norm(&op, &mut twin, &params));
    assert_eq!(state.vector(), twin.vector());
    filters.weights_mut().iter_mut().for_each(|w| *w *= 1.001);
    let warm = spectral_norm(&Convolution::new(&filters, 24, 24).unwrap(), &mut state, &params);
    assert!(warm.iterations <= 2 && cold.iterations > 5, "{} then {}", cold.iterations, warm.iterations);
}

#[test]
fn the_info_says_why_it_stopped() {
    let zero = Filters::<f32>::zeros(2, 1, 3).unwrap();
    let op = Convolution::new(&zero, 5, 5).unwrap();
    let info = spectral_norm(&op, &mut PowerState::new(&op, 1), &NormParams::default());
    assert_eq!((info.norm, info.stop), (0.0, NormStop::ZeroOperator));
    let filters = filters::<f32>(2, 1, 3, 1);
    let op = Convolution::new(&filters, 20, 20).unwrap();
    let params = NormParams { tolerance: 0.0, max_iterations: 3, min_iterations: 1 };
    let info = spectral_norm(&op, &mut PowerState::new(&op, 1), &params);
    assert!(!info.converged() && info.iterations == 3 && info.norm > 0.0);
}
