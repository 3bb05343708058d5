//! The lifted Bregman energy of the network, eq. (eq:def-E), and the partial gradients of its smooth part `f`.
//!
//! ```text
//! E(theta, u | z, x) = mu l(x^(u_{K-1}), x) + sum_{k=1}^{K-1} B(u_k, F_k(u_{k-1})),    l(a, b) = 1/2 ||a - b||^2
//! f = E - sum_k psi(u_k)                                                                        (eq:E-split)
//! ```
//!
//! With `d_k = s(v_k) - u_k`, `r_k = L_k* u_{k-1} - z`, `e = x^ - x`, for dual forward-backward:
//!
//! ```text
//! df/du_k     = (u_k - v_k) + (I - tau_{k+1} L_{k+1} L_{k+1}*) d_{k+1}          k < K-1
//! df/du_{K-1} = (u_{K-1} - v_{K-1}) - mu L_K e
//! df/dL_k     = -tau_k [ corr(r_k, d_k) + corr(L_k* d_k, u_{k-1}) ]
//! df/dL_0     = corr(z, (I - tau_1 L_1 L_1*) d_1)
//! df/dL_K     = -mu corr(e, u_{K-1})
//! ```
//!
//! Where a layer has a synthesis `M_k` of its own, it stands for `L_k*` in `r_k`, its adjoint for the `L` of the pull-back, and
//!
//! ```text
//! df/dL_k = -tau_k corr(r_k, d_k),    df/dM_k = -tau_k corr(L_k* d_k, u_{k-1})
//! ```
//!
//! These are the reverse [recursion](crate::engine::pass) with `d_k` as it is here, so that they hold for every unrolling:
//! `u` alone is lifted, and the images `r_k` follow from it.

use crate::engine::pass::{self, Backward, Carried, Held, Own, Pass, half_squared};
use crate::{
    Real, Result, engine::Engine, field::Field, network::Network, operator::Filters, prox::PiecewiseGradient,
};

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

/// Who computes, and the parameters.
pub type Machine<'a, T> = (&'a dyn Engine<T>, &'a Network<T>);

/// A batch with its auxiliary variables `u_k` and what follows from them: a [`Pass`] whose `u` may be moved.
#[derive(Clone, Debug)]
pub struct Lifted<T: Real> {
    pass: Pass<T>,
    /// The clean images.
    pub x: Field<T>,
    /// `e = x^ - x`.
    pub e: Field<T>,
    carried: Carried<T>,
}

impl<T: Real> std::ops::Deref for Lifted<T> {
    type Target = Pass<T>;
    fn deref(&self) -> &Pass<T> {
        &self.pass
    }
}

impl<T: Real> std::ops::DerefMut for Lifted<T> {
    fn deref_mut(&mut self) -> &mut Pass<T> {
        &mut self.pass
    }
}

impl<T: Real> Lifted<T> {
    /// Memory for a batch, with all `u` zero.
    pub fn new(network: &Network<T>, z: Field<T>, x: Field<T>) -> Result<Self> {
        network.check_pair(&z, &x)?;
        let pass = Pass::new(network, z)?;
        Ok(Self { e: x.zeros_like(), x, carried: Carried::new(network, &pass), pass })
    }

    /// The `kept` memory of an earlier batch if it fits these images, with them in it, else new memory.
    pub fn reuse(kept: Option<Self>, network: &Network<T>, z: &Field<T>, x: &Field<T>) -> Result<Self> {
        let shape = |field: &Field<T>| (field.samples(), field.grid());
        match kept {
            Some(mut lifted) if shape(&lifted.z) == shape(z) && shape(&lifted.x) == shape(x) => {
                lifted.z.copy_from(z);
                lifted.x.copy_from(x);
                Ok(lifted)
            }
            _ => Self::new(network, z.clone(), x.clone()),
        }
    }

    /// Anchors `u` at the network's own forward pass, where all penalties vanish.
    pub fn anchor(&mut self, (engine, network): Machine<'_, T>) {
        pass::forward(engine, network, &mut self.pass, &Own { engine, network });
        pass::error(network, &self.pass, &self.x, &mut self.e);
    }

    /// Computes `u_0`, all `v_k`, `r_k` and `e` from `theta` and `u`.
    pub fn refresh(&mut self, (engine, network): Machine<'_, T>) {
        pass::forward(engine, network, &mut self.pass, &Held(network));
        pass::error(network, &self.pass, &self.x, &mut self.e);
    }

    /// Recomputes what follows from `theta_k`, or from `u_{k-1}`, alone, the other `u` being held; for dual
    /// forward-backward, whose layers see only the one before them.
    pub fn follow(&mut self, (engine, network): Machine<'_, T>, k: usize) {
        if k == 0 {
            engine.analyse(&network.theta[0], &self.pass.z, &mut self.pass.u[0]);
        }
        self.pass.layer(engine, network, k.max(1), &Held(network));
        if k == self.depth() {
            pass::error(network, &self.pass, &self.x, &mut self.e);
        }
    }

    /// `E` and its blocks, from what [`Lifted::refresh`] or [`Lifted::anchor`] computed.
    pub fn energy(&self, machine: Machine<'_, T>, mu: f64) -> Energy {
        let (depth, own) = (self.depth(), self.z.samples());
        let blocks: Vec<_> = (1..=depth).map(|k| self.own_block(machine, k, mu)).collect();
        let by_sample = (0..own).flat_map(|s| blocks.iter().map(move |block| block[s])).collect();
        let all = machine.0.ranks().of_samples(by_sample, depth);
        let mut blocks = (0..depth).map(|k| all.iter().skip(k).step_by(depth).copied().collect());
        let penalties = blocks.by_ref().take(depth - 1).collect();
        Energy { penalties, data: blocks.next().unwrap_or_default() }
    }

    /// The part of `f` that depends on `theta_k`, summed over the batch: the loss for `k = K`, else the penalty that
    /// the block enters (`theta_0` enters that of layer 1).
    pub fn block(&self, machine: Machine<'_, T>, k: usize, mu: f64) -> f64 {
        self.block_of_samples(machine, k, mu).iter().sum()
    }

    /// The same of each sample of the batch.
    pub fn block_of_samples(&self, machine: Machine<'_, T>, k: usize, mu: f64) -> Vec<f64> {
        machine.0.ranks().of_samples(self.own_block(machine, k, mu), 1)
    }

    fn own_block(&self, (engine, network): Machine<'_, T>, k: usize, mu: f64) -> Vec<f64> {
        let samples = self.z.samples();
        if k == self.depth() {
            return (0..samples).map(|s| mu * half_squared(self.e.sample(s))).collect();
        }
        let (k, mut penalty) = (k.max(1), vec![0.0; samples]);
        engine.bregman(network.layer(k), &self.u[k], &self.v[k], &mut penalty);
        penalty
    }

    /// `df/dtheta_k` for all `k`, summed over the batch, and then those by every synthesis of its own.
    pub fn theta_gradients(&mut self, machine: Machine<'_, T>, mu: T, gradients: &mut [Filters<T>]) {
        gradients.iter_mut().for_each(|gradient| gradient.weights_mut().fill(T::zero()));
        self.reverse(mu, &mut Collect { machine, theta: gradients, u: &mut [] });
    }

    /// `df/du_k` for `k = 1..K-1` into `gradients[k]`; `gradients[0]` is left alone.
    pub fn u_gradients(&mut self, machine: Machine<'_, T>, mu: T, gradients: &mut [Field<T>]) {
        self.reverse(mu, &mut Collect { machine, theta: &mut [], u: gradients });
    }

    fn reverse(&mut self, mu: T, to: &mut Collect<'_, T>) {
        pass::reverse(to.machine.0, to.machine.1, &self.pass, (-mu, &self.e), &mut self.carried, to);
    }

    /// `df/dtheta_k` of one block of dual forward-backward, summed over the batch.
    pub fn theta_gradient(
        &mut self,
        (engine, network): Machine<'_, T>,
        k: usize,
        mu: T,
        gradient: &mut Filters<T>,
    ) {
        gradient.weights_mut().fill(T::zero());
        if k == self.depth() {
            return engine.correlate(-mu, &self.e, &self.pass.u[k - 1], gradient);
        }
        assert!(network.is_plain(), "one block at a time is for plain dual forward-backward");
        self.pull((engine, network), k.max(1));
        let Self { pass, carried, .. } = self;
        if k == 0 {
            return engine.correlate(T::one(), &pass.z, &carried.back, gradient);
        }
        let tau = network.layer(k).tau;
        engine.correlate(-tau, &pass.r[k], &carried.d, gradient);
        engine.correlate(-tau, &carried.p, &pass.u[k - 1], gradient);
    }

    /// `df/du_k` of one block of dual forward-backward.
    pub fn u_gradient(&mut self, machine: Machine<'_, T>, k: usize, mu: T, gradient: &mut Field<T>) {
        self.pull_block(machine, k, mu);
        block_gradient(&self.pass, k, &self.carried.back, gradient);
    }

    /// One forward-backward step of the block `u_k` of dual forward-backward: `u_k <- s(u_k - gamma df/du_k)`.
    ///
    /// With `gamma = 1` it goes to the minimiser of the linearised block, `s(v_k - back_k)`. What follows from `u_k` is
    /// left as it was.
    pub fn u_step(&mut self, (engine, network): Machine<'_, T>, k: usize, mu: T, gamma: T) {
        self.pull_block((engine, network), k, mu);
        let Carried { d: step, back, .. } = &mut self.carried;
        block_gradient(&self.pass, k, back, step);
        step.zip(&self.pass.u[k], |gradient, u| u - gamma * gradient);
        engine.activate(network.layer(k), step, &mut self.pass.u[k]);
    }

    /// Puts `u_k` of sample `s` at `s(before - steps[s] gradient)`.
    pub fn put_u(
        &mut self,
        (engine, network): Machine<'_, T>,
        k: usize,
        (before, gradient): (&Field<T>, &Field<T>),
        steps: &[f64],
    ) {
        let d = &mut self.carried.d;
        d.copy_from(before);
        let length = d.sample_len();
        for (s, (to, &step)) in d.data_mut().chunks_exact_mut(length).zip(steps).enumerate() {
            let step = T::of(step);
            to.iter_mut().zip(gradient.sample(s)).for_each(|(to, &g)| *to -= step * g);
        }
        engine.activate(network.layer(k), d, &mut self.pass.u[k]);
    }

    /// `dE` by the knots and slopes of layer `k`, summed over the batch; `u` is held.
    /// Panics when the layer's activation is not piecewise linear.
    pub fn activation_gradient(&self, network: &Network<T>, k: usize) -> PiecewiseGradient<T> {
        let functions = network.activation[k - 1].piecewise().expect("a learned activation");
        let mut gradient = functions.zero_gradient();
        let (len, mut w) = (self.z.grid().len(), self.u[k].clone());
        for (i, w) in w.data_mut().iter_mut().enumerate() {
            *w = T::of(functions.inverse(i / len % functions.features(), w.to_double()));
        }
        functions.add_gradients(&self.v[k], &w, &mut gradient);
        gradient
    }

    /// What `u_k` gets from the layer after it, into `back`.
    fn pull_block(&mut self, (engine, network): Machine<'_, T>, k: usize, mu: T) {
        if k + 1 == self.depth() {
            engine.analyse(network.last(), &self.e, &mut self.carried.back);
            self.carried.back.map(|b| -mu * b);
        } else {
            self.pull((engine, network), k + 1);
        }
    }

    /// `d_k = s(v_k) - u_k`, and from it `p = L_k* d_k` and `back = (I - tau_k L_k L_k*) d_k`.
    fn pull(&mut self, (engine, network): Machine<'_, T>, k: usize) {
        let Carried { d, p, back, .. } = &mut self.carried;
        distance((engine, network), k, &self.pass, d);
        engine.pullback(network.layer(k), d, p, back);
    }
}

/// `d = s(v_k) - u_k`.
fn distance<T: Real>((engine, network): Machine<'_, T>, k: usize, pass: &Pass<T>, d: &mut Field<T>) {
    engine.activate(network.layer(k), &pass.v[k], d);
    d.zip(&pass.u[k], |s, u| s - u);
}

/// `df/du_k = (u_k - v_k) + back_k`.
fn block_gradient<T: Real>(pass: &Pass<T>, k: usize, back: &Field<T>, gradient: &mut Field<T>) {
    gradient.copy_from(&pass.u[k]);
    gradient.zip(&pass.v[k], |u, v| u - v);
    gradient.zip(back, |gap, back| gap + back);
}

/// The reverse recursion of `E`: gradients of the parameters, of the auxiliary variables, or of both.
struct Collect<'a, T: Real> {
    machine: Machine<'a, T>,
    theta: &'a mut [Filters<T>],
    u: &'a mut [Field<T>],
}

impl<T: Real> Backward<T> for Collect<'_, T> {
    fn features(&mut self, k: usize, pass: &Pass<T>, back: &Field<T>, d: &mut Field<T>) {
        if let Some(gradient) = self.u.get_mut(k) {
            block_gradient(pass, k, back, gradient);
        }
        distance(self.machine, k, pass, d);
    }

    fn operator(&mut self, k: usize, pass: &Pass<T>, d: Option<&Field<T>>, p: &Field<T>) {
        if self.theta.is_empty() {
            return;
        }
        let (theta, synthesis) = self.theta.split_at_mut(pass.depth() + 1);
        let gradients = (&mut theta[k], synthesis.get_mut(k - 1));
        pass::add_operator(self.machine, k, pass, (d, p), gradients);
    }

    fn first(&mut self, pass: &Pass<T>, back: &Field<T>) {
        if let Some(gradient) = self.theta.first_mut() {
            self.machine.0.correlate(T::one(), &pass.z, back, gradient);
        }
    }
}
