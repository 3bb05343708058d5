//! One sample through the training pass: forward, reverse sweep, weight gradients.

use super::activation::{Activation, Identity, Learn, PackedActivation};
use super::correlate::correlate;
use super::epilogue::{Assign, Backward, Forward, InPlace};
use super::inertia::{Carry, Keep, Maybe};
use super::primal::Between;
use super::scratch::{Batch, Scratch};
use super::stencil::Stencil;
use crate::engine::ReverseRule;
use crate::field::Aligned;
use crate::network::{Memory, Network};
use fearless_simd::Simd;

/// Forward, reverse sweep and weight gradients of one sample, those of the activations after those of the filters if
/// there is room for them; returns its loss `1/2 ||x^ - x||^2`. `GENERAL` unless it is the paper's network, which has
/// neither learned activations nor inertia.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn train<'a, S: Simd, A: Activation, const GENERAL: bool>(
    simd: S,
    apply: impl Fn(&'a PackedActivation) -> A,
    stencil: &Stencil,
    network: &Network<f32>,
    Batch { packed, activation, .. }: &'a Batch,
    rule: ReverseRule<f32>,
    (z, x): (&[f32], &[f32]),
    scratch: &mut Scratch,
    gradients: &mut [f32],
) -> f64 {
    let depth = network.theta.len() - 1;
    let len = stencil.grid.len();
    let all = 0..len;
    let weight = rule.loss_weight();
    scratch.remember(stencil, network);
    let Scratch { window, z: padded, a, r, u, v, d, sums, y, q, carried, .. } = scratch;
    let Memory { features: inertial, images: remembers } = network.unrolling.memory();
    let images = remembers || network.bounded;
    let taps = stencil.image_offsets.as_slice();
    let per_layer = network.theta[0].weights().len();
    gradients.fill(0.0);
    let (gradients, activation_gradients) = gradients.split_at_mut((depth + 1) * per_layer);
    let learns = !activation_gradients.is_empty();

    // Forward: u_0 = L_0 z, then v_k, u_k with what their convolution saw.
    stencil.pad(z, padded);
    stencil.convolve(simd, &packed[0], padded, all.clone(), &mut Assign(&mut u[0]));
    if inertial {
        y[0].copy_from_slice(&u[0]);
    }
    for k in 1..depth {
        let (before, after) = u.split_at_mut(k);
        let (u_before, next) = (&before[k - 1], &mut after[0]);
        let (mut source, mut target, mut inertia): (&[f32], &mut [f32], _) = (u_before, next, None);
        if inertial {
            let (before, after) = y.split_at_mut(k);
            let alpha = network.layer_memory(k + 1).inertia;
            inertia = Some(Keep { alpha, u: u_before, next: target });
            (source, target) = (&before[k - 1], &mut after[0]);
        }
        let between = &mut if images { remembered(network, k, q) } else { Between::Nothing };
        let epilogue = &mut Forward::<A, GENERAL> {
            u: source,
            v: &mut v[k],
            next: target,
            activation: apply(&activation[k]),
            inertia: Maybe(inertia),
        };
        stencil.layer(simd, &packed[k], Some(z), between, all.clone(), window, &mut r[k], epilogue);
    }
    // What the layers went on from; that of the output is u_{K-1} itself.
    let y: &[Aligned<f32>] = if inertial { y } else { u };

    // The output and its error e = x^ - x, which does not count in the border.
    let e = a;
    let between = &mut if images { remembered(network, depth, q) } else { Between::Nothing };
    stencil.residual(simd, &packed[depth], (&y[depth - 1], Some(z)), between, all.clone(), window, e);
    let margin = stencil.grid.margin();
    let mut loss = 0.0;
    for (e, x) in e.chunks_exact_mut(stencil.padded()).zip(x.chunks_exact(len)) {
        let e = &mut e[margin..margin + len];
        e.iter_mut().zip(x).for_each(|(e, x)| *e = -*e - x);
        stencil.grid.clear_border(network.border, e);
        loss += e.iter().map(|&e| f64::from(e) * f64::from(e)).sum::<f64>();
    }

    // Reverse: theta_K, then d_k, theta_k and what goes back to layer k - 1.
    let gradient = |k: usize| k * per_layer..(k + 1) * per_layer;
    carried.0.fill(0.0);
    carried.1.fill(0.0);
    let (carried_features, carried_images) = (&mut carried.0, &mut carried.1);
    if images {
        let primal = network.primal(depth);
        Between::Reverse { primal, q: &q[depth], carried: &mut *carried_images, tau: weight }
            .whole(stencil, e);
    }
    correlate(simd, -weight, &y[depth - 1], (e, taps), len, &mut gradients[gradient(depth)]);
    let mut learn = learns.then(|| Learn { sums: sums.as_mut_slice(), mask: &stencil.mask });
    let first = &mut Backward::<A, true, GENERAL> {
        d: &mut *d,
        v: &v[depth - 1],
        activation: apply(&activation[depth - 1]),
        rule,
        learn: learn.as_mut().map(|learn| (learn, &activation[depth - 1])),
        inertia: Maybe(None),
    };
    stencil.convolve(simd, &packed[depth], e, all.clone(), first);
    let a = e;
    for k in (1..depth).rev() {
        let tau = network.tau[k - 1];
        if let Some(learn) = &mut learn {
            let numbers = network.theta[0].features() * activation[k].stride();
            learn.total(&activation[k], &mut activation_gradients[(k - 1) * numbers..k * numbers]);
        }
        correlate(simd, -tau, d, (&r[k], taps), len, &mut gradients[gradient(k)]);
        let between = &mut match images {
            true => {
                Between::Reverse { primal: network.primal(k), q: &q[k], carried: &mut *carried_images, tau }
            }
            false => Between::Nothing,
        };
        if k > 1 {
            let alpha = network.layer_memory(k).inertia;
            let epilogue = &mut Backward::<A, false, GENERAL> {
                d: &mut *d,
                v: &v[k - 1],
                activation: apply(&activation[k - 1]),
                rule,
                learn: learn.as_mut().map(|learn| (learn, &activation[k - 1])),
                inertia: Maybe(inertial.then_some(Carry { alpha, carried: &mut *carried_features })),
            };
            stencil.layer(simd, &packed[k], None, between, all.clone(), window, a, epilogue);
        } else {
            let epilogue =
                &mut InPlace::<_, false> { u: &mut *d, activation: Identity, inertia: Maybe(None) };
            stencil.layer(simd, &packed[k], None, between, all.clone(), window, a, epilogue);
        }
        correlate(simd, -tau, &y[k - 1], (a, taps), len, &mut gradients[gradient(k)]);
    }
    if inertial {
        for (d, carried) in d.chunks_exact_mut(len).zip(carried_features.chunks_exact(len)) {
            d.iter_mut().zip(carried).zip(&*stencil.mask).for_each(|((d, c), mask)| *d += mask * c);
        }
    }
    correlate(simd, 1.0, d, (padded, taps), len, &mut gradients[gradient(0)]);
    0.5 * loss
}

/// The image part of layer `k` forward: from `q_{k-1}` to `q_k`, both kept.
fn remembered<'a>(network: &Network<f32>, k: usize, q: &'a mut [Aligned<f32>]) -> Between<'a> {
    let (before, after) = q.split_at_mut(k);
    after[0].copy_from_slice(&before[k - 1]);
    Between::Forward { primal: network.primal(k), q: &mut after[0] }
}
