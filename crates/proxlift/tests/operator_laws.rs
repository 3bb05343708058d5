//! Operators keep the adjoint law, and their norms are what the theory says.

use proxlift::Real;
use proxlift::laws::{adjoint_mismatch, random_field};
use proxlift::network::{Architecture, Network};
use proxlift::operator::{
    Convolution, Filters, FiniteDifferences, LinearOperator, NormParams, NormStop, PowerState,
    convolution_norm_bound, spectral_norm,
};
use proxlift::real::{dot, norm_squared};

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

/// The formula, pixel by pixel.
fn naive(filters: &Filters<f64>, h: usize, w: usize, x: &[f64]) -> Vec<f64> {
    let (k, r) = (filters.size(), filters.radius() as isize);
    let mut y = vec![0.0; filters.features() * h * w];
    for (i, out) in y.iter_mut().enumerate() {
        let (j, py, px) = (i / (h * w), (i / w % h) as isize, (i % w) as isize);
        for c in 0..filters.channels() {
            for ky in 0..k {
                for kx in 0..k {
                    let (qy, qx) = (py + ky as isize - r, px + kx as isize - r);
                    if (0..h as isize).contains(&qy) && (0..w as isize).contains(&qx) {
                        let tap = filters.weights()[((j * filters.channels() + c) * k + ky) * k + kx];
                        *out += tap * x[c * h * w + qy as usize * w + qx as usize];
                    }
                }
            }
        }
    }
    y
}

#[test]
fn agrees_with_the_formula() {
    for (h, w) in [(1, 1), (1, 5), (4, 1), (2, 2), (5, 7), (9, 6)] {
        for size in [1, 3, 5, 7] {
            for channels in [1, 3] {
                let count = 4 * channels * size * size;
                let weights = (0..count).map(|i| ((i * 37 + 11) % 29) as f64 / 14.0 - 1.0).collect();
                let filters = Filters::new(4, channels, size, weights).unwrap();
                let x: Vec<f64> =
                    (0..channels * h * w).map(|i| ((i * 53 + 5) % 31) as f64 / 15.0 - 1.0).collect();
                let mut y = vec![f64::NAN; 4 * h * w];
                Convolution::new(&filters, h, w).unwrap().apply(&x, &mut y);
                let naive = naive(&filters, h, w, &x);
                assert!(y.iter().zip(&naive).all(|(a, b)| (a - b).abs() < 1e-12), "{h} x {w}, kernel {size}");
            }
        }
    }
}

#[test]
fn refuses_an_empty_image() {
    let filters = Filters::<f32>::zeros(1, 1, 3).unwrap();
    assert!(Convolution::new(&filters, 0, 4).is_err());
    assert!(Convolution::new(&filters, 4, 0).is_err());
}

#[test]
fn differences_of_a_small_image() {
    let d = FiniteDifferences::new(1, 2, 3).unwrap();
    let mut y = [f64::NAN; 12];
    d.apply(&[1.0, 4.0, 9.0, 2.0, 6.0, 12.0], &mut y);
    assert_eq!(y, [3.0, 5.0, 0.0, 4.0, 6.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
}

#[test]
fn refuses_empty_images() {
    for (c, h, w) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        assert!(FiniteDifferences::new(c, h, w).is_err());
    }
}

#[test]
fn known_symbols() {
    // The forward difference along x has the symbol exp(i w) - 1 and the norm 2.
    let mut difference = Filters::<f64>::zeros(1, 1, 3).unwrap();
    difference.weights_mut()[4] = -1.0;
    difference.weights_mut()[5] = 1.0;
    let norm = convolution_norm_bound(&difference, 64).unwrap();
    assert!((norm.lower - 2.0).abs() < 1e-12 && norm.upper > 2.0 && norm.upper < 2.01, "{norm:?}");
    // Kernels of one tap: the singular values of the matrix itself; here (3, 1) and (sqrt 2, sqrt 2).
    for (matrix, expected) in [([2.0, 1.0, 1.0, 2.0], 3.0), ([1.0, -1.0, 1.0, 1.0], 2f64.sqrt())] {
        let filters = Filters::new(2, 2, 1, matrix.to_vec()).unwrap();
        let norm = convolution_norm_bound(&filters, 1).unwrap();
        assert!((norm.lower - expected).abs() < 1e-12 && norm.upper == norm.lower, "{norm:?}");
    }
    assert_eq!(convolution_norm_bound(&Filters::<f32>::zeros(2, 3, 3).unwrap(), 8).unwrap().upper, 0.0);
}

#[test]
fn refuses_a_coarse_grid() {
    assert!(convolution_norm_bound(&Filters::<f64>::zeros(1, 1, 3).unwrap(), 4).is_err());
}

#[test]
fn all_cosines_but_the_constant_make_a_frame_that_takes_the_mean_away() {
    for (features, kernel, channels) in [(8, 3, 1), (24, 5, 1), (24, 3, 3)] {
        let architecture = Architecture { depth: 2, features, kernel, channels };
        let network = Network::<f64>::cosines(architecture, 0.1, 1).unwrap();
        let side = 4 * kernel;
        let l = Convolution::new(&network.theta[1], side, side).unwrap();
        let mut x = vec![0.0; l.domain_len()];
        let middle = side * side / 2 + side / 2;
        x[middle] = 1.0;
        let (mut u, mut y) = (vec![0.0; l.range_len()], x.clone());
        l.apply(&x, &mut u);
        l.adjoint(&u, &mut y);
        // L* L = I - (the mean over windows, twice): at the middle 1 - 1 / k^2.
        let expected = 1.0 - 1.0 / (kernel * kernel) as f64;
        assert!((y[middle] - expected).abs() < 1e-12, "{features} {kernel}: {}", y[middle]);
        assert!(y.iter().take(side * side).sum::<f64>().abs() < 1e-12);
    }
}

#[test]
fn sums_take_every_entry_once() {
    for len in [0usize, 1, 7, 8, 9, 16, 23] {
        let a: Vec<f32> = (0..len).map(|i| i as f32 + 1.0).collect();
        let plain: f64 = a.iter().map(|&a| f64::from(a)).sum();
        assert_eq!(dot(&a, &vec![1.0; len]), plain);
        assert_eq!(norm_squared(&a), a.iter().map(|&a| f64::from(a * a)).sum::<f64>());
    }
}
