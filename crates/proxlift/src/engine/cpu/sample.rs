//! One sample through the training pass: forward, reverse sweep, weight gradients.

use super::kernels::correlate;
use super::pointwise::{Assign, Backward, Forward, Identity, InPlace, Learn};
use super::scratch::{Batch, Scratch};
use super::stencil::Stencil;
use crate::engine::Reverse;
use crate::network::Network;
use fearless_simd::Simd;

/// Forward, reverse sweep and weight gradients of one sample, those of the activations after those of the filters if
/// there is room for them; returns its loss `1/2 ||x^ - x||^2`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn train<S: Simd>(
    simd: S,
    stencil: &Stencil,
    network: &Network<f32>,
    Batch { packed, activation, .. }: &Batch,
    rule: Reverse<f32>,
    (z, x): (&[f32], &[f32]),
    scratch: &mut Scratch,
    gradients: &mut [f32],
) -> f64 {
    let depth = network.theta.len() - 1;
    let len = stencil.grid.len();
    let all = 0..len;
    let weight = rule.loss_weight();
    let Scratch { window, z: padded, a, r, u, v, d, sums, .. } = scratch;
    let taps = stencil.image_offsets.as_slice();
    let per_layer = network.theta[0].weights().len();
    gradients.fill(0.0);
    let (gradients, activation_gradients) = gradients.split_at_mut((depth + 1) * per_layer);
    let learns = !activation_gradients.is_empty();

    // Forward: u_0 = L_0 z, then v_k, u_k with their residuals r_k.
    stencil.pad(z, padded);
    stencil.convolve(simd, &packed[0], padded, all.clone(), &mut Assign(&mut u[0]));
    for k in 1..depth {
        let (before, after) = u.split_at_mut(k);
        let epilogue =
            &mut Forward { u: &before[k - 1], v: &mut v[k], next: &mut after[0], activation: &activation[k] };
        stencil.layer(simd, &packed[k], Some(z), all.clone(), window, &mut r[k], epilogue);
    }

    // The output and its error e = x^ - x.
    let e = a;
    stencil.residual(simd, &packed[depth], (&u[depth - 1], Some(z)), all.clone(), window, e);
    let margin = stencil.grid.margin();
    let mut loss = 0.0;
    for (e, x) in e.chunks_exact_mut(stencil.padded()).zip(x.chunks_exact(len)) {
        for (e, x) in e[margin..margin + len].iter_mut().zip(x) {
            *e = -*e - x;
            loss += f64::from(*e) * f64::from(*e);
        }
    }

    // Reverse: theta_K, then d_k, theta_k and what goes back to layer k - 1.
    let gradient = |k: usize| k * per_layer..(k + 1) * per_layer;
    correlate(simd, -weight, &u[depth - 1], (e, taps), len, &mut gradients[gradient(depth)]);
    let mut learn = learns.then(|| Learn { sums: sums.as_mut_slice(), mask: &stencil.mask });
    let last = &activation[depth - 1];
    let first =
        &mut Backward::<true> { d: &mut *d, v: &v[depth - 1], activation: last, rule, learn: learn.as_mut() };
    stencil.convolve(simd, &packed[depth], e, all.clone(), first);
    let a = e;
    for k in (1..depth).rev() {
        let tau = network.tau[k - 1];
        if let Some(learn) = &mut learn {
            let numbers = network.theta[0].features() * activation[k].stride();
            learn.total(&activation[k], &mut activation_gradients[(k - 1) * numbers..k * numbers]);
        }
        correlate(simd, -tau, d, (&r[k], taps), len, &mut gradients[gradient(k)]);
        if k > 1 {
            let before = &activation[k - 1];
            let learn = learn.as_mut();
            let epilogue =
                &mut Backward::<false> { d: &mut *d, v: &v[k - 1], activation: before, rule, learn };
            stencil.layer(simd, &packed[k], None, all.clone(), window, a, epilogue);
        } else {
            let epilogue = &mut InPlace { u: &mut *d, activation: Identity };
            stencil.layer(simd, &packed[k], None, all.clone(), window, a, epilogue);
        }
        correlate(simd, -tau, &u[k - 1], (a, taps), len, &mut gradients[gradient(k)]);
    }
    correlate(simd, 1.0, d, (padded, taps), len, &mut gradients[gradient(0)]);
    0.5 * loss
}
