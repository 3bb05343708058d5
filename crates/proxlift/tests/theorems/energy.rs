//! The energy.

use super::*;

#[test]
fn at_the_forward_pass_the_penalties_vanish_and_the_energy_is_the_loss() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let mut lifted = Lifted::new(&net, z.clone(), x.clone()).unwrap();
        lifted.anchor((&Reference, &net));
        let energy = lifted.energy((&Reference, &net), MU);
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

/// The gradients of `E` by the filters are those of finite differences; `f = E` while `u` is in the box, and `tau` is a
/// constant.
fn check_theta(net: &Network<f64>, start: &Lifted<f64>, gradients: &Gradients<f64>, tolerance: f64) {
    for (k, gradient) in gradients.theta.iter().enumerate() {
        let f = |weights: &[f64]| {
            let moved = with_theta(net, k, weights);
            let mut lifted = start.clone();
            lifted.refresh((&Reference, &moved));
            lifted.energy((&Reference, &moved), MU).total()
        };
        let mismatch = gradient_mismatch(f, gradient.weights(), net.theta[k].weights(), k as u64);
        assert!(mismatch < tolerance, "{:?} theta_{k}: {mismatch:e}", net.architecture());
    }
}

#[test]
fn the_gradients_of_every_block_are_those_of_finite_differences() {
    for architecture in shapes() {
        let net = Network { border: 1, ..network(architecture, 0.2) };
        let mut lifted = lifted_at_random(&net, 3);
        let start = lifted.clone();
        let mut gradients = Gradients::zeros(&net, SAMPLES);
        lifted.theta_gradients((&Reference, &net), MU, &mut gradients.theta);
        check_theta(&net, &start, &gradients, 1e-7);
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
pub fn learned(architecture: Architecture) -> Network<f64> {
    let net = network(architecture, 0.2);
    let features = architecture.features;
    let activation = (1..architecture.depth).map(|k| {
        let random = random_field::<f64>(7 * features, 200 + k as u64);
        let (knots, slopes) = random.split_at(3 * features);
        let knots = knots.iter().enumerate().map(|(i, r)| 0.1 * (i % 3 + 1) as f64 + 0.02 * r.tanh());
        let slopes = slopes.iter().map(|r| 0.5 + 0.4 * r.tanh());
        PiecewiseLinear::new(3, knots.collect(), slopes.collect()).unwrap().into()
    });
    let activation = activation.collect();
    Network::with_activations(net.theta, net.tau, activation).unwrap()
}

/// The network with a part of an activation replaced: 0 for its knots, 1 for its slopes.
fn with_activation(net: &Network<f64>, k: usize, part: usize, values: &[f64]) -> Network<f64> {
    let mut net = net.clone();
    net.activation[k].piecewise_mut().unwrap().parts_mut()[part].copy_from_slice(values);
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
        lifted.refresh((&Reference, &net));
        let start = lifted.clone();
        let mut gradients = Gradients::zeros(&net, SAMPLES);
        lifted.theta_gradients((&Reference, &net), MU, &mut gradients.theta);
        check_theta(&net, &start, &gradients, 1e-6);
        let mut by_u = start.u.clone();
        lifted.u_gradients((&Reference, &net), MU, &mut by_u);
        for (k, by_u) in by_u.iter().enumerate().skip(1) {
            // df/du is that of E but for psi: q(u) - 1/2 u^2, whose gradient is w - u at u = s(w).
            let u = start.u[k].to_planar();
            let at = |u: &[f64]| {
                let mut lifted = start.clone();
                lifted.u[k].load(u).unwrap();
                lifted.refresh((&Reference, &net));
                lifted.energy((&Reference, &net), MU).total()
            };
            let pixels = start.z.grid().pixels();
            let inverse = |(i, &u): (usize, &f64)| {
                net.activation[k - 1]
                    .piecewise()
                    .unwrap()
                    .inverse(i / pixels % net.architecture().features, u)
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
                    start.energy((&Reference, &moved), MU).total()
                };
                let at = net.activation[k - 1].clone().piecewise_mut().unwrap().parts_mut()[part].to_vec();
                let mismatch = gradient_mismatch(f, gradient, &at, k as u64);
                assert!(mismatch < 1e-5, "{architecture:?} activation {k}, part {part}: {mismatch:e}");
            }
        }
    }
}

/// Learned activations, unrolled from every algorithm, free, and bounded with a border.
pub fn family(architecture: Architecture) -> Vec<Network<f64>> {
    use Unrolling::*;
    let all =
        [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated, AveragedDualForwardBackward]
            .into_iter();
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
        let gradients = pass(ReverseRule::Backprop);
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
        let small = pass(ReverseRule::Lifted { mu });
        for (k, (gradient, small)) in gradients.activation.iter().zip(&small.activation).enumerate() {
            let parts = [(&gradient.knots, &small.knots), (&gradient.slopes, &small.slopes)];
            for (part, (gradient, small)) in parts.into_iter().enumerate() {
                let f = |values: &[f64]| loss(&with_activation(&net, k, part, values));
                let at = net.activation[k].clone().piecewise_mut().unwrap().parts_mut()[part].to_vec();
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
        Reference.training_pass(&net, ReverseRule::Backprop, &z, &x, &mut gradients).unwrap();
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

#[test]
fn with_errors_by_their_norm_back_propagation_is_the_gradient_of_that_loss() {
    for architecture in shapes() {
        let mut net = network(architecture, 0.2);
        net.border = net.architecture().stride();
        let (z, x) = (images(&net, 1), images(&net, 2));
        let mut gradients = Gradients { of: SampleLoss::Norm, ..Gradients::zeros(&net, SAMPLES) };
        Reference.training_pass(&net, ReverseRule::Backprop, &z, &x, &mut gradients).unwrap();
        let numbers = z.grid().pixels_inside(net.plane_border()) * z.channels();
        let loss = |net: &Network<f64>| -> f64 {
            let mut error = z.clone();
            Reference.denoise(net, &z, &mut error);
            error.data_mut().iter_mut().zip(x.data()).for_each(|(e, x)| *e -= x);
            error.clear_border(net.plane_border());
            (0..SAMPLES).map(|s| SampleLoss::Norm.of(0.5 * norm_squared(error.sample(s)), numbers)).sum()
        };
        for (k, gradient) in gradients.theta.iter().enumerate() {
            let f = |weights: &[f64]| loss(&with_theta(&net, k, weights));
            let mismatch = gradient_mismatch(f, gradient.weights(), net.theta[k].weights(), k as u64);
            assert!(mismatch < 1e-7, "{architecture:?} theta_{k}: {mismatch:e}");
        }
    }
}
