//! One forward-backward step of a block of the lifted energy, as long as its majorant allows (eq:maj-theta), (eq:maj-u).

use super::{Lifted, Network};
use crate::Real;
use crate::real::{dot, norm_squared};
use crate::training::backtracking::{Backtracking, Trial};

/// `theta_k <- theta_k - beta df/dtheta_k`; how many steps were refused.
pub(super) fn theta_step<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    k: usize,
    mu: f64,
    beta: &mut Backtracking,
) -> usize {
    let gradient = lifted.theta_gradient(network, k, T::of(mu));
    let before: Vec<Vec<T>> = network.layers()[k].parameters().iter().map(|block| block.to_vec()).collect();
    let square: f64 = gradient.iter().map(|block| norm_squared(block)).sum();
    let f = lifted.block(network, k, mu).iter().sum();
    let attempt = |steps: &[f64]| {
        let step = T::of(steps[0]);
        let blocks = network.layers_mut()[k].parameters_mut().into_iter().zip(&before).zip(&gradient);
        for ((block, before), gradient) in blocks {
            block.iter_mut().zip(before).zip(gradient).for_each(|((w, &b), &g)| *w = b - step * g);
        }
        lifted.follow(network, k);
        // <w+ - w, g> + 1/(2 beta) ||w+ - w||^2
        vec![Trial { value: lifted.block(network, k, mu).iter().sum(), model: -0.5 * steps[0] * square }]
    };
    beta.search(&[f], attempt).refused
}

/// `u_k <- prox_{gamma psi_k}(u_k - gamma df/du_k)`, each sample with a step of its own; how many were refused.
pub(super) fn u_step<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &Network<T>,
    k: usize,
    mu: f64,
    gamma: &mut Backtracking,
) -> usize {
    let gradient = lifted.u_gradient(network, k, T::of(mu));
    let before = lifted.pass.u[k].clone();
    let (penalty, weight, width) = (lifted.penalty, T::of(lifted.weight(k)), before.width());
    let f = smooth(lifted, network, k, mu);
    let attempt = |steps: &[f64]| {
        let u = &mut lifted.pass.u[k];
        for (i, row) in u.data_mut().chunks_exact_mut(width).enumerate() {
            let (step, parts) = (T::of(steps[i]), before.row(i).iter().zip(gradient.row(i)));
            row.iter_mut().zip(parts).for_each(|(u, (&b, &g))| *u = b - step * g);
            penalty.backward(network, k, weight * step, row);
        }
        lifted.follow(network, k + 1);
        let values = smooth(lifted, network, k, mu);
        let trials = values.into_iter().zip(steps).enumerate().map(|(i, (value, &step))| {
            let moved: Vec<T> =
                lifted.pass.u[k].row(i).iter().zip(before.row(i)).map(|(&a, &b)| a - b).collect();
            let square = if step > 0.0 { norm_squared(&moved) / (2.0 * step) } else { 0.0 };
            Trial { value, model: dot(&moved, gradient.row(i)) + square }
        });
        trials.collect()
    };
    gamma.search(&f, attempt).refused
}

/// The part of `f` that `u_k` enters, of each sample, but for what does not depend on it: `1/2 ||u_k - v_k||^2`, or
/// `1/2 ||u_k - s(v_k)||^2` for the quadratic penalty, with its weight, and the block after it.
fn smooth<T: Real>(lifted: &Lifted<'_, T>, network: &Network<T>, k: usize, mu: f64) -> Vec<f64> {
    let after = lifted.block(network, k + 1, mu);
    let away = lifted.penalty.by_u(network, k, &lifted.pass.u[k], &lifted.pass.v[k]);
    let half = 0.5 * lifted.weight(k);
    after.into_iter().zip(away.rows()).map(|(after, away)| after + half * norm_squared(away)).collect()
}
