//! The proposition on `E`, as far as it holds for the unrolled network: where its minimum over `u` lies, and where `E` is
//! convex.

use super::energy::family;
use super::*;

/// The paper's network with a batch whose `u` minimises `E`, by sweeps of forward-backward steps from the forward pass.
fn minimised(architecture: Architecture, x: Option<Field<f64>>) -> (Network<f64>, Lifted<f64>, f64, f64) {
    let net = network(architecture, 0.2);
    let x = x.unwrap_or_else(|| images(&net, 2));
    let mut lifted = Lifted::new(&net, images(&net, 1), x).unwrap();
    lifted.anchor((&Reference, &net));
    let start = lifted.energy((&Reference, &net), MU).total();
    let last = 1.0 / (1.0 + MU * norm(net.last(), SIDES).powi(2));
    for _ in 0..600 {
        for k in (1..architecture.depth).rev() {
            let gamma = if k + 1 == architecture.depth { last } else { 0.5 };
            lifted.u_step((&Reference, &net), k, MU, gamma);
            lifted.refresh((&Reference, &net));
        }
    }
    let energy = lifted.energy((&Reference, &net), MU).total();
    (net, lifted, start, energy)
}

/// Item (i) says that `E` and the loss have the same minimisers. That needs a loss that can be zero; where it is not,
/// moving `u` off the forward pass costs a penalty of second order and gains loss of first order.
#[test]
fn the_minimum_over_u_lies_below_the_loss_and_above_zero() {
    for architecture in shapes() {
        let (net, mut lifted, loss, energy) = minimised(architecture, None);
        println!("{architecture:?}: mu times the loss is {loss:.4}, the minimum of E {energy:.4}");
        assert!(energy < 0.99 * loss && energy > 0.05 * loss, "{architecture:?}: {energy} from {loss}");
        // It is a minimum: no block moves any more.
        let mut gradients = lifted.u.clone();
        lifted.u_gradients((&Reference, &net), MU, &mut gradients);
        for (k, gradient) in gradients.iter().enumerate().skip(1) {
            let u = lifted.u[k].to_planar();
            let mut moved = plus(&u, -0.5, &gradient.to_planar());
            clip_to_box(&net, &mut moved);
            let rest = squared_distance(&moved, &u).sqrt();
            assert!(rest < 1e-6, "{architecture:?} u_{k} still moves by {rest:e}");
        }
        // And E is what it is made of: nothing was gained without leaving the forward pass.
        let terms = lifted.energy((&Reference, &net), MU);
        assert!(terms.penalties.iter().flatten().sum::<f64>() > 1e-3 * loss);
        assert!(terms.data.iter().sum::<f64>() < loss);
    }
}

#[test]
fn where_the_loss_is_zero_the_minimum_is_zero_and_the_forward_pass_attains_it() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let mut output = images(&net, 1);
        Reference.denoise(&net, &output.clone(), &mut output);
        let (_, lifted, loss, energy) = minimised(architecture, Some(output.clone()));
        assert!(loss < 1e-25 && energy < 1e-25, "{architecture:?}: {loss:e}, {energy:e}");
        // Anywhere else E is above zero.
        for seed in 0..5 {
            let mut elsewhere = lifted_at_random(&net, 50 * seed);
            elsewhere.x = output.clone();
            elsewhere.z = lifted.z.clone();
            elsewhere.refresh((&Reference, &net));
            assert!(elsewhere.energy((&Reference, &net), MU).total() > 0.1);
        }
    }
}

/// Item (iii), for every unrolling and learned activations: `v_j` is affine in each `u_k` unless images are bounded.
#[test]
fn with_momentum_and_learned_activations_the_energy_is_strongly_convex_in_each_u() {
    for net in shapes().into_iter().flat_map(family).filter(|net| !net.bounded) {
        let start = Lifted::new(&net, images(&net, 3), images(&net, 4)).unwrap();
        let values = |k: usize, seed: u64| {
            // What the activation makes of random numbers, so that q is finite.
            let mut w = start.u[k].clone();
            w.load(&random_field(w.to_planar().len(), seed)).unwrap();
            let mut u = w.clone();
            Reference.activate(net.layer(k), &w, &mut u);
            u.to_planar()
        };
        let mut lifted = start.clone();
        for k in 1..lifted.u.len() {
            lifted.u[k].load(&values(k, 30 + k as u64)).unwrap();
        }
        for (k, trial) in (1..lifted.u.len()).flat_map(|k| (0..5).map(move |trial| (k, trial))) {
            let (a, b) = (values(k, 100 + trial), values(k, 200 + trial));
            let middle: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 0.5 * (a + b)).collect();
            let [at_a, at_b, at_middle] = [&a, &b, &middle].map(|u| energy_at(&lifted, &net, k, u));
            // q is 1-strongly convex, as no slope is above 1.
            let bound = 0.5 * (at_a + at_b) - squared_distance(&a, &b) / 8.0;
            assert!(at_middle <= bound + 1e-12 * at_a, "{} u_{k}: {at_middle} > {bound}", net.unrolling);
        }
    }
}

/// Item (ii) claims convexity in `theta`. It does not hold here, as `v_k` is quadratic in `theta_k`: on a black image
/// `theta_k` and `-theta_k` are the same layer, and what lies between them is not.
#[test]
fn the_energy_is_not_convex_in_theta() {
    for architecture in shapes().into_iter().filter(|architecture| architecture.depth > 2) {
        let net = network(architecture, 0.2);
        let mut lifted = lifted_at_random(&net, 3);
        lifted.z.data_mut().fill(0.0);
        lifted.refresh((&Reference, &net));
        let v = lifted.v[2].clone();
        Reference.activate(net.layer(2), &v, &mut lifted.u[2]);
        let at = |factor: f64| {
            let weights: Vec<f64> = net.theta[2].weights().iter().map(|w| factor * w).collect();
            let (moved, mut lifted) = (with_theta(&net, 2, &weights), lifted.clone());
            lifted.refresh((&Reference, &moved));
            lifted.energy((&Reference, &moved), MU).total()
        };
        let [left, middle, right] = [-1.0, 0.0, 1.0].map(at);
        assert!((left - right).abs() < 1e-12 * right && middle > right + 1e-3, "{left}, {middle}, {right}");
    }
}
