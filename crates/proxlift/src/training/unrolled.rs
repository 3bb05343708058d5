//! The lifted energy of networks with momentum or bounds: the same `E`, but `v_k` depends on more than `u_{k-1}`.
//!
//! `u` alone is lifted. The images `r_k` follow from `u` by the recursion of [`Unrolling`](crate::network::Unrolling), so
//! the gradients go back through it; through the activations they do not, as every `u_k` is a variable of its own.

use super::lifted::{Lifted, map2, map3};
use crate::Real;
use crate::engine::Engine;
use crate::field::Field;
use crate::network::Network;
use crate::operator::Filters;

/// Where the gradients of `E` go.
pub(super) enum Wanted<'a, T: Real> {
    Theta(&'a mut [Filters<T>]),
    U(&'a mut [Field<T>]),
}

impl<T: Real> Lifted<T> {
    /// `u_0`, all `v_k`, what each convolution saw into `r_k`, and `e`, from `theta` and `u`; or, if `anchored`, `u` from
    /// the network's own forward pass.
    pub(super) fn refresh_unrolled(&mut self, engine: &dyn Engine<T>, network: &Network<T>, anchored: bool) {
        let depth = self.u.len();
        self.q.resize_with(depth + 1, || self.e.clone());
        engine.analyse(&network.theta[0], &self.z, &mut self.u[0]);
        let mut before = Field::zeros(self.z.samples(), self.z.channels(), self.z.grid());
        for k in 1..=depth {
            let primal = network.primal(k);
            let y = self.moved(network, k);
            let q = &mut self.q[k];
            engine.residual(&network.theta[k], &y, &self.z, q);
            map2(q.data_mut(), before.data(), |p, before| primal.blend(p, before));
            let seen = if k < depth { &mut self.r[k] } else { &mut self.e };
            seen.data_mut().copy_from_slice(before.data());
            map2(seen.data_mut(), q.data(), |before, q| primal.extrapolate(primal.bound(q), before));
            map2(before.data_mut(), q.data(), |_, q| primal.bound(q));
            if k < depth {
                let layer = network.layer(k);
                engine.analyse(layer.theta, &self.r[k], &mut self.v[k]);
                map2(self.v[k].data_mut(), y.data(), |v, y| y - layer.tau * v);
                if anchored {
                    engine.activate(layer, &self.v[k], &mut self.u[k]);
                }
            }
        }
        map2(self.e.data_mut(), self.x.data(), |r, x| -r - x);
        self.e.clear_border(network.border);
    }

    /// `y_{k-1} = u_{k-1} + alpha_k (u_{k-1} - u_{k-2})`.
    fn moved(&self, network: &Network<T>, k: usize) -> Field<T> {
        let mut y = self.u[k - 1].clone();
        let alpha = network.momentum(k).inertia;
        if alpha != T::zero() {
            map2(y.data_mut(), self.u[k - 2].data(), |u, before| u + alpha * (u - before));
        }
        y
    }

    /// `df/dtheta_k` for all `k`, or `df/du_k` for `k = 1..K-1`.
    pub(super) fn gradients_unrolled(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        mu: T,
        mut wanted: Wanted<'_, T>,
    ) {
        let depth = self.u.len();
        if let Wanted::Theta(gradients) = &mut wanted {
            gradients.iter_mut().for_each(|gradient| gradient.weights_mut().fill(T::zero()));
        }
        let zero = Field::zeros(self.z.samples(), self.z.channels(), self.z.grid());
        let mut carried = zero.clone();
        let mut inertia = Field::zeros(self.z.samples(), self.d.channels(), self.z.grid());
        self.d.data_mut().fill(T::zero());
        for k in (1..=depth).rev() {
            if k < depth {
                let layer = network.layer(k);
                if let Wanted::U(gradients) = &mut wanted {
                    let gradient = gradients[k].data_mut();
                    gradient.copy_from_slice(self.u[k].data());
                    map3(gradient, self.v[k].data(), self.back.data(), |u, v, back| (u - v) + back);
                }
                engine.activate(layer, &self.v[k], &mut self.d);
                map2(self.d.data_mut(), self.u[k].data(), |s, u| s - u);
                engine.residual(layer.theta, &self.d, &zero, &mut self.a);
                map2(self.a.data_mut(), zero.data(), |a, _| -layer.tau * a);
            } else {
                self.a.data_mut().copy_from_slice(self.e.data());
                map2(self.a.data_mut(), zero.data(), |e, _| -mu * e);
            }
            let primal = network.primal(k);
            let images = self.a.data_mut().iter_mut().zip(carried.data_mut()).zip(self.q[k].data());
            for ((a, carried), &q) in images {
                (*a, *carried) = primal.reverse(q, *a, *carried);
            }
            if let Wanted::Theta(gradients) = &mut wanted {
                if k < depth {
                    engine.correlate(-network.layer(k).tau, &self.r[k], &self.d, &mut gradients[k]);
                }
                engine.correlate(T::one(), &self.a, &self.moved(network, k), &mut gradients[k]);
            }
            let alpha = network.momentum(k).inertia;
            engine.analyse(&network.theta[k], &self.a, &mut self.back);
            let all = self.back.data_mut().iter_mut().zip(self.d.data()).zip(inertia.data_mut());
            for ((back, &d), inertia) in all {
                let by_y = d + *back;
                (*back, *inertia) = ((T::one() + alpha) * by_y + *inertia, -alpha * by_y);
            }
        }
        if let Wanted::Theta(gradients) = wanted {
            engine.correlate(T::one(), &self.z, &self.back, &mut gradients[0]);
        }
    }
}
