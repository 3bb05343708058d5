//! Layers and networks as maps.

use super::*;

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

/// `||du_k|| <= ||du_{k-1}|| + tau_k ||L_k|| ||dz||`, from `||du_0|| <= ||L_0|| ||dz||`.
fn most_change(net: &Network<f64>) -> f64 {
    let norms: Vec<f64> = net.theta.iter().map(|theta| norm(theta, SIDES)).collect();
    let steps: f64 = net.tau.iter().zip(&norms[1..]).map(|(tau, norm)| tau * norm).sum();
    1.0 + norms[norms.len() - 1] * (norms[0] + steps)
}

/// The largest change of the output to that of the image, at an image and in the worst direction.
fn change(net: &Network<f64>) -> f64 {
    let architecture = net.architecture();
    let grid = architecture.grid(SIDES.0, SIDES.1).unwrap();
    let z = Field::from_planar(1, architecture.channels, grid, &images(net, 1).sample_to_planar(0)).unwrap();
    let jacobian = Jacobian::at(&Reference, net, &z).unwrap();
    let params = NormParams { tolerance: 1e-9, max_iterations: 20_000, min_iterations: 1 };
    let found = spectral_norm(&jacobian, &mut PowerState::new(&jacobian, 3), &params).norm;

    // What the Jacobian says is what happens: along its leading vector, and along no other direction more.
    let denoise = |z: &[f64]| {
        let mut output = Field::from_planar(1, architecture.channels, grid, z).unwrap();
        Reference.denoise(net, &output.clone(), &mut output);
        output.to_planar()
    };
    let (z, mut state) = (z.to_planar(), PowerState::new(&jacobian, 3));
    spectral_norm(&jacobian, &mut state, &params);
    let ratio = |direction: &[f64]| {
        let moved = plus(&denoise(&plus(&z, 1e-6, direction)), -1.0, &denoise(&z));
        1e6 * (norm_squared(&moved) / norm_squared(direction)).sqrt()
    };
    let along = ratio(state.vector());
    assert!(
        (along - found).abs() < 1e-4 * found,
        "{along} along the leading vector, {found} by the Jacobian"
    );
    (0..5).for_each(|seed| assert!(ratio(&random_field::<f64>(z.len(), seed)) <= found * (1.0 + 1e-6)));
    found
}

#[test]
fn the_network_changes_no_more_than_the_norms_of_its_layers_allow() {
    for architecture in shapes() {
        for lambda in [0.2, 1e6] {
            let net = network(architecture, lambda);
            let (change, most) = (change(&net), most_change(&net));
            println!("{architecture:?}, lambda {lambda}: {change:.3} of {most:.3}");
            assert!(change <= most, "{architecture:?}: {change} > {most}");
        }
    }
    // One tap and one feature, from u_0 = 0: u_1 = tau l_1 z and x^ = (1 + tau l_1 |l_2|) z, all that is allowed.
    let theta = [0.0, 1.5, -2.0].map(|l| Filters::new(1, 1, 1, vec![l]).unwrap());
    let net = Network::new(theta.to_vec(), vec![STEP / 1.5f64.powi(2)], vec![1e6]).unwrap();
    assert!((most_change(&net) - 3.4).abs() < 1e-9 && (change(&net) - 3.4).abs() < 1e-6, "{}", change(&net));
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
