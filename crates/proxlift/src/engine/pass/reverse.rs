//! The recursion in reverse.

use super::Pass;
use crate::{Real, engine::Engine, field::Field, network::Network};

/// How errors go through the activations in reverse, and who gets what passes by.
pub trait Backward<T: Real> {
    /// `d_k`, what `v_k` gets, from what `u_k` gets from the layers after it.
    fn features(&mut self, k: usize, pass: &Pass<T>, back: &Field<T>, d: &mut Field<T>);

    /// `theta_k`, `k = 1..K`: `L_k* y_{k-1}` gets `p`, and `-tau_k L_k seen_k` gets `d` where there is one.
    fn operator(&mut self, _k: usize, _pass: &Pass<T>, _d: Option<&Field<T>>, _p: &Field<T>) {}

    /// `theta_0`: `u_0 = L_0 z` gets `back`.
    fn first(&mut self, _pass: &Pass<T>, _back: &Field<T>) {}
}

/// What the reverse recursion carries from layer to layer.
#[derive(Clone, Debug)]
pub struct Carried<T: Real> {
    /// `d_k`.
    pub d: Field<T>,
    /// `back_k`.
    pub back: Field<T>,
    /// On features, what `u_{k-2}` gets by inertia.
    inertia: Field<T>,
    /// What `L_k* y_{k-1}` gets.
    pub p: Field<T>,
    /// What `r_{k-1}` gets by being remembered.
    image: Field<T>,
}

impl<T: Real> Carried<T> {
    /// Memory for the batch of `pass`.
    pub fn new(network: &Network<T>, pass: &Pass<T>) -> Self {
        let (features, image) = (pass.u[0].zeros_like(), pass.z.zeros_like());
        let samples = if network.unrolling.memory().features { features.samples() } else { 0 };
        let inertia = Field::zeros(samples, features.channels(), features.grid());
        Self { d: features.clone(), back: features, inertia, p: image.clone(), image }
    }
}

/// All layers in reverse, from what `r_K` gets: `weight` times `e`.
pub fn reverse<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    pass: &Pass<T>,
    (weight, e): (T, &Field<T>),
    carried: &mut Carried<T>,
    rule: &mut dyn Backward<T>,
) {
    let depth = pass.depth();
    let plain_images = !network.bounded && !network.unrolling.memory().images;
    let Carried { d, back, inertia, p, image } = carried;
    inertia.map(|_| T::zero());
    image.map(|_| T::zero());
    for k in (1..=depth).rev() {
        let primal = network.primal(k);
        if k < depth {
            rule.features(k, pass, back, d);
            let (layer, tau) = (network.layer(k), network.layer(k).tau);
            if plain_images {
                engine.pullback(layer, d, p, back);
            } else {
                engine.adjoint(layer.theta, d, p);
            }
            p.map(|a| -tau * a);
        } else {
            p.copy_from(e);
            p.map(|e| weight * e);
        }
        if !plain_images {
            p.zip_both(image, &pass.r[k], |rho, carried, r| primal.reverse(r, rho, carried));
        }
        rule.operator(k, pass, (k < depth).then_some(&*d), p);
        if k == depth || !plain_images {
            engine.analyse(network.synthesis(k), p, back);
        }
        if k < depth && !plain_images {
            back.zip(d, |back, d| d + back);
        }
        if inertia.samples() > 0 {
            let alpha = primal.memory.inertia;
            back.zip_both(inertia, d, |by_y, inertia, _| {
                ((T::one() + alpha) * by_y + inertia, -alpha * by_y)
            });
        }
    }
    rule.first(pass, back);
}
