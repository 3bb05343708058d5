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
