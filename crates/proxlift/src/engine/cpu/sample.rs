//! One sample through the training pass: forward, reverse sweep, weight gradients.

use super::activation::{Clip, PackedActivation};
use super::amx::halves::{self, Half};
use super::epilogue::{AddTo, Assign, ClipBackward, ClipForward};
use super::inertia::{Carry, Keep};
use super::learned::{Backward, Forward};
use super::stencil::{Features, Packed, Stencil};
use super::unit::Unit;
use super::{activation_sums::ActivationSums, image_step::ImageStep, scratch::Scratch};
use crate::engine::{ReverseRule, SampleLoss, pass::weigh};
use crate::field::Aligned;
use crate::network::{Memory, Network};
use fearless_simd::Level;

/// Forward, reverse sweep and weight gradients of one sample, those of the activations after those of the filters if
/// there is room for them; returns its loss `1/2 ||x^ - x||^2`.
#[allow(clippy::too_many_arguments)]
pub fn train(
    (unit, level): (Option<Unit>, Level),
    stencil: &Stencil,
    network: &Network<f32>,
    (packed, activation): (&[Packed], &[PackedActivation]),
    (rule, of): (ReverseRule<f32>, SampleLoss),
    (z, x): (&[f32], &[f32]),
    scratch: &mut Scratch,
    gradients: &mut [f32],
) -> f64 {
    let depth = network.theta.len() - 1;
    let len = stencil.grid.len();
    let all = 0..len;
    let weight = rule.loss_weight();
    let Memory { features: inertial, images: remembers } = network.unrolling.memory();
    let halved = unit.is_some() && !inertial;
    scratch.remember(stencil, network, halved);
    let Scratch { window, z: padded, a, r, u, v, halves, activated, d, sums, y, q, carried, .. } = scratch;
    let images = remembers || network.bounded;
    let per_layer = network.theta[0].weights().len();
    gradients.fill(0.0);
    let (gradients, activation_gradients) = gradients.split_at_mut(network.filters().count() * per_layer);
    let learns = !activation_gradients.is_empty();
    // The paper's network has neither learned activations nor inertia: its layers are clipped in registers.
    let clip = |k: usize| Clip::of(&activation[k]).filter(|_| !learns && !inertial && !halved);

    let correlate = |scale, d: Features<'_>, x: &[f32], gradient: &mut [f32]| {
        stencil.correlate((unit, level), scale, d, x, gradient);
    };

    // Forward: u_0 = L_0 z, then v_k, u_k with what their convolution saw.
    stencil.pad(z, padded);
    stencil.convolve(level, &packed[0], padded, all.clone(), &mut Assign(&mut u[0]));
    if inertial {
        y[0].copy_from_slice(&u[0]);
    }
    if halved {
        halves::round(&u[0], &mut activated[0]);
    }
    for k in 1..depth {
        if halved {
            let (step, v, activation) =
                (&mut image_step(network, k, images, q), &mut halves[k], &activation[k]);
            let epilogue = &mut halves::Forward { u: &mut u[0], v, activation, mask: &stencil.mask };
            stencil.layer(level, &packed[k], Some(z), step, window, &mut r[k], epilogue);
            continue;
        }
        let (before, after) = u.split_at_mut(k);
        let (u_before, next) = (&before[k - 1], &mut after[0]);
        let (mut source, mut target, mut inertia): (&[f32], &mut [f32], _) = (u_before, next, None);
        if inertial {
            let (before, after) = y.split_at_mut(k);
            let alpha = network.layer_memory(k + 1).inertia;
            inertia = Some(Keep { alpha, u: u_before, next: target });
            (source, target) = (&before[k - 1], &mut after[0]);
        }
        let (step, r) = (&mut image_step(network, k, images, q), &mut r[k]);
        if let Some(clip) = clip(k) {
            let epilogue = &mut ClipForward { u: source, v: &mut v[k], next: target, clip };
            stencil.layer(level, &packed[k], Some(z), step, window, r, epilogue);
        } else {
            let activation = &activation[k];
            let epilogue = &mut Forward { u: source, v: &mut v[k], next: target, activation, inertia };
            stencil.layer(level, &packed[k], Some(z), step, window, r, epilogue);
        }
    }
    // What the layers went on from; that of the output is u_{K-1} itself.
    let y: &[Aligned<f32>] = if inertial { y } else { u };
    let last: &[f32] = if halved { &y[0] } else { &y[depth - 1] };

    // The output and its error e = x^ - x, which does not count in the border.
    let e = a;
    let step = &mut image_step(network, depth, images, q);
    stencil.residual(level, &packed[depth], (last, Some(z)), step, window, e);
    let margin = stencil.grid.margin();
    let mut loss = 0.0;
    for (e, x) in e.chunks_exact_mut(stencil.padded()).zip(x.chunks_exact(len)) {
        let e = &mut e[margin..margin + len];
        e.iter_mut().zip(x).for_each(|(e, x)| *e = -*e - x);
        stencil.grid.clear_border(network.plane_border(), e);
        loss += e.iter().map(|&e| f64::from(e) * f64::from(e)).sum::<f64>();
    }
    let numbers = stencil.grid.pixels_inside(network.plane_border()) * (x.len() / len);
    weigh(of.weight(0.5 * loss, numbers), e);

    // Reverse: theta_K, then d_k, theta_k and what goes back to layer k - 1.
    let gradient = |k: usize| k * per_layer..(k + 1) * per_layer;
    // Where the synthesis of a layer has what it is packed as in reverse, and its gradient.
    let of_synthesis = |k: usize| if network.synthesis.is_empty() { k } else { depth + k };
    carried.0.fill(0.0);
    carried.1.fill(0.0);
    let (carried_features, carried_images) = (&mut carried.0, &mut carried.1);
    if images {
        let (primal, q) = (network.primal(depth), &q[depth]);
        let mut step = ImageStep::Reverse { primal, q, carried: &mut *carried_images, tau: weight };
        stencil.step_whole(&mut step, e);
    }
    let mut sums = learns.then(|| ActivationSums { sums: sums.as_mut_slice(), mask: &stencil.mask });
    d.fill(0.0);
    let k = depth - 1;
    let (activation_k, sums_k) = (&activation[k], sums.as_mut());
    if halved {
        let v = Half { v: &halves[k], u: &mut activated[1] };
        let (activation, sums) = (activation_k, sums_k);
        let epilogue = &mut Backward { d: &mut *d, v, activation, rule, sums, inertia: None };
        stencil.convolve(level, &packed[depth], e, all, epilogue);
    } else if let Some(clip) = clip(k) {
        let epilogue = &mut ClipBackward { d: &mut *d, v: &v[k], clip, rule };
        stencil.convolve(level, &packed[depth], e, all, epilogue);
    } else {
        let (v, activation, sums) = (&v[k][..], activation_k, sums_k);
        let epilogue = &mut Backward { d: &mut *d, v, activation, rule, sums, inertia: None };
        stencil.convolve(level, &packed[depth], e, all, epilogue);
    }
    // What layer k went on from, computed again where it was not kept.
    let went_on = |k: usize, activated: &[Vec<u16>], gradient: &mut [f32], scale: f32, a: &[f32]| {
        let features = match halved {
            true => Features::Halved(&activated[usize::from(k > 0)]),
            false => Features::Whole(&y[k]),
        };
        correlate(scale, features, a, gradient);
    };
    went_on(depth - 1, activated, &mut gradients[gradient(depth)], -weight, e);
    let a = e;
    for k in (1..depth).rev() {
        let tau = network.tau[k - 1];
        if let Some(sums) = &mut sums {
            let numbers = network.theta[0].features() * activation[k].stride();
            sums.total(&activation[k], &mut activation_gradients[(k - 1) * numbers..k * numbers]);
        }
        correlate(-tau, Features::Whole(d), &r[k], &mut gradients[gradient(k)]);
        let (primal, carried) = (network.primal(k), &mut *carried_images);
        let step = &mut match images {
            true => ImageStep::Reverse { primal, q: &q[k], carried, tau },
            false => ImageStep::Nothing,
        };
        let reversed = &packed[of_synthesis(k)];
        if k == 1 {
            stencil.layer(level, reversed, None, step, window, a, &mut AddTo(&mut *d));
        } else if halved {
            let v = Half { v: &halves[k - 1], u: &mut activated[1] };
            let (activation, sums) = (&activation[k - 1], sums.as_mut());
            let epilogue = &mut Backward { d: &mut *d, v, activation, rule, sums, inertia: None };
            stencil.layer(level, reversed, None, step, window, a, epilogue);
        } else if let Some(clip) = clip(k - 1) {
            let epilogue = &mut ClipBackward { d: &mut *d, v: &v[k - 1], clip, rule };
            stencil.layer(level, reversed, None, step, window, a, epilogue);
        } else {
            let alpha = network.layer_memory(k).inertia;
            let epilogue = &mut Backward {
                d: &mut *d,
                v: &v[k - 1][..],
                activation: &activation[k - 1],
                rule,
                sums: sums.as_mut(),
                inertia: inertial.then_some(Carry { alpha, carried: &mut *carried_features }),
            };
            stencil.layer(level, reversed, None, step, window, a, epilogue);
        }
        went_on(k - 1, activated, &mut gradients[gradient(of_synthesis(k))], -tau, a);
    }
    if inertial {
        for (d, carried) in d.chunks_exact_mut(len).zip(carried_features.chunks_exact(len)) {
            d.iter_mut().zip(carried).zip(&*stencil.mask).for_each(|((d, c), mask)| *d += mask * c);
        }
    }
    correlate(1.0, Features::Whole(d), padded, &mut gradients[gradient(0)]);
    0.5 * loss
}

/// The image part of layer `k` forward: from `q_{k-1}` to `q_k`, both kept, where there are `images` to remember.
fn image_step<'a>(
    network: &Network<f32>,
    k: usize,
    images: bool,
    q: &'a mut [Aligned<f32>],
) -> ImageStep<'a> {
    if !images {
        return ImageStep::Nothing;
    }
    let (before, after) = q.split_at_mut(k);
    after[0].copy_from_slice(&before[k - 1]);
    ImageStep::Forward { primal: network.primal(k), q: &mut after[0] }
}
