//! Infinite depth: the network whose layers are all the same, at its fixed point.
//!
//! ```text
//! u* = s(u* - tau L (L* u* - z)),      x^ = z - L* u*
//! ```
//!
//! With `s` the prox of `g*`, `x^` is the solution of the variational problem that the network is unrolled from
//! ([`DualForwardBackward`](crate::solver::DualForwardBackward)): what is learned is the problem, not a number of steps. `x^` is
//! unique, `u*` need not be.
//!
//! - [`FixedPoint::solve`] iterates, plainly or with inertia, until the layer moves `u` no more;
//! - [`FixedPoint::regulariser`] is the convex function that the network is then the proximity operator of, on whole pictures,
//!   with a duality gap that proves how near the solution is;
//! - [`FixedPointTrainer`](crate::training::FixedPointTrainer) trains it.

mod conjugate;
mod descend;
mod mirrored;
mod momentum;
mod potential;
mod primal_dual;
mod regulariser;
mod solve;

pub use conjugate::Conjugate;
pub use mirrored::Mirrored;
pub use momentum::{Acceleration, Momentum};
pub use potential::{Potential, Quadratics};
pub use primal_dual::PrimalDual;
pub use regulariser::{Regulariser, Room};
pub use solve::Solution;

use crate::network::{Activation, Layer, Network, Unrolling};
use crate::{Real, Result, field::Field, operator::Filters};

/// The operator, the step and the activation that all layers share.
///
/// ```
/// use proxlift::engine::Reference;
/// use proxlift::field::Field;
/// use proxlift::fixed_point::{FixedPoint, FixedPointParams};
/// use proxlift::network::{Activation, Architecture};
/// use proxlift::operator::Filters;
/// // Differences of neighbours: anisotropic total variation of a row.
/// let differences = Filters::new(1, 1, 3, vec![0.0, 0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0])?;
/// let limit = FixedPoint::new(differences, 0.25, Activation::clip(vec![0.1]))?;
/// let z = Field::from_planar(1, 1, limit.grid(1, 4)?, &[0.5f64, 0.7, 0.5, 0.6])?;
/// let found = limit.solve(&Reference, &z, None, FixedPointParams::default())?;
/// assert!(found.converged() && found.iterations > 1);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FixedPoint<T> {
    /// `theta`, of `L`.
    pub theta: Filters<T>,
    /// `tau`: below `2 / ||L||^2`, and at most `1 / ||L||^2` for [`Acceleration::Nesterov`]. Where `s` is a projection, as the
    /// clip is, the fixed point does not depend on it.
    pub tau: T,
    /// `s`.
    pub activation: Activation<T>,
    /// Pixels at the edge whose error does not count.
    pub border: usize,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPointParams {
    /// How the iteration is sped up.
    pub acceleration: Acceleration,
    /// A sample is solved when a layer moves its `u` by at most this share of its norm.
    pub tolerance: f64,
    /// At most so many layers.
    pub most: usize,
    /// The linear system of the implicit gradient is solved to this share of its right side.
    pub adjoint_tolerance: f64,
    /// At most so many of its iterations.
    pub adjoint_most: usize,
}

impl Default for FixedPointParams {
    fn default() -> Self {
        Self {
            acceleration: Acceleration::Nesterov,
            tolerance: 1e-4,
            most: 500,
            adjoint_tolerance: 1e-3,
            adjoint_most: 100,
        }
    }
}

impl FixedPointParams {
    /// Refuses numbers out of range.
    pub fn validate(&self) -> Result<()> {
        for tolerance in [self.tolerance, self.adjoint_tolerance] {
            refuse!(!(tolerance.is_finite() && tolerance > 0.0) =>
                "a tolerance of the fixed point is {tolerance}, but it must be above zero");
        }
        refuse!(self.most == 0 || self.adjoint_most == 0 => "a fixed point needs at least one iteration");
        Ok(())
    }
}

impl<T: Real> FixedPoint<T> {
    /// The network from its parts. Fails when they do not fit, or a number is not finite.
    pub fn new(theta: Filters<T>, tau: T, activation: Activation<T>) -> Result<Self> {
        let limit = Self { theta, tau, activation, border: 0 };
        limit.unrolled(2)?;
        Ok(limit)
    }

    /// The limit of a network whose layers are tied, with the step of its first layer: steps follow from the norm of the
    /// operator, and differ by the accuracy to which it is known.
    /// Fails when two of its layers differ, or its layers are not those of dual forward-backward; inertia does not move its limit.
    pub fn of(network: &Network<T>) -> Result<Self> {
        network.validate()?;
        let one_step = matches!(network.unrolling, Unrolling::DualForwardBackward | Unrolling::Inertial);
        refuse!(!one_step || network.bounded || !network.synthesis.is_empty() =>
            "the fixed point is that of dual forward-backward, plain or inertial, without bounds and without a synthesis of its own");
        let (theta, tau, activation) = (&network.theta[0], network.tau[0], &network.activation[0]);
        refuse!(!network.is_tied() => "the layers of the network differ, but a fixed point is that of one layer: tie them");
        let (theta, activation) = (theta.clone(), activation.clone());
        Ok(Self { theta, tau, activation, border: network.border })
    }

    /// The network of `K = depth` that stops after as many layers, started from `u_0 = L z`.
    /// Fails when the depth is below 2.
    pub fn unrolled(&self, depth: usize) -> Result<Network<T>> {
        refuse!(depth < 2 => "the depth K is {depth}, but it must be at least 2");
        let activations = vec![self.activation.clone(); depth - 1];
        let network = Network::with_activations(
            vec![self.theta.clone(); depth + 1],
            vec![self.tau; depth - 1],
            activations,
        )?;
        Ok(Network { border: self.border, ..network })
    }

    /// The network for `weight R` in the place of `R`: with `s = prox_{tau g*}`, `prox_{tau (weight g)*}(t) = weight
    /// prox_{(tau / weight) g*}(t / weight)`.
    /// Fails when the weight is not above zero, or the activation is not learned.
    pub fn weighted(&self, weight: T) -> Result<Self> {
        refuse!(!(weight.is_finite() && weight > T::zero()) => "the weight of the regulariser is {weight}, but it must be above zero");
        let Some(s) = self.activation.piecewise() else {
            return Err(invalid!("the regulariser is written for clips and for learned activations"));
        };
        let mut s = s.with_step(weight.recip());
        crate::prox::Prox::scale(&mut s, weight);
        Ok(Self { activation: s.into(), ..self.clone() })
    }

    /// The grid of images for its kernels.
    pub fn grid(&self, height: usize, width: usize) -> Result<crate::field::Grid> {
        crate::field::Grid::new(height, width, self.theta.radius())
    }

    /// The layer, as engines see it.
    pub fn layer(&self) -> Layer<'_, T> {
        Layer { theta: &self.theta, synthesis: &self.theta, tau: self.tau, activation: &self.activation }
    }
}

/// One sample by itself. Samples are solved side by side, each for as long as it needs and while it sits in the cache.
pub(crate) fn alone<T: Real>(batch: &Field<T>, s: usize) -> Field<T> {
    let mut one = Field::zeros(1, batch.channels(), batch.grid());
    one.data_mut().copy_from_slice(batch.sample(s));
    one
}

/// Many samples together.
pub(crate) fn together<'a, T: Real>(
    mut samples: impl ExactSizeIterator<Item = &'a Field<T>>,
    like: &Field<T>,
) -> Field<T> {
    let mut batch = Field::zeros(samples.len(), like.channels(), like.grid());
    let length = batch.sample_len();
    for (to, from) in batch.data_mut().chunks_exact_mut(length).zip(&mut samples) {
        to.copy_from_slice(from.data());
    }
    batch
}
