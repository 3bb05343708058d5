//! The Jacobian of the network: adjoint, finite differences, both engines, what its norm must be, and its proven bound.
#![allow(missing_docs)]

use proxlift::Real;
use proxlift::analysis::{Jacobian, LipschitzBound};
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::field::Field;
use proxlift::laws::{adjoint_mismatch, random_field};
use proxlift::network::{Architecture, Network, Unrolling};
use proxlift::operator::{Filters, LinearOperator, NormParams, PowerState, spectral_norm};

fn network<T: Real>(channels: usize, lambda: f64) -> Network<T> {
    let architecture = Architecture { depth: 5, features: 6, kernel: 3, channels };
    let network: Network<f32> = Network::glorot(architecture, lambda, 3).unwrap();
    network.cast()
}

/// The network unrolled from every algorithm, learned, free and bounded.
fn family(channels: usize) -> Vec<Network<f64>> {
    use Unrolling::*;
    let all =
        [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated, AveragedDualForwardBackward]
            .into_iter();
    all.flat_map(|unrolling| [false, true].map(|bounded| (unrolling, bounded)))
        .map(|(unrolling, bounded)| Network { unrolling, bounded, ..network(channels, 0.1).with_knots(3) })
        .collect()
}

fn image<T: Real>(network: &Network<T>, seed: u64) -> Field<T> {
    let sizes = network.architecture();
    let grid = sizes.grid(9, 11).unwrap();
    let values = random_field::<T>(sizes.channels * grid.pixels(), seed);
    Field::from_planar(1, sizes.channels, grid, &values).unwrap()
}

fn output<T: Real>(engine: &dyn Engine<T>, network: &Network<T>, z: &Field<T>) -> Vec<T> {
    let mut x = z.clone();
    engine.denoise(network, z, &mut x);
    x.to_planar()
}

#[test]
fn the_two_products_are_adjoint() {
    for network in [family(1), family(3)].concat() {
        let jacobian = Jacobian::at(&Reference, &network, &image(&network, 1)).unwrap();
        for seed in 0..5 {
            assert!(adjoint_mismatch(&jacobian, seed) < 1e-14);
        }
        let network = network.cast::<f32>();
        let engine = Cpu::new();
        let jacobian = Jacobian::at(&engine, &network, &image(&network, 1)).unwrap();
        assert!(adjoint_mismatch(&jacobian, 1) < 1e-5);
    }
}

#[test]
fn it_is_what_finite_differences_tend_to() {
    for network in family(3) {
        let z = image(&network, 2);
        let jacobian = Jacobian::at(&Reference, &network, &z).unwrap();
        let direction = random_field::<f64>(jacobian.domain_len(), 5);
        let moved = |step: f64| {
            let values: Vec<f64> = z.to_planar().iter().zip(&direction).map(|(z, d)| z + step * d).collect();
            output(&Reference, &network, &Field::from_planar(1, 3, z.grid(), &values).unwrap())
        };
        // The network is piecewise affine: a step so short that no clip changes gives the derivative itself.
        let step = 1e-7;
        let mut product = vec![f64::NAN; direction.len()];
        jacobian.apply(&direction, &mut product);
        for ((a, b), product) in moved(step).iter().zip(moved(-step)).zip(product) {
            assert!(((a - b) / (2.0 * step) - product).abs() < 1e-6, "{:?}", network.unrolling);
        }
    }
}

#[test]
fn a_network_that_changes_nothing_has_norm_one() {
    let network = network::<f64>(1, 0.0);
    let jacobian = Jacobian::at(&Reference, &network, &image(&network, 1)).unwrap();
    let mut state = PowerState::new(&jacobian, 0);
    let norm = spectral_norm(&jacobian, &mut state, &NormParams::default()).norm;
    assert!((norm - 1.0).abs() < 1e-12, "{norm}");
}

#[test]
fn images_of_another_kind_are_refused() {
    let grey = network::<f64>(1, 0.1);
    let colour = image(&network::<f64>(3, 0.1), 1);
    assert!(Jacobian::at(&Reference, &grey, &colour).is_err());
}

fn jacobian_norm(network: &Network<f64>, seed: u64) -> f64 {
    let sizes = network.architecture();
    let grid = sizes.grid(12, 9).unwrap();
    let values = random_field::<f64>(sizes.channels * grid.pixels(), seed);
    let z = Field::from_planar(1, sizes.channels, grid, &values).unwrap();
    let jacobian = Jacobian::at(&Reference, network, &z).unwrap();
    spectral_norm(&jacobian, &mut PowerState::new(&jacobian, seed), &NormParams::default()).norm
}

#[test]
fn no_jacobian_exceeds_it() {
    for (channels, seed) in [(1, 1), (3, 2)] {
        let sizes = Architecture { depth: 4, features: 4, kernel: 3, channels };
        // Thresholds that clip nothing and something; steps that are safe and that are not.
        for (lambda, stretch) in [(1e9, 1.0), (0.3, 1.0), (1e9, 2.5)] {
            let mut network = Network::<f32>::glorot(sizes, lambda, seed).unwrap().cast::<f64>();
            for unrolling in [
                Unrolling::Inertial,
                Unrolling::ChambollePock,
                Unrolling::ChambollePockAccelerated,
                Unrolling::AveragedDualForwardBackward,
            ] {
                let other = Network { unrolling, bounded: true, ..network.clone().with_knots(3) };
                let (norm, bound) = (jacobian_norm(&other, seed), LipschitzBound::of(&other).unwrap());
                assert!(norm <= bound.bound * (1.0 + 1e-12), "{unrolling:?}: {norm} above {bound:?}");
                let mut own = Network { bounded: false, ..other }.with_own_synthesis();
                own.synthesis.iter_mut().for_each(|m| m.weights_mut().reverse());
                let (norm, bound) = (jacobian_norm(&own, seed), LipschitzBound::of(&own).unwrap());
                assert!(norm <= bound.bound * (1.0 + 1e-12), "own synthesis: {norm} above {bound:?}");
            }
            network.tau.iter_mut().for_each(|tau| *tau *= stretch);
            let bound = LipschitzBound::of(&network).unwrap();
            assert_eq!(bound.layers_are_non_expansive(), stretch == 1.0, "{bound:?}");
            let norm = jacobian_norm(&network, seed);
            assert!(norm <= bound.bound * (1.0 + 1e-12), "{norm} above {bound:?}");
        }
    }
}

#[test]
fn it_is_attained_where_every_layer_meets_its_worst_input() {
    // One tap, one feature: L_k is the number l_k, and x^ = z - l_2 ((1 - tau l_1^2) l_0 + tau l_1) z, with
    // tau l_1^2 = 3 and signs that let everything add up: 1 + 2 (2 * 0.5 + 1.5) = 6.
    let theta = [-0.5, 2.0, -2.0].map(|l| Filters::new(1, 1, 1, vec![l]).unwrap());
    let network = Network::new(theta.to_vec(), vec![0.75], vec![1e9]).unwrap();
    let bound = LipschitzBound::of(&network).unwrap();
    assert!((bound.bound - 6.0).abs() < 1e-12, "{bound:?}");
    assert!((jacobian_norm(&network, 1) - bound.bound).abs() < 1e-9);
}

/// One tap, one feature, nothing clipped: `L_k` is the number `l_k`.
fn of_taps(unrolling: Unrolling, l: &[f64], tau: &[f64]) -> Network<f64> {
    let theta = l.iter().map(|l| Filters::new(1, 1, 1, vec![*l]).unwrap()).collect();
    let network = Network::new(theta, tau.to_vec(), vec![1e9]).unwrap();
    Network { unrolling, ..network }
}

#[test]
fn with_memory_it_is_attained_as_well() {
    // From u_0 = 0: u_1 = tau l_1 z = 1.5 z, and x^ = (1 - beta)(1 + 2 * 1.5) z + beta z.
    let accelerated = 3f64.sqrt() / (1.0 + 3f64.sqrt());
    for (unrolling, beta) in [
        (Unrolling::Inertial, 0.0),
        (Unrolling::ChambollePock, 0.5),
        (Unrolling::ChambollePockAccelerated, accelerated),
    ] {
        let network = of_taps(unrolling, &[0.0, 1.0, -2.0], &[1.5]);
        let (bound, expected) = (LipschitzBound::of(&network).unwrap().bound, 4.0 - 3.0 * beta);
        assert!((bound - expected).abs() < 1e-12, "{unrolling}: {bound}");
        assert!((jacobian_norm(&network, 1) - expected).abs() < 1e-9, "{unrolling}");
    }
}

#[test]
fn inertia_and_extrapolation_count() {
    // Small filters and long steps, so that L* y hardly changes the image: u_1 = 1, and with the inertia of 1/4
    // v_2 = 5/4 + 1 - 1/80, against 5/4 + 1 + 1/80 in the bound.
    let inertial = of_taps(Unrolling::Inertial, &[0.0, 0.01, 0.01, -2.0], &[100.0, 100.0]);
    let bound = LipschitzBound::of(&inertial).unwrap().bound;
    assert!((bound - (1.0 + 2.0 * 2.2625)).abs() < 1e-12, "{bound}");
    assert!((jacobian_norm(&inertial, 1) - (1.0 + 2.0 * 2.2375)).abs() < 1e-9);
    // Here r_2 = 1.005 in the bound, v_2 = 1 + 2 * 1.005 + 1, and half of r_2 is remembered.
    let extrapolated = of_taps(Unrolling::ChambollePock, &[0.0, 0.01, 0.01, -2.0], &[100.0, 100.0]);
    let bound = LipschitzBound::of(&extrapolated).unwrap().bound;
    assert!((bound - (0.5 * (1.0 + 2.0 * 4.01) + 0.5 * 1.005)).abs() < 1e-12, "{bound}");
    let norm = jacobian_norm(&extrapolated, 1);
    assert!((norm - (0.5 * (1.0 + 2.0 * 1.99) + 0.5 * 0.995)).abs() < 1e-9, "{norm}");
    // An activation that is steeper than 1 stretches by as much.
    let mut steep = of_taps(Unrolling::Inertial, &[0.0, 1.0, -2.0], &[1.5]);
    steep.activation[0] = proxlift::prox::PiecewiseLinear::new(1, vec![1e9], vec![3.0, 3.0]).unwrap().into();
    assert!((LipschitzBound::of(&steep).unwrap().bound - 10.0).abs() < 1e-12);
    assert!((jacobian_norm(&steep, 1) - 10.0).abs() < 1e-9);
}

#[test]
fn a_layer_that_is_more_than_a_step_long_expands() {
    let theta = [1.0, 1.0, 1.0].map(|l| Filters::new(1, 1, 1, vec![l]).unwrap());
    let network = |tau: f64| Network::new(theta.to_vec(), vec![tau], vec![1.0]).unwrap();
    assert_eq!(LipschitzBound::of(&network(1.5)).unwrap().bound, 3.5);
    assert_eq!(LipschitzBound::of(&network(4.0)).unwrap().bound, 8.0);
}
