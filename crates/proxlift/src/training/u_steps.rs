//! Steps of the auxiliary variables: `u_k <- s(u_k - gamma df/du_k)`, for one block or for all.

use super::backtracking::{Backtracking, RESOLUTION};
use super::lifted::{Lifted, map, map2, map3};
use crate::Real;
use crate::engine::Engine;
use crate::field::Field;
use crate::network::Network;

/// The longest step of a single block: the curvature of `q` is 1, so that no longer one keeps the majorant.
const LONGEST: f64 = 1.0;

/// Memory of a search for the step of one block: where it starts, and its gradient.
#[derive(Clone, Debug)]
pub struct USearch<T: Real> {
    before: Field<T>,
    gradient: Field<T>,
}

impl<T: Real> USearch<T> {
    /// Memory for the blocks of `lifted`.
    pub fn new(lifted: &Lifted<T>) -> Self {
        Self { before: lifted.u[0].clone(), gradient: lifted.u[0].clone() }
    }

    /// Whether it has the size of the blocks of `lifted`.
    pub fn fits(&self, lifted: &Lifted<T>) -> bool {
        let shape = |field: &Field<T>| (field.samples(), field.grid());
        shape(&self.before) == shape(&lifted.u[0])
    }
}

impl<T: Real> Lifted<T> {
    /// `df/du_k - (u_k - v_k)` into `back`: what the block gets from the layer after it.
    fn pull_block(&mut self, engine: &dyn Engine<T>, network: &Network<T>, k: usize, mu: T) {
        if k + 1 == self.u.len() {
            engine.analyse(network.last(), &self.e, &mut self.back);
            map(self.back.data_mut(), |b| -mu * b);
        } else {
            self.pull(engine, network, k + 1);
        }
    }

    /// One forward-backward step of the block `u_k`: `u_k <- s(u_k - gamma df/du_k)`.
    ///
    /// With `gamma = 1` it goes to the minimiser of the linearised block, `s(v_k - back_k)`. What follows from `u_k` is
    /// left as it was.
    pub fn u_step(&mut self, engine: &dyn Engine<T>, network: &Network<T>, k: usize, mu: T, gamma: T) {
        self.pull_block(engine, network, k, mu);
        let step = self.d.data_mut();
        step.copy_from_slice(self.u[k].data());
        map3(step, self.v[k].data(), self.back.data(), |u, v, back| u - gamma * ((u - v) + back));
        engine.activate(network.layer(k), &self.d, &mut self.u[k]);
    }

    /// One forward-backward step of the block `u_k`, as long for each sample as its own majorant (eq:maj-u) allows:
    /// given `theta`, the samples are independent. Returns how many steps were refused.
    ///
    /// The next layer's `v` and `r`, or the error `e`, follow `u_k`. `gamma` remembers the longest step of the batch.
    pub fn u_search(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        (k, mu): (usize, T),
        gamma: &mut Backtracking,
        search: &mut USearch<T>,
    ) -> usize {
        let samples = self.z.samples();
        self.pull_block(engine, network, k, mu);
        let gradient = search.gradient.data_mut();
        gradient.copy_from_slice(self.u[k].data());
        map3(gradient, self.v[k].data(), self.back.data(), |u, v, back| (u - v) + back);
        search.before.data_mut().copy_from_slice(self.u[k].data());

        let f = self.u_block(engine, network, k, mu);
        let mut steps = vec![(gamma.step * gamma.grow).min(LONGEST); samples];
        let mut open = vec![true; samples];
        let mut refused = 0;
        for _ in 0..=gamma.most {
            let models = self.move_block(engine, network, k, &steps, search);
            let values = self.u_block(engine, network, k, mu);
            for s in (0..samples).filter(|&s| open[s]).collect::<Vec<_>>() {
                if values[s] <= f[s] + models[s] + RESOLUTION * f[s].abs() {
                    open[s] = false;
                } else {
                    steps[s] *= gamma.shrink;
                    refused += 1;
                }
            }
            if !open.contains(&true) {
                gamma.step = steps.iter().copied().fold(0.0, f64::max);
                return refused;
            }
        }
        for (step, open) in steps.iter_mut().zip(open) {
            *step = if open { 0.0 } else { *step };
        }
        self.move_block(engine, network, k, &steps, search);
        refused
    }

    /// Puts `u_k` of sample `s` at `s(before - steps[s] gradient)`, with what follows from it, and returns what the
    /// majorant of each sample adds to `f`.
    fn move_block(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        k: usize,
        steps: &[f64],
        search: &USearch<T>,
    ) -> Vec<f64> {
        let length = self.d.sample_len();
        self.d.data_mut().copy_from_slice(search.before.data());
        for (s, (to, &step)) in self.d.data_mut().chunks_exact_mut(length).zip(steps).enumerate() {
            let step = T::of(step);
            map2(to, search.gradient.sample(s), |from, g| from - step * g);
        }
        engine.activate(network.layer(k), &self.d, &mut self.u[k]);
        if k + 1 == self.u.len() {
            self.output(engine, network);
        } else {
            self.propagate(engine, network, k + 1);
        }
        let model = |s: usize| {
            majorant(self.u[k].sample(s), search.before.sample(s), search.gradient.sample(s), steps[s])
        };
        (0..steps.len()).map(model).collect()
    }

    /// The part of `f` that depends on `u_k`, of each sample: its own penalty, and the next one or the loss.
    fn u_block(&self, engine: &dyn Engine<T>, network: &Network<T>, k: usize, mu: T) -> Vec<f64> {
        let samples = self.z.samples();
        let (mut own, mut next) = (vec![0.0; samples], vec![0.0; samples]);
        engine.bregman(network.layer(k), &self.u[k], &self.v[k], &mut own);
        if k + 1 == self.u.len() {
            for (s, next) in next.iter_mut().enumerate() {
                let squares: f64 = self.e.sample(s).iter().map(|e| e.to_double().powi(2)).sum();
                *next = 0.5 * mu.to_double() * squares;
            }
        } else {
            engine.bregman(network.layer(k + 1), &self.u[k + 1], &self.v[k + 1], &mut next);
        }
        own.iter().zip(next).map(|(own, next)| own + next).collect()
    }

    /// Puts all `u_k` at `s(before_k - gamma gradient_k)` and returns what their majorant adds to `f`,
    /// `<u - before, gradient> + 1/(2 gamma) ||u - before||^2`.
    pub fn u_trial(
        &mut self,
        engine: &dyn Engine<T>,
        network: &Network<T>,
        before: &[Field<T>],
        gradients: &[Field<T>],
        gamma: T,
    ) -> f64 {
        let mut model = 0.0;
        for k in 1..self.u.len() {
            let (from, gradient) = (before[k].data(), gradients[k].data());
            let step = self.d.data_mut();
            step.copy_from_slice(from);
            map2(step, gradient, |from, g| from - gamma * g);
            engine.activate(network.layer(k), &self.d, &mut self.u[k]);
            model += majorant(self.u[k].data(), from, gradient, gamma.to_double());
        }
        model
    }
}

/// `<u - from, g> + 1/(2 gamma) ||u - from||^2`.
fn majorant<T: Real>(u: &[T], from: &[T], gradient: &[T], gamma: f64) -> f64 {
    let terms = u.iter().zip(from).zip(gradient).map(|((&u, &from), &g)| {
        let moved = (u - from).to_double();
        if moved == 0.0 { 0.0 } else { moved * g.to_double() + moved * moved / (2.0 * gamma) }
    });
    terms.sum()
}
