//! The recursion of an unrolled network, forward and in reverse, written once over an engine's primitives.
//!
//! Forward, for `k = 1..K` (see [`Unrolling`](crate::network::Unrolling)):
//!
//! ```text
//! y_{k-1} = u_{k-1} + alpha_k (u_{k-1} - u_{k-2})
//! q_k     = (1 - beta_k)(L_k* y_{k-1} - z) + beta_k r_{k-1},     r_k = bound(q_k)
//! v_k     = y_{k-1} - tau_k L_k (r_k + gamma_k (r_k - r_{k-1}))
//! u_k     = s_k(v_k)                                             x^ = -r_K
//! ```
//!
//! What stands for `s_k` and for `bound` is a [`Nonlinearity`]: the network's own, auxiliary variables that are held (the
//! lifted energy), or slopes (the Jacobian). In reverse, with `back_k` what `u_k` gets from the layers after it and `d_k`
//! what `v_k` gets, which is for the [`Backward`] rule to say,
//!
//! ```text
//! rho_k  = -tau_k L_k* d_k                                       rho_K is given
//! p_k    = (1 - beta_k) slope_k ((1 + gamma_k) rho_k + carried_k)                  what L_k* y_{k-1} gets
//! by_y   = d_k + L_k p_k
//! back_{k-1} = (1 + alpha_k) by_y + inertia_k,                   inertia_{k-1} = -alpha_k by_y
//! ```
//!
//! where `carried` and `inertia` are what `r_{k-1}` and `u_{k-2}` get by being remembered.

mod gradients;
mod reverse;

pub(crate) use gradients::train;
pub use gradients::{add_operator, error, half_squared, weigh};
pub use reverse::{Backward, Carried, reverse};

use super::Engine;
use crate::network::{Architecture, Layer, Network};
use crate::{Real, Result, field::Field};

/// The variables of a batch in all layers.
#[derive(Clone, Debug)]
pub struct Pass<T: Real> {
    /// The noisy images.
    pub z: Field<T>,
    /// `u_0..u_{K-1}`.
    pub u: Vec<Field<T>>,
    /// `v_1..v_{K-1}` at their index; `v[0]` is unused and has no samples.
    pub v: Vec<Field<T>>,
    /// `r_1..r_K` at their index, `r_0 = 0`.
    pub r: Vec<Field<T>>,
    /// `r_k + gamma_k (r_k - r_{k-1})` at their index, where layers extrapolate; else without samples.
    seen: Vec<Field<T>>,
    /// `y_k` at their index, where layer `k + 1` has inertia; else without samples.
    y: Vec<Field<T>>,
}

impl<T: Real> Pass<T> {
    /// Memory for a batch, all but `z` zero; an error if the images do not fit the network.
    pub fn new(network: &Network<T>, z: Field<T>) -> Result<Self> {
        network.check_batch(&z)?;
        let Architecture { depth, features, channels, .. } = network.architecture();
        let fields = |channels: usize, count: usize, wanted: &dyn Fn(usize) -> bool| {
            let samples = |k| if wanted(k) { z.samples() } else { 0 };
            (0..count).map(|k| Field::zeros(samples(k), channels, z.grid())).collect::<Vec<_>>()
        };
        let inertial = |k: usize| network.layer_memory(k + 1).inertia != T::zero();
        let extrapolates = |k: usize| k > 0 && network.layer_memory(k).extrapolation != T::zero();
        Ok(Self {
            u: fields(features, depth, &|_| true),
            v: fields(features, depth, &|k| k > 0),
            r: fields(channels, depth + 1, &|_| true),
            seen: fields(channels, depth + 1, &extrapolates),
            y: fields(features, depth, &inertial),
            z,
        })
    }

    /// `K`.
    pub fn depth(&self) -> usize {
        self.u.len()
    }

    /// `y_k`, from which layer `k + 1` starts.
    pub fn y(&self, k: usize) -> &Field<T> {
        chosen(&self.y[k], &self.u[k])
    }

    /// What the convolution of layer `k` sees.
    pub fn seen(&self, k: usize) -> &Field<T> {
        chosen(&self.seen[k], &self.r[k])
    }

    /// Layer `k = 1..K` from `u_{k-1}` on: `r_k`, and `v_k` unless it is the last.
    pub fn layer<E: Engine<T> + ?Sized>(
        &mut self,
        engine: &E,
        network: &Network<T>,
        k: usize,
        nonlinearity: &dyn Nonlinearity<T>,
    ) {
        let (depth, primal) = (self.depth(), network.primal(k));
        let Self { z, u, v, r, seen, y } = self;
        if y[k - 1].samples() > 0 {
            y[k - 1].copy_from(&u[k - 1]);
            y[k - 1].zip(&u[k - 2], |u, before| u + primal.memory.inertia * (u - before));
        }
        let (theta, y) = (&network.theta[k], chosen(&y[k - 1], &u[k - 1]));
        let (before, now) = r.split_at_mut(k);
        let (before, r) = (&before[k - 1], &mut now[0]);
        if primal.is_plain() && k < depth {
            return engine.layer(network.layer(k), y, z, r, &mut v[k]);
        }
        engine.residual(network.synthesis(k), y, z, r);
        if primal.is_plain() {
            return;
        }
        r.zip(before, |p, before| primal.blend(p, before));
        nonlinearity.image(k, r);
        if k == depth {
            return;
        }
        if seen[k].samples() > 0 {
            seen[k].copy_from(r);
            seen[k].zip(before, |r, before| primal.extrapolate(r, before));
        }
        engine.analyse(theta, chosen(&seen[k], r), &mut v[k]);
        let tau = network.layer(k).tau;
        v[k].zip(y, |v, y| y - tau * v);
    }
}

fn chosen<'a, T: Real>(first: &'a Field<T>, second: &'a Field<T>) -> &'a Field<T> {
    if first.samples() > 0 { first } else { second }
}

/// What stands for the activations of features and images.
pub trait Nonlinearity<T: Real> {
    /// `u_k` from `v_k`.
    fn features(&self, k: usize, v: &Field<T>, u: &mut Field<T>);

    /// `r_k` from `q_k`, in place.
    fn image(&self, k: usize, q: &mut Field<T>);
}

/// The network's own activations.
pub struct Own<'a, T: Real, E: ?Sized> {
    /// Who applies them.
    pub engine: &'a E,
    /// Whose they are.
    pub network: &'a Network<T>,
}

impl<T: Real, E: Engine<T> + ?Sized> Nonlinearity<T> for Own<'_, T, E> {
    fn features(&self, k: usize, v: &Field<T>, u: &mut Field<T>) {
        self.engine.activate(self.network.layer(k), v, u);
    }

    fn image(&self, k: usize, q: &mut Field<T>) {
        bound(self.network, k, q);
    }
}

/// Auxiliary variables that are held: `u` stays what it is.
pub struct Held<'a, T>(pub &'a Network<T>);

impl<T: Real> Nonlinearity<T> for Held<'_, T> {
    fn features(&self, _: usize, _: &Field<T>, _: &mut Field<T>) {}

    fn image(&self, k: usize, q: &mut Field<T>) {
        bound(self.0, k, q);
    }
}

fn bound<T: Real>(network: &Network<T>, k: usize, q: &mut Field<T>) {
    if network.bounded {
        let primal = network.primal(k);
        q.map(|q| primal.bound(q));
    }
}

/// All layers from `z` on.
pub fn forward<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    pass: &mut Pass<T>,
    nonlinearity: &dyn Nonlinearity<T>,
) {
    engine.analyse(&network.theta[0], &pass.z, &mut pass.u[0]);
    for k in 1..=pass.depth() {
        pass.layer(engine, network, k, nonlinearity);
        if k < pass.depth() {
            nonlinearity.features(k, &pass.v[k], &mut pass.u[k]);
        }
    }
}

/// `x^ = G(z)`.
pub(crate) fn denoise<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    z: &Field<T>,
    output: &mut Field<T>,
) {
    network.check_pair(z, output).unwrap_or_else(|e| panic!("{e}"));
    let mut pass = Pass::new(network, z.clone()).expect("a batch that was checked");
    forward(engine, network, &mut pass, &Own { engine, network });
    output.copy_from(&pass.r[pass.depth()]);
    output.map(|r| -r);
}

/// [`Engine::iterate`] over an engine's primitives.
pub(crate) fn iterate<T: Real>(
    engine: &(impl Engine<T> + ?Sized),
    layer: Layer<'_, T>,
    z: &Field<T>,
    betas: &[T],
    (u, y): (&mut Field<T>, &mut Field<T>),
) {
    let mut r = z.zeros_like();
    for &beta in betas {
        engine.residual(layer.synthesis, y, z, &mut r);
        advance(engine, layer, &r, beta, (u, y));
    }
}

/// [`Engine::advance`] over an engine's primitives.
pub(crate) fn advance<T: Real>(
    engine: &(impl Engine<T> + ?Sized),
    layer: Layer<'_, T>,
    r: &Field<T>,
    beta: T,
    (u, y): (&mut Field<T>, &mut Field<T>),
) {
    let (mut v, mut next) = (y.zeros_like(), y.zeros_like());
    engine.analyse(layer.theta, r, &mut v);
    v.zip(y, |v, y| y - layer.tau * v);
    engine.activate(layer, &v, &mut next);
    y.copy_from(&next);
    y.zip(u, |next, u| next + beta * (next - u));
    *u = next;
}
