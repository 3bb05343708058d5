//! What input gives this output? Lifted inversion, and proximal gradients through the network beside it.
//!
//! X. Wang, M. Benning, "A lifted Bregman formulation for the inversion of deep neural networks", 2023.
//!
//! Given a network `G` and outputs `y`, both look for inputs `z`, with what is known of them in a convex `R`:
//!
//! ```text
//! through the network   J(z)    = alpha R(z) + mu l(G(z), y)
//! lifted                E(z, u) = alpha R(z) + mu l(F_K(u_{K-1}, z), y) + sum_{k<K} B_k(u_k, F_k(u_{k-1}, z)),    u_{-1} = z
//! ```
//!
//! `E` is convex in `z` and in each `u_k`, where `J` is not convex; where `u` is the forward pass of `z`, `E` is `J`. Neither
//! method lets its own objective rise, both start from the same input, count their cost in the same way and stop by the same
//! rule, so that they can be compared.

mod block;
mod descent;
mod lifted;
mod regulariser;

pub use regulariser::{ByProx, Near, Regulariser, Variation};

use super::energy::{Between, Term};
use super::network::{After, check_slope};
use super::{Network, Pass, Penalty, Rows};
use crate::network::Activation;
use crate::{Real, Result};
use rayon::prelude::*;

/// What the output is held to.
#[derive(Clone, Debug, PartialEq)]
pub enum Data<T> {
    /// The loss of the network, `l(v_K, y)`.
    Loss,
    /// The Bregman distance of one more activation `s`, `B(y, v_K)`: for outputs `y = s(v_K)`.
    Activation(Activation<T>),
}

/// The weights of the objective, and when to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InversionOptions {
    /// The weight of the data term.
    pub mu: f64,
    /// The weight of `R`.
    pub alpha: f64,
    /// An iteration that lowers the objective by less than this share of it is the last.
    pub tolerance: f64,
    /// No iteration starts when so many passes are done.
    pub passes: f64,
}

impl Default for InversionOptions {
    fn default() -> Self {
        Self { mu: 1.0, alpha: 0.0, tolerance: 1e-6, passes: 1000.0 }
    }
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InversionRecord {
    /// Passes done: every affine map or adjoint, whether its step was accepted or refused, counts as its share of a pass.
    pub passes: f64,
    /// What the method lowers, summed over the batch: `E`, or `J`.
    pub energy: f64,
    /// `J(z)`, summed over the batch.
    pub objective: f64,
    /// `l(G(z), y)`, summed over the batch.
    pub misfit: f64,
}

/// Why a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InversionStop {
    /// The objective falls no more.
    Settled,
    /// The passes are used up.
    Passes,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Inverted<T> {
    /// The inputs.
    pub z: Rows<T>,
    /// At the start, and after each iteration.
    pub history: Vec<InversionRecord>,
    /// Why it stopped.
    pub stop: InversionStop,
}

/// A network, outputs, and what is known of the inputs.
pub struct Inversion<'a, T> {
    network: &'a Network<T>,
    y: &'a Rows<T>,
    regulariser: &'a dyn Regulariser<T>,
    data: Data<T>,
    options: InversionOptions,
}

impl<'a, T: Real> Inversion<'a, T> {
    /// The problem with the network's own loss.
    /// Fails when the outputs do not fit the network, the regulariser not the inputs, or an option is out of range.
    pub fn new(
        network: &'a Network<T>,
        y: &'a Rows<T>,
        regulariser: &'a dyn Regulariser<T>,
        options: InversionOptions,
    ) -> Result<Self> {
        let InversionOptions { mu, alpha, tolerance, passes } = options;
        refuse!(!(mu.is_finite() && mu > 0.0) => "mu is {mu}, but it must be above zero");
        for (what, value) in [("alpha", alpha), ("the tolerance", tolerance)] {
            crate::error::check_not_negative(what, value)?;
        }
        refuse!(passes.is_nan() || passes <= 0.0 => "{passes} passes are allowed, but a search needs some");
        let (inputs, outputs) = (network.layers()[0].inputs(), network.layers()[network.depth()].outputs());
        refuse!(y.width() != outputs =>
            "outputs of {} numbers are given, but the network gives {outputs}", y.width());
        refuse!(y.samples() == 0 => "no output is given, but a search needs one or more");
        regulariser.check(y.samples(), inputs)?;
        let problem = Self { network, y, regulariser, data: Data::Loss, options };
        problem.check_outputs()?;
        Ok(problem)
    }

    /// The same with another data term. Fails when the outputs are not what it can give.
    pub fn with_data(self, data: Data<T>) -> Result<Self> {
        let problem = Self { data, ..self };
        problem.check_outputs()?;
        Ok(problem)
    }

    fn check_outputs(&self) -> Result<()> {
        let Data::Activation(activation) = &self.data else { return self.network.loss.check(self.y) };
        let prox = activation.prox();
        prox.validate()?;
        check_slope(activation, "the last activation")?;
        let planes = prox.planes().unwrap_or(1);
        refuse!(!self.y.width().is_multiple_of(planes) =>
            "outputs of {} numbers are not {planes} planes for their activation", self.y.width());
        refuse!(self.y.rows().any(|y| !prox.value(y).is_finite() || y.iter().any(|y| !y.is_finite())) =>
            "an output is nothing that the last activation can give");
        Ok(())
    }

    /// Refuses starts that do not fit; those outside the domain of `R` are brought into it.
    fn start(&self, start: &Rows<T>) -> Result<Rows<T>> {
        let (inputs, samples) = (self.network.layers()[0].inputs(), self.y.samples());
        refuse!((start.samples(), start.width()) != (samples, inputs) =>
            "the start has {} samples of {} numbers, but there are {samples} outputs and the network takes {inputs}",
            start.samples(), start.width());
        refuse!(start.data().iter().any(|v| !v.is_finite()) => "the start holds a number that is not finite");
        let mut z = start.clone();
        let outside = self.options.alpha > 0.0;
        let rows = z
            .par_rows_mut()
            .enumerate()
            .filter(|(i, z)| outside && self.regulariser.value(*i, z).is_infinite());
        rows.for_each(|(i, z)| self.regulariser.backward(i, T::of(self.options.alpha), z));
        Ok(z)
    }

    /// `alpha R(z)` of sample `i`.
    fn prior(&self, i: usize, z: &[T]) -> f64 {
        if self.options.alpha == 0.0 { 0.0 } else { self.options.alpha * self.regulariser.value(i, z) }
    }

    fn priors(&self, z: &Rows<T>) -> Vec<f64> {
        z.par_rows().enumerate().map(|(i, z)| self.prior(i, z)).collect()
    }

    /// `weight` times the data term, as a function of the output.
    fn data_term(&self, weight: f64) -> Term<'_, T> {
        let after = match &self.data {
            Data::Loss => After::Loss(self.network.loss),
            Data::Activation(s) => After::Activation(s),
        };
        Term { after, penalty: Penalty::Bregman, target: self.y, weight }
    }

    /// The data term of each sample, without its weight.
    fn misfits(&self, output: &Rows<T>) -> Vec<f64> {
        self.data_term(1.0).values(output)
    }

    /// `J(z)`, summed over the batch.
    pub fn objective(&self, z: &Rows<T>) -> f64 {
        self.record(0.0, 0.0, z, self.network.forward(z).output()).objective
    }

    fn record(&self, passes: f64, energy: f64, z: &Rows<T>, output: &Rows<T>) -> InversionRecord {
        let misfit = self.misfits(output).iter().sum::<f64>();
        let objective = self.priors(z).iter().sum::<f64>() + self.options.mu * misfit;
        InversionRecord { passes, energy, objective, misfit }
    }

    /// Why to stop after these, if at all.
    fn stopped(&self, history: &[InversionRecord]) -> Option<InversionStop> {
        let last = history[history.len() - 1];
        if let [.., before, after] = history
            && before.energy - after.energy <= self.options.tolerance * before.energy.abs()
        {
            return Some(InversionStop::Settled);
        }
        (last.passes >= self.options.passes).then_some(InversionStop::Passes)
    }

    /// One map as a share of a pass.
    fn share(&self) -> f64 {
        1.0 / self.network.layers().len() as f64
    }
}

/// The penalties of all layers, and their gradients: `E` at any `z` and `u`.
impl<T: Real> Inversion<'_, T> {
    /// `E(z, u)`, summed over the batch.
    pub fn energy(&self, z: &Rows<T>, u: &[Rows<T>]) -> f64 {
        let pass = self.network.pass_at(z, u.to_vec());
        let blocks = (0..=self.network.depth()).map(|k| self.block(&pass, k).iter().sum::<f64>());
        self.priors(z).iter().sum::<f64>() + blocks.sum::<f64>()
    }

    /// `dE/dz` but for `R`: `A_0* d_0 + sum_k C_k* d_k`.
    pub fn z_gradient(&self, z: &Rows<T>, u: &[Rows<T>]) -> Rows<T> {
        let pass = self.network.pass_at(z, u.to_vec());
        self.gather((0..=self.network.depth()).map(|k| self.error(&pass, k)))
    }

    /// The term of `E` that the affine map `k = 0..=K` enters: `B(u_k, .)`, or `mu l`.
    fn term<'s>(&'s self, pass: &'s Pass<T>, k: usize) -> Term<'s, T> {
        let Some(target) = pass.u.get(k) else { return self.data_term(self.options.mu) };
        Term { after: self.network.after(k), penalty: Penalty::Bregman, target, weight: 1.0 }
    }

    /// Its value of each sample.
    fn block(&self, pass: &Pass<T>, k: usize) -> Vec<f64> {
        self.term(pass, k).values(&pass.v[k])
    }

    /// `d_k`, its gradient: the error of the affine map.
    fn error(&self, pass: &Pass<T>, k: usize) -> Rows<T> {
        self.term(pass, k).error(&pass.v[k])
    }

    /// Both terms that `u_k` enters.
    fn between<'s>(&'s self, pass: &'s Pass<T>, z: &'s Rows<T>, k: usize) -> Between<'s, T> {
        Between {
            s: &self.network.activations()[k],
            penalty: Penalty::Bregman,
            weight: 1.0,
            v: &pass.v[k],
            layer: &*self.network.layers()[k + 1],
            z,
            after: self.term(pass, k + 1),
        }
    }

    /// `A_0* d_0 + sum_k C_k* d_k`.
    fn gather(&self, errors: impl Iterator<Item = Rows<T>>) -> Rows<T> {
        let mut to_z = Rows::zeros(self.y.samples(), self.network.layers()[0].inputs());
        for (k, d) in errors.enumerate() {
            if k == 0 {
                self.network.layers()[0].adjoint(&d, &mut to_z);
            }
            self.network.layers()[k].add_adjoint_skip(&d, &mut to_z);
        }
        to_z
    }

    /// Maps that `z` enters: the first, and those that see it beside the layer before.
    fn sees_z(&self, k: usize) -> bool {
        k == 0 || self.network.layers()[k].skips().is_some()
    }
}
