//! How a gradient becomes a step: a metric, momentum and a rate, the same for lifted Bregman and for back-propagation.
//!
//! | metric | the step `A^{-1} g` of a block | with |
//! |---|---|---|
//! | Euclidean | the gradient itself | momentum `m <- beta m + g` |
//! | diagonal | each entry over the root of a moving average of its square (Adam, Kingma and Ba 2014) | means of `beta1`, `beta2` |
//! | Kronecker | the same in an eigenbasis of each layer's own (SOAP, Vyas and others 2024) | the same |
//! | Gauss-Newton | a damped moving average of `J^T D J`, a matrix for each layer | momentum |
//!
//! Plain SGD is the Euclidean metric without momentum, Adam the diagonal one.

mod eigenbasis;
mod eigenvectors;
pub(super) mod gauss_newton;
mod moments;
mod rate;

pub use rate::{Rate, Schedule};

use super::{
    lifted::{Lifted, Machine},
    trainer::Snapshot,
};
use crate::{Result, engine::Gradients, named::named, network::Network, operator::Filters};
use gauss_newton::GaussNewton;
pub(crate) use moments::Moments;

named! {
    /// The metric of the parameter blocks.
    pub enum Metric ("metric") {
        /// None: plain gradients.
        Euclidean = "euclidean",
        /// One scale for each weight.
        Diagonal = "diagonal",
        /// One scale for each weight, in the basis where the entries of a layer's gradient are uncorrelated.
        Kronecker = "kronecker",
        /// A matrix for each layer.
        GaussNewton = "gauss-newton",
    }
}

/// The settings of an [`Optimiser`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// The metric.
    pub metric: Metric,
    /// How much of the last direction is kept: `beta1`.
    pub momentum: f32,
    /// How much is kept of the mean of squares, in the diagonal and the Kronecker metric.
    pub beta2: f32,
    /// The rate.
    pub rate: Rate,
}

impl Descent {
    /// Checks that the numbers are in range, and the metric is for this network.
    pub fn validate(&self, network: &Network<f32>) -> Result<()> {
        if self.metric == Metric::GaussNewton {
            gauss_newton::check(network)?;
        }
        self.check()
    }

    /// Checks that the numbers are in range.
    pub fn check(&self) -> Result<()> {
        for (name, share) in [("momentum", self.momentum), ("beta2", self.beta2)] {
            refuse!(!(0.0..1.0).contains(&share) => "the {name} is {share}, but it must be in [0, 1[");
        }
        let start = self.rate.start;
        refuse!(!(start.is_finite() && start > 0.0) => "the rate is {start}, but it must be above zero");
        Ok(())
    }
}

impl std::fmt::Display for Descent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} metric, rate {}", self.metric, self.rate)?;
        if self.momentum > 0.0 {
            write!(f, ", momentum {}", self.momentum)?;
        }
        match self.metric {
            Metric::Diagonal | Metric::Kronecker => write!(f, ", beta2 {}", self.beta2),
            Metric::Euclidean | Metric::GaussNewton => Ok(()),
        }
    }
}

/// Takes steps along gradients.
pub struct Optimiser {
    descent: Descent,
    moments: Moments,
    gauss_newton: Option<GaussNewton>,
}

impl Optimiser {
    /// For the parameters of `network`; `seed` draws the pixels at which a Gauss-Newton matrix is observed.
    pub fn new(network: &Network<f32>, descent: Descent, seed: u64) -> Result<Self> {
        descent.validate(network)?;
        let gauss_newton = descent.metric == Metric::GaussNewton;
        Ok(Self {
            descent,
            moments: moments(network, descent.metric == Metric::Kronecker),
            gauss_newton: gauss_newton.then(|| GaussNewton::new(network, true, seed)),
        })
    }

    /// Whether the metric is to be [observed](Self::observe) at batch number `visit`.
    pub fn observes(&self, visit: u64) -> bool {
        self.gauss_newton.is_some() && visit.is_multiple_of(gauss_newton::OBSERVE_EVERY)
    }

    /// Averages the metric in at a batch, anchored at the forward pass.
    pub fn observe(&mut self, machine: Machine<'_, f32>, lifted: &Lifted<f32>) {
        if let Some(metric) = &mut self.gauss_newton {
            metric.observe(machine, lifted);
        }
    }

    /// One step along `scale` times the gradients when `progress` of the training is done; returns the rate.
    pub fn step(
        &mut self,
        network: &mut Network<f32>,
        gradients: &mut Gradients<f32>,
        scale: f32,
        progress: f64,
    ) -> f64 {
        let Descent { metric, momentum, beta2, rate } = self.descent;
        let rate = rate.at(progress);
        if let Some(metric) = &self.gauss_newton {
            for (k, gradient) in gradients.theta.iter_mut().enumerate() {
                metric.solve(k, gradient.weights_mut());
            }
        }
        // Momentum lengthens a steady step by 1 / (1 - beta); in this metric, rates are those of the step itself.
        let length = if metric == Metric::GaussNewton { 1.0 - momentum } else { 1.0 };
        let squares = matches!(metric, Metric::Diagonal | Metric::Kronecker).then_some(beta2);
        let of_filters = gradients.filters().map(Filters::weights);
        // Without gradients of the activations, these end with the filters.
        let of_activations = gradients.activation.iter().flat_map(|g| [g.knots.as_slice(), &g.slopes]);
        let of_all = of_filters.chain(of_activations);
        self.moments.descend(network.trained_mut(), of_all, scale, rate as f32 * length, (momentum, squares));
        rate
    }

    /// What the next step depends on.
    pub fn save(&self, state: &mut Snapshot) {
        self.moments.save(state);
        self.gauss_newton.iter().for_each(|metric| metric.save(state));
    }

    /// Continues from [`Self::save`].
    pub fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.moments.restore(state)?;
        self.gauss_newton.iter_mut().try_for_each(|metric| metric.restore(state))
    }
}

/// Zero means for the filters of all layers, then for knots and slopes of learned activations.
fn moments(network: &Network<f32>, in_eigenbases: bool) -> Moments {
    let filters = network.filters().map(|theta| theta.weights().len());
    let activations = network.learned().flat_map(|s| [s.knots().len(), s.slopes().len()]);
    let matrix = |theta: &Filters<f32>| [theta.features(), theta.weights().len() / theta.features()];
    let matrices = network.filters().map(matrix).filter(|_| in_eigenbases);
    Moments::new(filters.chain(activations), matrices)
}
