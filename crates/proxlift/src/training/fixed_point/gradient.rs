//! Gradients of the loss at the fixed point.
//!
//! With `e = x^ - x`, `r = L* u* - z` and the error `d` of the layer's affine map,
//!
//! ```text
//! dl/dtheta = -corr(e, u*) - tau [ corr(r, d) + corr(L* d, u*) ],      dl/dtau = -<L* d, r>
//! ```
//!
//! where `d` is, by the rule,
//!
//! - **implicit**: `d = D w` for `w = -L e + M D w`, as if back through infinitely many layers;
//! - **lifted**: the anchored sweep of the lifted energy, repeated until it stands still, is `back = mu g + M d` with the secant
//!   `d = s(v) - s(v - back)`, `g = -L e`. For `u_mu = u* - d` this says
//!
//!   ```text
//!   u_mu = s(v - mu g - M (u* - u_mu)) = s(M u_mu + tau L (z + mu/tau e))
//!   ```
//!
//!   which is the fixed point of the same network for the image `z + mu/tau (x^ - x)`. So the lifted gradient needs no
//!   derivative of `s` and no linear system, but a second forward pass, for an image that is nudged by the error of the first;
//!   `d = (u* - u_mu) / mu`. As `mu -> 0` it becomes the implicit one.
//! - **centred**: from both sides, `d = (u_{-mu} - u_mu) / 2 mu`.

use super::adjoint;
use crate::engine::{Engine, SampleLoss, pass::half_squared, pass::weigh};
use crate::fixed_point::{FixedPoint, FixedPointParams, Solution, alone, together};
use crate::prox::{PiecewiseGradient, PiecewiseLinear};
use crate::real::dot;
use crate::{Real, Result, field::Field, operator::Filters};
use rayon::prelude::*;

/// How the loss is differentiated at the fixed point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FixedPointRule<T> {
    /// By the implicit function theorem: with tangents.
    Implicit,
    /// By the fixed point of a nudged image: with secants.
    Lifted {
        /// The weight of the loss: how far it is nudged.
        mu: T,
    },
    /// By two, nudged either way.
    Centred {
        /// The weight of the loss.
        mu: T,
    },
}

impl<T: Real> FixedPointRule<T> {
    /// Checks that its weight of the loss is one.
    pub fn validate(self) -> Result<()> {
        if let Self::Lifted { mu } | Self::Centred { mu } = self {
            refuse!(!(mu.is_finite() && mu > T::zero()) => "mu is {mu}, but it must be above zero");
        }
        Ok(())
    }
}

/// The gradients of a batch, summed over its samples, of all members of a team.
#[derive(Clone, Debug)]
pub struct FixedPointGradients<T: Real> {
    /// By the filters.
    pub theta: Filters<T>,
    /// By the step.
    pub tau: T,
    /// By knots and slopes, where the activation has them.
    pub activation: Option<PiecewiseGradient<T>>,
    /// `1/2 ||x^ - x||^2` of each sample; in a team, of this member's.
    pub loss: Vec<f64>,
    /// The fixed points.
    pub solution: Solution<T>,
    /// Layers, or iterations of the linear system, that the gradient took after them.
    pub iterations: usize,
}

impl<T: Real> FixedPoint<T> {
    /// The gradients of a loss, summed over samples, by a rule; fixed points are sought from `start`, or from zero.
    /// Fails when the images do not fit, or what [`FixedPoint::solve`] fails for.
    pub fn gradients(
        &self,
        engine: &dyn Engine<T>,
        (rule, loss): (FixedPointRule<T>, SampleLoss),
        (z, x): (&Field<T>, &Field<T>),
        start: Option<&Field<T>>,
        params: FixedPointParams,
    ) -> Result<FixedPointGradients<T>> {
        let shape = |f: &Field<T>| (f.samples(), f.channels(), f.grid());
        refuse!(shape(z) != shape(x) => "the clean images have another shape than the noisy ones");
        rule.validate()?;
        let solution = self.solve(engine, z, start, params)?;
        let mut e = solution.output();
        e.zip(x, |output, x| output - x);
        e.clear_border(self.border);
        let squares: Vec<f64> = (0..e.samples()).map(|s| half_squared(e.sample(s))).collect();
        if loss != SampleLoss::Squared {
            let (length, numbers) = (e.sample_len(), z.grid().pixels_inside(self.border) * z.channels());
            for (sample, square) in e.data_mut().chunks_exact_mut(length).zip(&squares) {
                weigh(loss.weight(*square, numbers), sample);
            }
        }
        let mut found = self.errors(engine, rule, (z, &e), &solution, params)?;

        let layer = self.layer();
        let mut theta = self.theta.clone();
        theta.weights_mut().fill(T::zero());
        engine.correlate(-T::one(), &e, &solution.u, &mut theta);
        engine.correlate(-self.tau, &solution.r, &found.d, &mut theta);
        let mut a = e;
        engine.adjoint(layer.theta, &found.d, &mut a);
        engine.correlate(-self.tau, &a, &solution.u, &mut theta);
        let tau = (0..a.samples()).map(|s| dot(a.sample(s), solution.r.sample(s))).collect();
        let tau = -engine.ranks().of_samples(tau, 1).iter().sum::<f64>();
        let activation = found.activation.take();
        Ok(FixedPointGradients {
            theta,
            tau: T::of(tau),
            activation,
            loss: squares,
            solution,
            iterations: found.iterations,
        })
    }

    fn errors(
        &self,
        engine: &dyn Engine<T>,
        rule: FixedPointRule<T>,
        (z, e): (&Field<T>, &Field<T>),
        at: &Solution<T>,
        params: FixedPointParams,
    ) -> Result<Errors<T>> {
        let layer = self.layer();
        let functions = self.activation.piecewise();
        let nudged = |mu: T| -> Result<Solution<T>> {
            let (scale, mut moved) = (mu / self.tau, z.clone());
            moved.zip(e, |z, e| z + scale * e);
            self.solve(engine, &moved, Some(&at.u), params)
        };
        // d = (u_below - u_above) / scale, and the potentials of the activation between them.
        let secant = |below: &Solution<T>, above: &Solution<T>, scale: T| {
            let mut d = below.u.clone();
            d.zip(&above.u, |below, above| (below - above) / scale);
            let activation = functions.map(|functions| {
                let add = |s: usize, gradient: &mut PiecewiseGradient<T>| {
                    functions.add_gradients(&alone(&below.v, s), &alone(&above.v, s), gradient);
                };
                let mut gradient = of_samples(engine, functions, d.samples(), add);
                gradient.scale(T::one() / scale);
                gradient
            });
            (d, activation)
        };
        match rule {
            FixedPointRule::Implicit => {
                let smooth = functions.is_some_and(|functions| functions.steepest() < T::one());
                let mut g = at.u.zeros_like();
                if !smooth {
                    engine.analyse(layer.theta, e, &mut g);
                    g.map(|g| -g);
                }
                let limits = (params.adjoint_tolerance, params.adjoint_most);
                let one = |s: usize| {
                    let (v, image) = (alone(&at.v, s), alone(e, s));
                    if smooth {
                        return adjoint::solve_smooth(engine, layer, &v, &image, limits);
                    }
                    adjoint::solve(engine, layer, &v, (&alone(&g, s), &image), limits)
                };
                let found: Vec<_> = (0..e.samples()).into_par_iter().map(one).collect();
                let activation = functions.map(|functions| {
                    let add = |s: usize, gradient: &mut PiecewiseGradient<T>| {
                        functions.add_derivatives(&alone(&at.v, s), &found[s].w, gradient);
                    };
                    of_samples(engine, functions, found.len(), add)
                });
                let iterations = found.iter().map(|one| one.iterations).max().unwrap_or(0);
                Ok(Errors { d: together(found.iter().map(|one| &one.d), &g), activation, iterations })
            }
            FixedPointRule::Lifted { mu } => {
                let above = nudged(mu)?;
                let (d, activation) = secant(at, &above, mu);
                Ok(Errors { d, activation, iterations: above.iterations })
            }
            FixedPointRule::Centred { mu } => {
                let (below, above) = (nudged(-mu)?, nudged(mu)?);
                let (d, activation) = secant(&below, &above, mu + mu);
                Ok(Errors { d, activation, iterations: below.iterations + above.iterations })
            }
        }
    }
}

/// The gradients of the activation, each sample's by itself, summed in the order of the batch.
fn of_samples<T: Real>(
    engine: &dyn Engine<T>,
    functions: &PiecewiseLinear<T>,
    samples: usize,
    add: impl Fn(usize, &mut PiecewiseGradient<T>) + Sync,
) -> PiecewiseGradient<T> {
    let one = |s: usize| {
        let mut gradient = functions.zero_gradient();
        add(s, &mut gradient);
        gradient.knots.into_iter().chain(gradient.slopes).map(T::to_double).collect::<Vec<_>>()
    };
    let own: Vec<Vec<f64>> = (0..samples).into_par_iter().map(one).collect();
    let mut sum = functions.zero_gradient();
    let width = sum.knots.len() + sum.slopes.len();
    let all = engine.ranks().of_samples(own.concat(), width);
    let total = |i: usize| T::of(all.iter().skip(i).step_by(width).sum());
    sum.knots.iter_mut().chain(&mut sum.slopes).enumerate().for_each(|(i, g)| *g = total(i));
    sum
}

/// What goes back through the activation.
struct Errors<T: Real> {
    d: Field<T>,
    activation: Option<PiecewiseGradient<T>>,
    iterations: usize,
}
