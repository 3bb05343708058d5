//! The theorems the training rests on, as assertions on small random networks in double precision.

use proxlift::Real;
use proxlift::engine::{Cpu, Engine, Field, Gradients, Reference, Reverse};
use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field};
use proxlift::network::{Activation, Architecture, Network, STEP, Unrolling};
use proxlift::operator::{
    Convolution, Filters, NormParams, PowerState, convolution_norm_bound, spectral_norm,
};
use proxlift::prox::{BoxClip, Identity, L2Ball, Prox, Relu, SoftThreshold};
use proxlift::real::norm_squared;
use proxlift::solver::{DualForwardBackward, DualParams, DualStop, Inertia, StopRule};
use proxlift::training::Lifted;
use proxlift::training::feedforward::{Affine, Convolutional, Dense, FeedForward};

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
    let params = NormParams { tolerance: 1e-9, max_iterations: 20_000 };
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
    let lambda = network.activation[0].knots();
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
    lifted.refresh(&Reference, network);
    lifted
}

/// `E` with `u_k` replaced.
fn energy_at(lifted: &Lifted<f64>, network: &Network<f64>, k: usize, u: &[f64]) -> f64 {
    let mut moved = lifted.clone();
    moved.u[k].load(u).unwrap();
    moved.refresh(&Reference, network);
    moved.energy(&Reference, network, MU).total()
}

/// `df/du_k` with `u_k` replaced.
fn u_gradient_at(lifted: &Lifted<f64>, network: &Network<f64>, k: usize, u: &[f64]) -> Vec<f64> {
    let mut moved = lifted.clone();
    moved.u[k].load(u).unwrap();
    moved.refresh(&Reference, network);
    let mut gradients = moved.u.clone();
    moved.u_gradients(&Reference, network, MU, &mut gradients);
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
    let clip = BoxClip::symmetric(network.activation[0].knots().to_vec()).unwrap();
    u.chunks_mut(sample).for_each(|u| clip.prox_in_place(1.0, u));
}

// --- The energy -----------------------------------------------------------------------------------------------------

#[test]
fn at_the_forward_pass_the_penalties_vanish_and_the_energy_is_the_loss() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let mut lifted = Lifted::new(&net, z.clone(), x.clone()).unwrap();
        lifted.anchor(&Reference, &net);
        let energy = lifted.energy(&Reference, &net, MU);
        assert_eq!(energy.penalties.len(), architecture.depth - 1);
        assert!(energy.penalties.iter().flatten().all(|penalty| penalty.abs() < 1e-15), "{energy:?}");

        let mut output = z.clone();
        Reference.denoise(&net, &z, &mut output);
        for s in 0..SAMPLES {
            let loss = MU * 0.5 * squared_distance(output.sample(s), x.sample(s));
            assert!((energy.sample(s) - loss).abs() < 1e-13 * loss);
        }
        // Some units are saturated and some are not, or the test would be about a linear network.
        let saturated = (1..architecture.depth).flat_map(|k| {
            lifted.u[k].to_planar().into_iter().zip(lifted.v[k].to_planar()).map(|(u, v)| u != v)
        });
        let (count, of) = saturated.fold((0, 0), |(count, of), s| (count + u32::from(s), of + 1));
        assert!((0.1..0.9).contains(&(f64::from(count) / f64::from(of))), "{count} of {of} saturated");
    }
}

#[test]
fn the_gradients_of_every_block_are_those_of_finite_differences() {
    for architecture in shapes() {
        let net = Network { border: 1, ..network(architecture, 0.2) };
        let mut lifted = lifted_at_random(&net, 3);
        let start = lifted.clone();
        let mut gradients = Gradients::zeros(&net, SAMPLES);
        lifted.theta_gradients(&Reference, &net, MU, &mut gradients.theta);
        for (k, gradient) in gradients.theta.iter().enumerate() {
            // f = E while u is in the box; tau is a constant.
            let f = |weights: &[f64]| {
                let moved = with_theta(&net, k, weights);
                let mut lifted = start.clone();
                lifted.refresh(&Reference, &moved);
                lifted.energy(&Reference, &moved, MU).total()
            };
            let mismatch = gradient_mismatch(f, gradient.weights(), net.theta[k].weights(), k as u64);
            assert!(mismatch < 1e-7, "{architecture:?} theta_{k}: {mismatch:e}");
        }
        for k in 1..architecture.depth {
            let u = start.u[k].to_planar();
            let gradient = u_gradient_at(&start, &net, k, &u);
            // The engine's B leaves the indicator out, so this is f, also a little outside the box.
            let mismatch = gradient_mismatch(|u| energy_at(&start, &net, k, u), &gradient, &u, k as u64);
            assert!(mismatch < 1e-7, "{architecture:?} u_{k}: {mismatch:e}");
        }
    }
}

/// The same network with activations of three pieces, different for each layer and feature.
fn learned(architecture: Architecture) -> Network<f64> {
    let net = network(architecture, 0.2);
    let features = architecture.features;
    let activation = (1..architecture.depth).map(|k| {
        let random = random_field::<f64>(7 * features, 200 + k as u64);
        let (knots, slopes) = random.split_at(3 * features);
        let knots = knots.iter().enumerate().map(|(i, r)| 0.1 * (i % 3 + 1) as f64 + 0.02 * r.tanh());
        let slopes = slopes.iter().map(|r| 0.5 + 0.4 * r.tanh());
        Activation::new(3, knots.collect(), slopes.collect()).unwrap()
    });
    let activation = activation.collect();
    Network::with_activations(net.theta, net.tau, activation).unwrap()
}

/// The network with a part of an activation replaced: 0 for its knots, 1 for its slopes.
fn with_activation(net: &Network<f64>, k: usize, part: usize, values: &[f64]) -> Network<f64> {
    let mut net = net.clone();
    net.activation[k].parts_mut()[part].copy_from_slice(values);
    net
}

#[test]
fn with_learned_activations_the_gradients_of_the_energy_are_those_of_finite_differences() {
    for net in shapes().into_iter().flat_map(family) {
        let architecture = (net.architecture(), net.unrolling, net.bounded);
        let mut lifted = Lifted::new(&net, images(&net, 3), images(&net, 4)).unwrap();
        for k in 1..lifted.u.len() {
            // Values of the activation at random places.
            let w = random_field::<f64>(lifted.u[k].to_planar().len(), 20 + k as u64);
            let w: Vec<_> = w.iter().map(|w| 0.4 * w).collect();
            let mut places = lifted.u[k].clone();
            places.load(&w).unwrap();
            Reference.activate(net.layer(k), &places, &mut lifted.u[k]);
        }
        lifted.refresh(&Reference, &net);
        let start = lifted.clone();
        let mut gradients = Gradients::zeros(&net, SAMPLES);
        lifted.theta_gradients(&Reference, &net, MU, &mut gradients.theta);
        for (k, gradient) in gradients.theta.iter().enumerate() {
            let f = |weights: &[f64]| {
                let moved = with_theta(&net, k, weights);
                let mut lifted = start.clone();
                lifted.refresh(&Reference, &moved);
                lifted.energy(&Reference, &moved, MU).total()
            };
            let mismatch = gradient_mismatch(f, gradient.weights(), net.theta[k].weights(), k as u64);
            assert!(mismatch < 1e-6, "{architecture:?} theta_{k}: {mismatch:e}");
        }
        let mut by_u = start.u.clone();
        lifted.u_gradients(&Reference, &net, MU, &mut by_u);
        for (k, by_u) in by_u.iter().enumerate().skip(1) {
            // df/du is that of E but for psi: q(u) - 1/2 u^2, whose gradient is w - u at u = s(w).
            let u = start.u[k].to_planar();
            let at = |u: &[f64]| {
                let mut lifted = start.clone();
                lifted.u[k].load(u).unwrap();
                lifted.refresh(&Reference, &net);
                lifted.energy(&Reference, &net, MU).total()
            };
            let pixels = start.z.grid().pixels();
            let inverse = |(i, &u): (usize, &f64)| {
                net.activation[k - 1].inverse(i / pixels % net.architecture().features, u)
            };
            let of_psi = u.iter().enumerate().map(|(i, u)| inverse((i, u)) - u);
            let gradient: Vec<f64> = by_u.to_planar().iter().zip(of_psi).map(|(f, psi)| f + psi).collect();
            let mismatch = gradient_mismatch(at, &gradient, &u, k as u64);
            assert!(mismatch < 1e-5, "{architecture:?} u_{k}: {mismatch:e}");
        }
        for k in 1..start.u.len() {
            let gradient = lifted.activation_gradient(&net, k);
            for (part, gradient) in [&gradient.knots, &gradient.slopes].into_iter().enumerate() {
                let f = |values: &[f64]| {
                    let moved = with_activation(&net, k - 1, part, values);
                    start.energy(&Reference, &moved, MU).total()
                };
                let at = net.activation[k - 1].clone().parts_mut()[part].to_vec();
                let mismatch = gradient_mismatch(f, gradient, &at, k as u64);
                assert!(mismatch < 1e-5, "{architecture:?} activation {k}, part {part}: {mismatch:e}");
            }
        }
    }
}

/// Learned activations, unrolled from every algorithm, free, and bounded with a border.
fn family(architecture: Architecture) -> Vec<Network<f64>> {
    use Unrolling::*;
    let all = [DualForwardBackward, Inertial, ChambollePock, StronglyConvex].into_iter();
    all.flat_map(|unrolling| [false, true].map(|bounded| (unrolling, bounded)))
        .map(|(unrolling, bounded)| Network {
            unrolling,
            bounded,
            border: bounded.into(),
            ..learned(architecture)
        })
        .collect()
}

#[test]
fn with_learned_activations_back_propagation_is_the_gradient_of_the_loss_and_the_limit_of_the_lifted_pass() {
    for net in shapes().into_iter().flat_map(family) {
        let what = (net.architecture(), net.unrolling, net.bounded);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let pass = |rule| {
            let mut gradients = Gradients::zeros(&net, SAMPLES).with_activations(&net);
            Reference.training_pass(&net, rule, &z, &x, &mut gradients).unwrap();
            gradients
        };
        let gradients = pass(Reverse::Backprop);
        let loss = |net: &Network<f64>| {
            let mut error = z.clone();
            Reference.denoise(net, &z, &mut error);
            error.data_mut().iter_mut().zip(x.data()).for_each(|(e, x)| *e -= x);
            error.clear_border(net.border);
            0.5 * norm_squared(error.data())
        };
        for (k, gradient) in gradients.theta.iter().enumerate() {
            let f = |weights: &[f64]| loss(&with_theta(&net, k, weights));
            let mismatch = gradient_mismatch(f, gradient.weights(), net.theta[k].weights(), k as u64);
            assert!(mismatch < 1e-6, "{what:?} theta_{k}: {mismatch:e}");
        }
        let mu = 1e-6;
        let small = pass(Reverse::Lifted { mu });
        for (k, (gradient, small)) in gradients.activation.iter().zip(&small.activation).enumerate() {
            let parts = [(&gradient.knots, &small.knots), (&gradient.slopes, &small.slopes)];
            for (part, (gradient, small)) in parts.into_iter().enumerate() {
                let f = |values: &[f64]| loss(&with_activation(&net, k, part, values));
                let at = net.activation[k].clone().parts_mut()[part].to_vec();
                let mismatch = gradient_mismatch(f, gradient, &at, k as u64);
                assert!(mismatch < 1e-6, "{what:?} activation {k}, part {part}: {mismatch:e}");
                let small: Vec<f64> = small.iter().map(|g| g / mu).collect();
                let off = (squared_distance(&small, gradient) / norm_squared(gradient)).sqrt();
                assert!(off < 1e-3, "{what:?} activation {k}, part {part}: {off:e}");
            }
        }
    }
}

#[test]
fn back_propagation_is_the_gradient_of_the_plain_loss() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let mut gradients = Gradients::zeros(&net, SAMPLES);
        Reference.training_pass(&net, Reverse::Backprop, &z, &x, &mut gradients).unwrap();
        let loss = |net: &Network<f64>| {
            let mut output = z.clone();
            Reference.denoise(net, &z, &mut output);
            0.5 * squared_distance(output.data(), x.data())
        };
        assert!((gradients.loss.iter().sum::<f64>() - loss(&net)).abs() < 1e-13 * loss(&net));
        for (k, gradient) in gradients.theta.iter().enumerate() {
            let f = |weights: &[f64]| loss(&with_theta(&net, k, weights));
            let mismatch = gradient_mismatch(f, gradient.weights(), net.theta[k].weights(), k as u64);
            assert!(mismatch < 1e-7, "{architecture:?} theta_{k}: {mismatch:e}");
        }
    }
}

// --- The anchored reverse sweep ---------------------------------------------------------------------------------------

#[test]
fn the_lifted_pass_is_one_reverse_sweep_of_unit_forward_backward_steps() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let depth = architecture.depth;
        let mut pass = Gradients::zeros(&net, SAMPLES);
        Reference.training_pass(&net, Reverse::Lifted { mu: MU }, &z, &x, &mut pass).unwrap();

        let mut lifted = Lifted::new(&net, z, x).unwrap();
        lifted.anchor(&Reference, &net);
        // theta_K, then u_{K-1}, theta_{K-1}, ..., u_1, theta_1 and theta_0, each with what is not yet updated at the
        // forward pass; `v` and `r` stay there too.
        let mut sweep = pass.theta.clone();
        let mut now = pass.theta.clone();
        lifted.theta_gradients(&Reference, &net, MU, &mut now);
        sweep[depth] = now[depth].clone();
        for k in (1..depth).rev() {
            let mut gradients = lifted.u.clone();
            lifted.u_gradients(&Reference, &net, MU, &mut gradients);
            let mut u = plus(&lifted.u[k].to_planar(), -1.0, &gradients[k].to_planar());
            clip_to_box(&net, &mut u);
            lifted.u[k].load(&u).unwrap();
            lifted.theta_gradients(&Reference, &net, MU, &mut now);
            sweep[k] = now[k].clone();
        }
        sweep[0] = now[0].clone();
        for (k, (pass, sweep)) in pass.theta.iter().zip(&sweep).enumerate() {
            let mismatch = max_relative_difference(pass.weights(), sweep.weights());
            assert!(mismatch < 1e-13, "{architecture:?} theta_{k}: {mismatch:e}");
        }
    }
}

#[test]
fn lifted_gradients_over_mu_tend_to_back_propagation() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let gradients = |rule, scale: f64| {
            let mut gradients = Gradients::zeros(&net, SAMPLES);
            Reference.training_pass(&net, rule, &z, &x, &mut gradients).unwrap();
            let all = gradients.theta.iter().flat_map(|theta| theta.weights().to_vec());
            all.map(|g| g / scale).collect::<Vec<_>>()
        };
        let plain = gradients(Reverse::Backprop, 1.0);
        let error = |mu: f64| {
            squared_distance(&gradients(Reverse::Lifted { mu }, mu), &plain).sqrt()
                / norm_squared(&plain).sqrt()
        };
        // An entry of d differs only where v is within |back| = O(mu) of a kink: a share O(mu) of them.
        for exponent in 1..=12 {
            let mu = 0.5f64.powi(exponent);
            assert!(error(mu) < 10.0 * mu, "{architecture:?}: {:e} at mu = {mu}", error(mu));
        }
        assert!(error(1.0) > 0.01, "{architecture:?}: the two rules do not differ at mu = 1");
        // With no kink that near, they are the same up to rounding.
        assert!(error(1e-4) < 1e-11, "{architecture:?}: {:e}", error(1e-4));
    }
}

// --- Convexity and Lipschitz constants of the u-blocks ----------------------------------------------------------------

#[test]
fn the_energy_is_strongly_convex_in_each_u() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let lifted = lifted_at_random(&net, 3);
        for k in 1..architecture.depth {
            for trial in 0..10 {
                let (a, b) = (in_the_box(&net, 100 + trial), in_the_box(&net, 200 + trial));
                let middle: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 0.5 * (a + b)).collect();
                let [at_a, at_b, at_middle] = [&a, &b, &middle].map(|u| energy_at(&lifted, &net, k, u));
                // q is 1-strongly convex and the rest of E is convex in u_k.
                let bound = 0.5 * (at_a + at_b) - squared_distance(&a, &b) / 8.0;
                assert!(at_middle <= bound + 1e-12 * at_a, "{architecture:?} u_{k}: {at_middle} > {bound}");
            }
        }
    }
}

#[test]
fn the_penalty_is_at_least_half_the_squared_distance() {
    for architecture in shapes() {
        // In wide boxes nothing saturates, and the two are equal.
        for (lambda, equal) in [(0.2, false), (1e6, true)] {
            let net = network(architecture, lambda);
            let mut lifted = lifted_at_random(&network(architecture, 0.2), 3);
            lifted.refresh(&Reference, &net);
            let energy = lifted.energy(&Reference, &net, MU);
            for k in 1..architecture.depth {
                let mut s = lifted.v[k].clone();
                Reference.activate(net.layer(k), &lifted.v[k], &mut s);
                for sample in 0..SAMPLES {
                    let distance = 0.5 * squared_distance(lifted.u[k].sample(sample), s.sample(sample));
                    let penalty = energy.penalties[k - 1][sample];
                    assert!(distance > 0.0 && penalty >= distance * (1.0 - 1e-13), "{penalty} < {distance}");
                    assert_eq!(penalty <= distance * (1.0 + 1e-13), equal, "{penalty} and {distance}");
                }
            }
        }
    }
}

/// The Lipschitz constant of `df/du_k`: `1 + ||I - tau L L*||^2 <= 2`, and `1 + mu ||L_K||^2` for the last.
fn lipschitz(net: &Network<f64>, k: usize) -> f64 {
    let depth = net.architecture().depth;
    if k + 1 < depth { 2.0 } else { 1.0 + MU * norm(net.last(), SIDES).powi(2) }
}

#[test]
fn the_u_blocks_have_the_known_lipschitz_constants() {
    for architecture in shapes() {
        // With wide boxes nothing saturates, f is quadratic in u_k and the constant is attained.
        for (lambda, attained) in [(0.2, false), (1e6, true)] {
            let net = network(architecture, lambda);
            let lifted = lifted_at_random(&network(architecture, 0.2), 3);
            for k in 1..architecture.depth {
                let constant = lipschitz(&net, k);
                let point = lifted.u[k].to_planar();
                let at_point = u_gradient_at(&lifted, &net, k, &point);
                let mut direction = random_field::<f64>(point.len(), k as u64);
                let mut ratio = 0.0;
                // Power iteration on gradient differences climbs to the worst pair.
                for _ in 0..50 {
                    let moved = plus(&point, 1.0, &direction);
                    let change = plus(&u_gradient_at(&lifted, &net, k, &moved), -1.0, &at_point);
                    ratio = (norm_squared(&change) / norm_squared(&direction)).sqrt();
                    assert!(ratio <= constant * (1.0 + 1e-9), "{architecture:?} u_{k}: {ratio} > {constant}");
                    let length = norm_squared(&change).sqrt();
                    direction = change.iter().map(|c| c / length).collect();
                }
                // C < J in these shapes: L* has a kernel, where I - tau L L* is the identity.
                let kernel = k + 1 == architecture.depth || architecture.channels < architecture.features;
                if attained && kernel {
                    assert!(ratio > 0.98 * constant, "{architecture:?} u_{k}: only {ratio} of {constant}");
                }
            }
        }
    }
}

#[test]
fn half_steps_in_u_always_lower_the_energy() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        for seed in 0..5 {
            let mut lifted = lifted_at_random(&net, 1000 * seed);
            let mut energy = lifted.energy(&Reference, &net, MU).total();
            for k in (1..architecture.depth).rev() {
                let constant = lipschitz(&net, k);
                // 1 + mu ||L_K||^2 stays below 2 / gamma = 4 for weights of this size.
                assert!(constant < 4.0);
                let (gamma, u) = (0.5, lifted.u[k].to_planar());
                let mut moved = plus(&u, -gamma, &u_gradient_at(&lifted, &net, k, &u));
                clip_to_box(&net, &mut moved);
                let next = energy_at(&lifted, &net, k, &moved);
                // Sufficient decrease of forward-backward, (1 / gamma - L / 2) ||u+ - u||^2.
                let decrease = (1.0 / gamma - 0.5 * constant) * squared_distance(&moved, &u);
                assert!(
                    decrease > 0.0 && next <= energy - decrease + 1e-12 * energy,
                    "{architecture:?} u_{k}"
                );
                lifted.u[k].load(&moved).unwrap();
                energy = next;
            }
        }
    }
}

// --- Layers and networks as maps --------------------------------------------------------------------------------------

/// The layer `u -> clip(u - tau L (L* u - z))`.
fn layer(net: &Network<f64>, k: usize, u: &[f64], z: &Field<f64>) -> Vec<f64> {
    let mut field = Field::zeros(SAMPLES, net.architecture().features, z.grid());
    field.load(u).unwrap();
    let (mut v, mut r) = (field.clone(), z.clone());
    Reference.layer(net.layer(k), &field, z, &mut r, &mut v);
    Reference.activate(net.layer(k), &v, &mut field);
    field.to_planar()
}

/// The largest `||T(a) - T(b)|| / ||a - b||` found by power iteration with `T` the layer.
fn expansion(net: &Network<f64>, k: usize) -> f64 {
    let z = images(net, 1);
    let point = in_the_box(net, 5);
    let at_point = layer(net, k, &point, &z);
    let mut direction = random_field::<f64>(point.len(), 7);
    let mut largest = 0.0f64;
    for _ in 0..30 {
        let change = plus(&layer(net, k, &plus(&point, 1.0, &direction), &z), -1.0, &at_point);
        largest = largest.max((norm_squared(&change) / norm_squared(&direction)).sqrt());
        let length = norm_squared(&change).sqrt().max(1e-300);
        direction = change.iter().map(|c| 1e-2 * c / length).collect();
    }
    largest
}

#[test]
fn layers_are_non_expansive_up_to_a_step_of_two() {
    for architecture in shapes() {
        for lambda in [0.2, 1e6] {
            let mut net = network(architecture, lambda);
            for k in 1..architecture.depth {
                assert!(
                    expansion(&net, k) <= 1.0 + 1e-9,
                    "{architecture:?} layer {k}: {}",
                    expansion(&net, k)
                );
                // Beyond 2 / ||L||^2 a layer may expand, here by |1 - 3| in the direction of the norm.
                net.tau[k - 1] *= 3.0 / STEP;
                if lambda > 1.0 {
                    assert!(expansion(&net, k) > 1.5, "{architecture:?} layer {k}: {}", expansion(&net, k));
                }
                net.tau[k - 1] *= STEP / 3.0;
            }
        }
    }
}

#[test]
fn the_network_changes_no_more_than_the_norms_of_its_layers_allow() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        // ||du_k|| <= ||du_{k-1}|| + tau_k ||L_k|| ||dz||, from ||du_0|| <= ||L_0|| ||dz||.
        let norms: Vec<f64> = net.theta.iter().map(|theta| norm(theta, SIDES)).collect();
        let steps: f64 = net.tau.iter().zip(&norms[1..]).map(|(tau, norm)| tau * norm).sum();
        let bound = 1.0 + norms[architecture.depth] * (norms[0] + steps);
        let denoise = |z: &[f64]| {
            let mut field = images(&net, 1);
            field.load(z).unwrap();
            let mut output = field.clone();
            Reference.denoise(&net, &field, &mut output);
            output.to_planar()
        };
        let z = images(&net, 1).to_planar();
        let at_z = denoise(&z);
        for trial in 0..20 {
            for size in [1.0, 1e-4] {
                let direction = random_field::<f64>(z.len(), trial);
                let change = plus(&denoise(&plus(&z, size, &direction)), -1.0, &at_z);
                let ratio = (norm_squared(&change) / norm_squared(&direction)).sqrt() / size;
                assert!(ratio <= bound, "{architecture:?}: {ratio} > {bound}");
            }
        }
    }
}

#[test]
fn the_steps_of_a_new_network_are_safe_on_images_of_every_size() {
    for kernel in [3, 5, 7] {
        for seed in 0..3 {
            let architecture = Architecture { depth: 3, features: 4, kernel, channels: 1 };
            let net = Network::<f64>::glorot(architecture, 0.1, seed).unwrap();
            for k in 1..architecture.depth {
                let bound = convolution_norm_bound(&net.theta[k], 256).unwrap().upper;
                let product = net.tau[k - 1] * bound * bound;
                assert!((STEP..2.0).contains(&product), "kernel {kernel}, seed {seed}: {product}");
            }
        }
    }
}

// --- The unrolled network and the problem it is unrolled from ---------------------------------------------------------

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
    for unrolling in [DualForwardBackward, Inertial, ChambollePock, StronglyConvex] {
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
    for unrolling in [Unrolling::DualForwardBackward, Unrolling::StronglyConvex] {
        let mut net = Network { unrolling, bounded: true, ..free.clone() };
        net.activation.fill(Activation::clip(vec![0.2; 2]));
        assert!(unrolled(&Reference, &net, &z).iter().all(|x| (0.0..=1.0).contains(x)));
    }
}

// --- The general feed-forward energy ----------------------------------------------------------------------------------

/// The weights and biases of every affine map.
type Parameters = Vec<(Vec<f64>, Vec<f64>)>;

/// One feed-forward network, made again from changed parameters for every finite difference.
struct Recipe {
    /// `(outputs, inputs, None)` of a dense map, `(features, channels, Some(kernel))` of a convolution on 4 x 5 pixels.
    maps: Vec<(usize, usize, Option<usize>)>,
    activations: fn() -> Vec<Box<dyn Prox<f64>>>,
}

const PIXELS: (usize, usize) = (4, 5);

impl Recipe {
    fn dense() -> Self {
        let maps = [(6, 7), (8, 6), (5, 8), (4, 5), (6, 4), (3, 6)].map(|(o, i)| (o, i, None)).to_vec();
        let activations = || -> Vec<Box<dyn Prox<f64>>> {
            vec![
                Box::new(Relu),
                Box::new(SoftThreshold::new(vec![0.3]).unwrap()),
                Box::new(BoxClip::symmetric(vec![0.5]).unwrap()),
                Box::new(Identity),
                Box::new(L2Ball::new(6, 2, vec![0.4]).unwrap()),
            ]
        };
        Self { maps, activations }
    }

    fn convolutional() -> Self {
        let maps = vec![
            (4, 2, Some(3)),
            (3, 4, Some(5)),
            (4, 3, Some(3)),
            (2, 4, Some(1)),
            (5, 40, None),
            (3, 5, None),
        ];
        let activations = || -> Vec<Box<dyn Prox<f64>>> {
            vec![
                Box::new(L2Ball::new(4, 2, vec![0.5, 0.9]).unwrap()),
                Box::new(SoftThreshold::new(vec![0.1, 0.2, 0.4]).unwrap()),
                Box::new(BoxClip::interval(vec![-0.2], vec![0.6]).unwrap()),
                Box::new(Relu),
                Box::new(Identity),
            ]
        };
        Self { maps, activations }
    }

    fn parameters(&self) -> Parameters {
        let random = |len: usize, inputs: usize, seed: usize| {
            let scale = 1.0 / (inputs as f64).sqrt();
            random_field::<f64>(len, seed as u64).iter().map(|w| scale * w).collect::<Vec<_>>()
        };
        let maps = self.maps.iter().enumerate().map(|(k, &(outputs, inputs, kernel))| {
            let taps = inputs * kernel.unwrap_or(1).pow(2);
            (random(outputs * taps, taps, 2 * k), random(outputs, 100, 2 * k + 1))
        });
        maps.collect()
    }

    fn build(&self, parameters: &Parameters) -> FeedForward<f64> {
        let layers = self.maps.iter().zip(parameters).map(
            |(&(outputs, inputs, kernel), (weights, bias))| -> Box<dyn Affine<f64>> {
                match kernel {
                    None => Box::new(Dense::new(inputs, weights.clone(), bias.clone()).unwrap()),
                    Some(size) => {
                        let filters = Filters::new(outputs, inputs, size, weights.clone()).unwrap();
                        Box::new(Convolutional::new(filters, bias.clone(), PIXELS.0, PIXELS.1).unwrap())
                    }
                }
            },
        );
        FeedForward::new(layers.collect(), (self.activations)()).unwrap()
    }

    fn input_len(&self) -> usize {
        let (_, inputs, kernel) = self.maps[0];
        if kernel.is_some() { inputs * PIXELS.0 * PIXELS.1 } else { inputs }
    }

    /// `(z, x)`.
    fn sample(&self) -> (Vec<f64>, Vec<f64>) {
        (random_field(self.input_len(), 70), random_field(3, 71))
    }

    /// Random points well inside the domains: `0.8 prox(...)`, and away from zero for relu.
    fn inside(&self, v: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let activations = (self.activations)();
        let points = activations.iter().zip(v).enumerate().map(|(k, (activation, v))| {
            let mut u = random_field::<f64>(v.len(), 80 + k as u64);
            activation.prox_in_place(1.0, &mut u);
            let inside: Vec<f64> = u.iter().map(|u| 0.8 * u + 0.01).collect();
            assert!(activation.value(&inside).is_finite());
            inside
        });
        points.collect()
    }
}

fn with_parameters(parameters: &Parameters, k: usize, bias: bool, values: &[f64]) -> Parameters {
    let mut moved = parameters.clone();
    let part = if bias { &mut moved[k].1 } else { &mut moved[k].0 };
    part.copy_from_slice(values);
    moved
}

#[test]
fn the_feed_forward_energy_has_the_gradients_of_finite_differences() {
    for recipe in [Recipe::dense(), Recipe::convolutional()] {
        let parameters = recipe.parameters();
        let (z, x) = recipe.sample();
        let net = recipe.build(&parameters);
        let u = recipe.inside(&net.forward(&z).0);
        let activations = (recipe.activations)();
        // f = E - sum_k psi_k(u_k).
        let f = |net: &FeedForward<f64>, u: &[Vec<f64>]| {
            let psi: f64 = activations.iter().zip(u).map(|(psi, u)| psi.value(u)).sum();
            net.lifted(MU, &z, &x, u).energy() - psi
        };
        let point = net.lifted(MU, &z, &x, &u);
        assert!(point.penalties.iter().all(|penalty| *penalty > 1e-3));
        for (k, (gradient, (weights, bias))) in point.theta.iter().zip(&parameters).enumerate() {
            for (gradient, values, is_bias) in
                [(&gradient.weights, weights, false), (&gradient.bias, bias, true)]
            {
                let along =
                    |values: &[f64]| f(&recipe.build(&with_parameters(&parameters, k, is_bias, values)), &u);
                let mismatch = gradient_mismatch(along, gradient, values, k as u64);
                assert!(mismatch < 1e-7, "map {k}, bias: {is_bias}: {mismatch:e}");
            }
        }
        for k in 0..u.len() {
            let along = |values: &[f64]| {
                let mut moved = u.clone();
                moved[k].copy_from_slice(values);
                f(&net, &moved)
            };
            let mismatch = gradient_mismatch(along, &point.u[k], &u[k], k as u64);
            assert!(mismatch < 1e-7, "u_{k}: {mismatch:e}");
        }
    }
}

#[test]
fn feed_forward_back_propagation_is_the_gradient_of_the_plain_loss() {
    for recipe in [Recipe::dense(), Recipe::convolutional()] {
        let parameters = recipe.parameters();
        let (z, x) = recipe.sample();
        let (loss, gradients) = recipe.build(&parameters).backprop(&z, &x);
        let plain = |net: &FeedForward<f64>| 0.5 * squared_distance(net.forward(&z).0.last().unwrap(), &x);
        assert!((loss - plain(&recipe.build(&parameters))).abs() < 1e-14 * loss);
        for (k, (gradient, (weights, bias))) in gradients.iter().zip(&parameters).enumerate() {
            for (gradient, values, is_bias) in
                [(&gradient.weights, weights, false), (&gradient.bias, bias, true)]
            {
                assert!(gradient.iter().any(|g| *g != 0.0), "map {k} gets no gradient");
                let along =
                    |values: &[f64]| plain(&recipe.build(&with_parameters(&parameters, k, is_bias, values)));
                let mismatch = gradient_mismatch(along, gradient, values, k as u64);
                assert!(mismatch < 1e-7, "map {k}, bias: {is_bias}: {mismatch:e}");
            }
        }
    }
}

#[test]
fn at_the_feed_forward_pass_the_energy_is_the_loss() {
    for recipe in [Recipe::dense(), Recipe::convolutional()] {
        let (z, x) = recipe.sample();
        let net = recipe.build(&recipe.parameters());
        let (_, u) = net.forward(&z);
        let point = net.lifted(MU, &z, &x, &u);
        assert!(point.penalties.iter().all(|penalty| penalty.abs() < 1e-15), "{:?}", point.penalties);
        let loss = MU * net.backprop(&z, &x).0;
        assert!((point.energy() - loss).abs() < 1e-14 * loss);
    }
}
