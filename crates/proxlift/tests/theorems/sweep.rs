//! The anchored reverse sweep.

use super::*;

#[test]
fn the_lifted_pass_is_one_reverse_sweep_of_unit_forward_backward_steps() {
    for architecture in shapes() {
        let net = network(architecture, 0.2);
        let (z, x) = (images(&net, 1), images(&net, 2));
        let depth = architecture.depth;
        let mut pass = Gradients::zeros(&net, SAMPLES);
        Reference.training_pass(&net, ReverseRule::Lifted { mu: MU }, &z, &x, &mut pass).unwrap();

        let mut lifted = Lifted::new(&net, z, x).unwrap();
        lifted.anchor((&Reference, &net));
        // theta_K, then u_{K-1}, theta_{K-1}, ..., u_1, theta_1 and theta_0, each with what is not yet updated at the
        // forward pass; `v` and `r` stay there too.
        let mut sweep = pass.theta.clone();
        let mut now = pass.theta.clone();
        lifted.theta_gradients((&Reference, &net), MU, &mut now);
        sweep[depth] = now[depth].clone();
        for k in (1..depth).rev() {
            let mut gradients = lifted.u.clone();
            lifted.u_gradients((&Reference, &net), MU, &mut gradients);
            let mut u = plus(&lifted.u[k].to_planar(), -1.0, &gradients[k].to_planar());
            clip_to_box(&net, &mut u);
            lifted.u[k].load(&u).unwrap();
            lifted.theta_gradients((&Reference, &net), MU, &mut now);
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
        let plain = gradients(ReverseRule::Backprop, 1.0);
        for centred in [false, true] {
            let error = |mu: f64| {
                let rule = if centred { ReverseRule::Centred { mu } } else { ReverseRule::Lifted { mu } };
                squared_distance(&gradients(rule, mu), &plain).sqrt() / norm_squared(&plain).sqrt()
            };
            // An entry of d differs only where v is within |back| = O(mu) of a kink: a share O(mu) of them. Centred secants
            // reach to the other side too, where one kink lies nearer than the share of so few entries would have it.
            for exponent in 1..=12 {
                let mu = 0.5f64.powi(exponent);
                assert!(centred || error(mu) < 10.0 * mu, "{architecture:?}: {:e} at mu = {mu}", error(mu));
            }
            assert!(error(1.0) > 0.01, "{architecture:?}: the two rules do not differ at mu = 1");
            // With no kink that near, they are the same up to rounding.
            let (mu, rounding) = if centred { (1e-6, 1e-8) } else { (1e-4, 1e-11) };
            assert!(error(mu) < rounding, "{architecture:?}: {:e}", error(mu));
        }
    }
}
