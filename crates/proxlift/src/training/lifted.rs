//! The lifted Bregman energy of the network, eq. (eq:def-E), and the partial gradients of its smooth part `f`.
//!
//! ```text
//! E(theta, u | z, x) = mu l(x^(u_{K-1}), x) + sum_{k=1}^{K-1} B(u_k, F_k(u_{k-1})),    l(a, b) = 1/2 ||a - b||^2
//! f = E - sum_k psi(u_k)                                                                        (eq:E-split)
//! ```
//!
//! With `d_k = s(v_k) - u_k`, `r_k = L_k* u_{k-1} - z`, `e = x^ - x`:
//!
//! ```text
//! df/du_k     = (u_k - v_k) + (I - tau_{k+1} L_{k+1} L_{k+1}*) d_{k+1}          k < K-1
//! df/du_{K-1} = (u_{K-1} - v_{K-1}) - mu L_K e
//! df/dL_k     = -tau_k [ corr(r_k, d_k) + corr(L_k* d_k, u_{k-1}) ]
//! df/dL_0     = corr(z, (I - tau_1 L_1 L_1*) d_1)
//! df/dL_K     = -mu corr(e, u_{K-1})
//! ```

use super::unrolled::Wanted;
use crate::engine::Engine;
use crate::field::Field;
use crate::network::{ActivationGradient, Architecture, Network};
use crate::operator::Filters;
use crate::{Real, Result};
use rayon::prelude::*;

/// `E` of each sample of a batch, by blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy {
    /// `mu l(x^(u_{K-1}), x)` of each sample.
    pub data: Vec<f64>,
    /// `B(u_k, v_k)` of each sample, for `k = 1..K-1` at index `k - 1`.
    pub penalties: Vec<Vec<f64>>,
}

impl Energy {
    /// `E` of sample `s`.
    pub fn sample(&self, s: usize) -> f64 {
        self.data[s] + self.penalties.iter().map(|penalty| penalty[s]).sum::<f64>()
    }

    /// `E` summed over the batch.
    pub fn total(&self) -> f64 {
        self.blocks().iter().sum()
    }

    /// The blocks summed over the batch: the penalties of layers `1..K-1`, then the loss.
    pub fn blocks(&self) -> Vec<f64> {
        self.penalties.iter().chain([&self.data]).map(|block| block.iter().sum()).collect()
    }
}

/// Numbers of a batch that a thread takes at once.
const GRAIN: usize = 1 << 14;

/// `a <- f(a)`, entry by entry.
pub(super) fn map<T: Real>(a: &mut [T], f: impl Fn(T) -> T + Sync) {
    a.par_chunks_mut(GRAIN).for_each(|a| a.iter_mut().for_each(|a| *a = f(*a)));
}

/// `a <- f(a, b)`, entry by entry.
pub(super) fn map2<T: Real>(a: &mut [T], b: &[T], f: impl Fn(T, T) -> T + Sync) {
    a.par_chunks_mut(GRAIN)
        .zip(b.par_chunks(GRAIN))
        .for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b)));
}

/// `a <- f(a, b, c)`, entry by entry.
pub(super) fn map3<T: Real>(a: &mut [T], b: &[T], c: &[T], f: impl Fn(T, T, T) -> T + Sync) {
    let parts = a.par_chunks_mut(GRAIN).zip(b.par_chunks(GRAIN)).zip(c.par_chunks(GRAIN));
    parts.for_each(|((a, b), c)| {
        a.iter_mut().zip(b).zip(c).for_each(|((a, &b), &c)| *a = f(*a, b, c));
    });
}

/// A batch with its auxiliary variables `u_k` and what follows from them.
#[derive(Clone, Debug)]
pub struct Lifted<T: Real> {
    /// The noisy images.
    pub z: Field<T>,
    /// The clean images.
    pub x: Field<T>,
    /// `u_0 = L_0 z` (which follows from `theta_0`), then the variables `u_1..u_{K-1}`.
    pub u: Vec<Field<T>>,
    /// `v_k = F_k(u_{k-1})` for `k = 1..K-1`, at their index; `v[0]` is unused and has no samples.
    pub v: Vec<Field<T>>,
    /// `r_k = L_k* u_{k-1} - z`, at their index likewise.
    pub r: Vec<Field<T>>,
    /// `e = x^ - x`.
    pub e: Field<T>,
    /// `d_k = s(v_k) - u_k`, for whichever layer is at work.
    pub(super) d: Field<T>,
    /// `L_k* d_k`.
    pub(super) a: Field<T>,
    /// `q_k` of a network with momentum or bounds, at their index; else empty.
    pub(super) q: Vec<Field<T>>,
    /// `(I - tau_k L_k L_k*) d_k`.
    pub(super) back: Field<T>,
}

impl<T: Real> Lifted<T> {
    /// Memory for a batch, with all `u` zero.
    ///
    /// # Errors
    /// When the images do not fit the network.
    pub fn new(network: &Network<T>, z: Field<T>, x: Field<T>) -> Result<Self> {
        network.check_pair(&z, &x)?;
        let Architecture { depth, features, channels, .. } = network.architecture();
        let (samples, grid) = (z.samples(), z.grid());
        let fields = |channels: usize, first: usize| {
            let count = |k: usize| if k < first { 0 } else { samples };
            (0..depth).map(|k| Field::zeros(count(k), channels, grid)).collect()
        };
        let feature = || Field::zeros(samples, features, grid);
        let image = || Field::zeros(samples, channels, grid);
        Ok(Self {
            u: fields(features, 0),
            v: fields(features, 1),
            r: fields(channels, 1),
            e: image(),
            d: feature(),
            a: image(),
            q: Vec::new(),
            back: feature(),
            z,
            x,
        })
    }

    /// Anchors `u` at the network's own forward pass, where all penalties vanish.
    pub fn anchor(&mut self, engine: &dyn Engine<T>, network: &Network<T>) {
        if !network.is_plain() {
            return self.refresh_unrolled(engine, network, true);
        }
        engine.analyse(&network.theta[0], &self.z, &mut self.u[0]);
        for k in 1..self.u.len() {
            self.propagate(engine, network, k);
            engine.activate(network.layer(k), &self.v[k], &mut self.u[k]);
        }
        self.output(engine, network);
    }

    /// Computes `u_0`, all `v_k`, `r_k` and `e` from `theta` and `u`.
    pub fn refresh(&mut self, engine: &dyn Engine<T>, network: &Network<T>) {
        if !network.is_plain() {
            return self.refresh_unrolled(engine, network, false);
        }
        engine.analyse(&network.theta[0], &self.z, &mut self.u[0]);
        for k in 1..self.u.len() {
            self.propagate(engine, network, k);
        }
        self.output(engine, network);
    }

    /// `v_k = F_k(u_{k-1})` and `r_k` of plain dual forward-backward, as are the steps of single blocks below.
    pub fn propagate(&mut self, engine: &dyn Engine<T>, network: &Network<T>, k: usize) {
        engine.layer(network.layer(k), &self.u[k - 1], &self.z, &mut self.r[k], &mut self.v[k]);
    }

    /// `e = x^ - x`, zero in the network's border.
    pub fn output(&mut self, engine: &dyn Engine<T>, network: &Network<T>) {
        let last = &self.u[self.u.len() - 1];
        engine.residual(network.last(), last, &self.z, &mut self.e);
        map2(self.e.data_mut(), self.x.data(), |e, x| -e - x);
        self.e.clear_border(network.border);
    }

    /// `E` and its blocks, from what [`Lifted::refresh`] or [`Lifted::anchor`] computed.
    pub fn energy(&self, engine: &dyn Engine<T>, network: &Network<T>, mu: f64) -> Energy {
        let samples = self.z.samples();
        let data = (0..samples).map(|s| {
            let squares: f64 = self.e.sample(s).iter().map(|e| e.to_double().powi(2)).sum();
            0.5 * mu * squares
        });
        let penalties = (1..self.u.len()).map(|k| {
            let mut penalty = vec![0.0; samples];
            engine.bregman(network.layer(k), &self.u[k], &self.v[k], &mut penalty);
            penalty
        });
        Energy { data: data.collect(), penalties: penalties.collect() }
    }

    /// `d_k = s(v_k) - u_k`, and from it `a = L_k* d_k` and `back = (I - tau_k L_k L_k*) d_k`.
    pub(super) fn pull(&mut self, engine: &dyn Engine<T>, network: &Network<T>, k: usize) {
        let layer = network.layer(k);
        engine.activate(layer, &self.v[k], &mut self.d);
        map2(self.d.data_mut(), self.u[k].data(), |d, u| d - u);
        engine.pullback(layer, &self.d, &mut self.a, &mut self.back);
    }

    /// `df/dtheta_k` for all `k`, summed over the batch.
    pub fn theta_gradients(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        mu: T,
        gradients: &mut [Filters<T>],
    ) {
        if !network.is_plain() {
            return self.gradients_unrolled(engine, network, mu, Wanted::Theta(gradients));
        }
        let depth = self.u.len();
        for gradient in gradients.iter_mut() {
            gradient.weights_mut().fill(T::zero());
        }
        engine.correlate(-mu, &self.e, &self.u[depth - 1], &mut gradients[depth]);
        for k in (1..depth).rev() {
            self.pull(engine, network, k);
            let tau = network.layer(k).tau;
            engine.correlate(-tau, &self.r[k], &self.d, &mut gradients[k]);
            engine.correlate(-tau, &self.a, &self.u[k - 1], &mut gradients[k]);
        }
        engine.correlate(T::one(), &self.z, &self.back, &mut gradients[0]);
    }

    /// `df/du_k` for `k = 1..K-1` into `gradients[k]`; `gradients[0]` is left alone.
    pub fn u_gradients(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        mu: T,
        gradients: &mut [Field<T>],
    ) {
        if !network.is_plain() {
            return self.gradients_unrolled(engine, network, mu, Wanted::U(gradients));
        }
        let depth = self.u.len();
        engine.analyse(network.last(), &self.e, &mut self.back);
        map(self.back.data_mut(), |b| -mu * b);
        for k in (1..depth).rev() {
            let gradient = gradients[k].data_mut();
            gradient.copy_from_slice(self.u[k].data());
            map3(gradient, self.v[k].data(), self.back.data(), |u, v, back| (u - v) + back);
            self.pull(engine, network, k);
        }
    }

    /// The part of `f` that depends on `theta_k`, summed over the batch: the loss for `k = K`, else the penalty that
    /// the block enters (`theta_0` enters that of layer 1).
    pub fn block(&self, engine: &dyn Engine<T>, network: &Network<T>, k: usize, mu: f64) -> f64 {
        if k == self.u.len() {
            return 0.5 * mu * self.e.data().iter().map(|e| e.to_double().powi(2)).sum::<f64>();
        }
        let k = k.max(1);
        let mut penalty = vec![0.0; self.z.samples()];
        engine.bregman(network.layer(k), &self.u[k], &self.v[k], &mut penalty);
        penalty.iter().sum()
    }

    /// `df/dtheta_k` of one block, summed over the batch.
    pub fn theta_gradient(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        k: usize,
        mu: T,
        gradient: &mut Filters<T>,
    ) {
        gradient.weights_mut().fill(T::zero());
        if k == self.u.len() {
            engine.correlate(-mu, &self.e, &self.u[k - 1], gradient);
        } else if k == 0 {
            self.pull(engine, network, 1);
            engine.correlate(T::one(), &self.z, &self.back, gradient);
        } else {
            self.pull(engine, network, k);
            let tau = network.layer(k).tau;
            engine.correlate(-tau, &self.r[k], &self.d, gradient);
            engine.correlate(-tau, &self.a, &self.u[k - 1], gradient);
        }
    }

    /// `dE` by the knots and slopes of layer `k`, summed over the batch; `u` is held.
    pub fn activation_gradient(&self, network: &Network<T>, k: usize) -> ActivationGradient<T> {
        let activation = &network.activation[k - 1];
        let mut gradient = activation.zero_gradient();
        let len = self.z.grid().len();
        let values = self.u[k].data().iter().zip(self.v[k].data()).enumerate();
        for (i, (&u, &v)) in values {
            let j = i / len % activation.features();
            activation.add_gradient(j, v, T::of(activation.inverse(j, u.to_double())), &mut gradient);
        }
        gradient
    }

    /// Recomputes what follows from `theta_k` alone, `u` being held.
    pub fn follow(&mut self, engine: &dyn Engine<T>, network: &Network<T>, k: usize) {
        if k == self.u.len() {
            self.output(engine, network);
            return;
        }
        if k == 0 {
            engine.analyse(&network.theta[0], &self.z, &mut self.u[0]);
        }
        self.propagate(engine, network, k.max(1));
    }
}
