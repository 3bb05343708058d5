//! The theorems the training rests on, as assertions on small random networks in double precision.

mod blocks;
mod energy;
mod maps;
mod proposition;
mod sweep;
mod symmetry;
mod unrolled;

use proxlift::Real;
use proxlift::analysis::Jacobian;
use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule, SampleLoss};
use proxlift::field::Field;
use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field};
use proxlift::network::{Activation, Architecture, Network, STEP, Unrolling};
use proxlift::operator::{
    Convolution, Filters, NormParams, PowerState, convolution_norm_bound, spectral_norm,
};
use proxlift::prox::{BoxClip, PiecewiseLinear, Prox};
use proxlift::real::norm_squared;
use proxlift::solver::{DualForwardBackward, DualParams, DualStop, Inertia, StopRule};
use proxlift::training::Lifted;

const MU: f64 = 0.3;
const SIDES: (usize, usize) = (6, 7);
const SAMPLES: usize = 2;

fn shapes() -> [Architecture; 4] {
    let net = |depth, features, kernel, channels| Architecture { depth, features, kernel, channels };
    [net(2, 3, 3, 1), net(3, 2, 5, 3), net(5, 4, 3, 3), net(5, 3, 5, 1)]
}

/// `||L||` on images of the size in use.
fn norm(theta: &Filters<f64>, (height, width): (usize, usize)) -> f64 {
    let op = Convolution::new(theta, height, width).unwrap();
    let params = NormParams { tolerance: 1e-9, max_iterations: 20_000, min_iterations: 1 };
    spectral_norm(&op, &mut PowerState::new(&op, 1), &params).norm
}

/// Random filters, thresholds that differ between features and saturate a part of them, and
/// `tau_k = 1.8 / ||L_k||^2` for the images in use.
fn network(architecture: Architecture, lambda: f64) -> Network<f64> {
    let Architecture { depth, features, kernel, channels } = architecture;
    let scale = 1.0 / ((channels + features) as f64 * (kernel * kernel) as f64).sqrt();
    let theta: Vec<_> = (0..=depth)
        .map(|k| {
            let weights = random_field::<f64>(architecture.layer_parameters(), 100 + k as u64);
            let weights = weights.iter().map(|w| scale * w).collect();
            Filters::new(features, channels, kernel, weights).unwrap()
        })
        .collect();
    let tau = theta[1..depth].iter().map(|theta| STEP / norm(theta, SIDES).powi(2)).collect();
    let lambda = (0..features).map(|j| lambda * (1.0 + 0.4 * j as f64)).collect();
    Network::new(theta, tau, lambda).unwrap()
}

fn images<T: Real>(network: &Network<T>, seed: u64) -> Field<T> {
    let architecture = network.architecture();
    let grid = architecture.grid(SIDES.0, SIDES.1).unwrap();
    let planar = random_field(SAMPLES * architecture.channels * grid.pixels(), seed);
    Field::from_planar(SAMPLES, architecture.channels, grid, &planar).unwrap()
}

/// Numbers in the box of each feature, some of them on its faces.
fn in_the_box(network: &Network<f64>, seed: u64) -> Vec<f64> {
    let lambda = network.activation[0].piecewise().unwrap().knots();
    let (pixels, features) = (SIDES.0 * SIDES.1, lambda.len());
    let random = random_field::<f64>(SAMPLES * features * pixels, seed);
    let bound = |i: usize| lambda[i / pixels % features];
    random.iter().enumerate().map(|(i, r)| (0.7 * bound(i) * r).clamp(-bound(i), bound(i))).collect()
}

/// A batch with random `u` in the box.
fn lifted_at_random(network: &Network<f64>, seed: u64) -> Lifted<f64> {
    let mut lifted = Lifted::new(network, images(network, seed), images(network, seed + 1)).unwrap();
    for k in 1..lifted.u.len() {
        lifted.u[k].load(&in_the_box(network, seed + 10 + k as u64)).unwrap();
    }
    lifted.refresh((&Reference, network));
    lifted
}

/// `E` with `u_k` replaced.
fn energy_at(lifted: &Lifted<f64>, network: &Network<f64>, k: usize, u: &[f64]) -> f64 {
    let mut moved = lifted.clone();
    moved.u[k].load(u).unwrap();
    moved.refresh((&Reference, network));
    moved.energy((&Reference, network), MU).total()
}

/// `df/du_k` with `u_k` replaced.
fn u_gradient_at(lifted: &Lifted<f64>, network: &Network<f64>, k: usize, u: &[f64]) -> Vec<f64> {
    let mut moved = lifted.clone();
    moved.u[k].load(u).unwrap();
    moved.refresh((&Reference, network));
    let mut gradients = moved.u.clone();
    moved.u_gradients((&Reference, network), MU, &mut gradients);
    gradients[k].to_planar()
}

fn with_theta(network: &Network<f64>, k: usize, weights: &[f64]) -> Network<f64> {
    let mut moved = network.clone();
    moved.theta[k].weights_mut().copy_from_slice(weights);
    moved
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

fn plus(a: &[f64], scale: f64, b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + scale * b).collect()
}

fn clip_to_box(network: &Network<f64>, u: &mut [f64]) {
    let sample = u.len() / SAMPLES;
    let clip = BoxClip::symmetric(network.activation[0].piecewise().unwrap().knots().to_vec()).unwrap();
    u.chunks_mut(sample).for_each(|u| clip.prox_in_place(1.0, u));
}
