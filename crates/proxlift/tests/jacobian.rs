//! The Jacobian of the network: adjoint, finite differences, both engines, and what its norm must be.
#![allow(missing_docs)]

use proxlift::Real;
use proxlift::analysis::Jacobian;
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::field::Field;
use proxlift::laws::{adjoint_mismatch, random_field};
use proxlift::network::{Architecture, Network, Unrolling};
use proxlift::operator::{LinearOperator, NormParams, PowerState, spectral_norm};

fn network<T: Real>(channels: usize, lambda: f64) -> Network<T> {
    let architecture = Architecture { depth: 5, features: 6, kernel: 3, channels };
    let network: Network<f32> = Network::glorot(architecture, lambda, 3).unwrap();
    network.cast()
}

/// The network unrolled from every algorithm, learned, free and bounded.
fn family(channels: usize) -> Vec<Network<f64>> {
    use Unrolling::*;
    let all = [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated].into_iter();
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
