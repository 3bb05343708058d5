//! Convexity and Lipschitz constants of the u-blocks.

use super::*;

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
            lifted.refresh((&Reference, &net));
            let energy = lifted.energy((&Reference, &net), MU);
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
            let mut energy = lifted.energy((&Reference, &net), MU).total();
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
