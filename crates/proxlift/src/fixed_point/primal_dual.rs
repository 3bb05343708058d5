//! The primal-dual method with a learned regulariser: that of [`condat_vu`](crate::solver::condat_vu) on the features as
//! engines keep them, in place, so that an iteration is one pass of the network forth and back.

use super::Regulariser;
use crate::field::Field;
use crate::network::{Activation, Layer};
use crate::operator::LinearOperator;
use crate::prox::Prox;
use crate::real::{dot, norm_squared, sum2};
use crate::solver::PrimalDualSteps;
use crate::{Real, Result, memory};

/// How far beyond a step the iterates go: any factor below 2 converges.
const RELAXED: f64 = 1.8;

/// Minimises `f(x) + R(x)` for `f` given by its prox:
///
/// ```text
/// x~ = prox_{tau f}(x - tau L* u),             x <- x + rho (x~ - x)
/// u~ = prox_{sigma g*}(u + sigma L (2 x~ - x)),   u <- u + rho (u~ - u)
/// ```
///
/// with `tau sigma ||L||^2 = 1` and `rho < 2`: every iteration brings `(x, u)` nearer to every solution in the norm of
/// `||x||^2 / tau - 2 <L x, u> + ||u||^2 / sigma`.
pub struct PrimalDual<'r, 'e, T: Real> {
    regulariser: &'r Regulariser<'e, T>,
    steps: PrimalDualSteps,
    /// The prox of `sigma g*`.
    activation: Activation<T>,
    /// `x` and `u`.
    x: Vec<T>,
    u: Field<T>,
    /// `x~` and `u~`.
    nearer: Vec<T>,
    found: Field<T>,
    images: Field<T>,
}

impl<'r, 'e, T: Real> PrimalDual<'r, 'e, T> {
    /// From a picture, with the step `sigma = balance tau`.
    /// Fails when it has another length, or the balance is not above zero.
    pub fn new(regulariser: &'r Regulariser<'e, T>, start: &[T], balance: f64) -> Result<Self> {
        let operator = &regulariser.operator;
        let (pixels, found) = (operator.domain_len(), start.len());
        refuse!(found != pixels => "a field has {found} entries, but the operator needs {pixels}");
        refuse!(!(balance.is_finite() && balance > 0.0) => "the balance of the steps is {balance}, but it must be above zero");
        let square = regulariser.tau.to_double();
        let steps = PrimalDualSteps::for_norms(0.0, square.powf(-0.5), balance);
        let activation = regulariser.activation_with(T::of(steps.sigma));
        let (images, u) = (operator.images(), operator.features());
        let found = u.clone();
        Ok(Self {
            regulariser,
            steps,
            activation,
            x: start.to_vec(),
            u,
            nearer: start.to_vec(),
            found,
            images,
        })
    }

    /// The picture `x~`, the last that the prox of `f` gave.
    pub fn picture(&self) -> &[T] {
        &self.nearer
    }

    /// One iteration; how far it moves `x`, relative to its norm.
    pub fn advance(&mut self, f: &(impl Prox<T> + ?Sized)) -> f64 {
        let (operator, rho) = (&self.regulariser.operator, T::of(RELAXED));
        let ((theta, engine), tau) = (operator.parts(), T::of(self.steps.tau));
        engine.adjoint(theta, &self.u, &mut self.images);
        operator.fold(&self.images, &mut self.nearer);
        self.nearer.iter_mut().zip(&self.x).for_each(|(to, &x)| *to = x - tau * *to);
        f.prox_in_place(tau, &mut self.nearer);
        let moved = sum2(&self.nearer, &self.x, |a, b| (a - b).to_double().powi(2));
        let share = if moved == 0.0 { 0.0 } else { (moved / norm_squared(&self.nearer)).sqrt() };
        // x - 2 x~, whose features count against u; then the next x.
        for (x, &near) in self.x.iter_mut().zip(&self.nearer) {
            *x -= near + near;
        }
        operator.unfold(&self.x, &mut self.images);
        for (x, &near) in self.x.iter_mut().zip(&self.nearer) {
            let before = *x + near + near;
            *x = before + rho * (near - before);
        }
        let sigma = T::of(self.steps.sigma);
        let layer = Layer { theta, synthesis: theta, tau: sigma, activation: &self.activation };
        self.found.copy_from(&self.u);
        engine.advance(layer, &self.images, rho - T::one(), &mut self.found, &mut self.u);
        operator.clear_around(self.found.data_mut());
        operator.clear_around(self.u.data_mut());
        share
    }

    /// `R(x~)`, and at `(x~, u~)` the two parts of the gap: `g(L x~) + g*(u~) - <L x~, u~>`, and `L* u~`, which at the optimum is
    /// the slope of `f` with another sign.
    pub fn look(&mut self) -> (f64, f64, Vec<T>) {
        let operator = &self.regulariser.operator;
        let ((theta, engine), conjugate) = (operator.parts(), &self.regulariser.conjugate);
        let mut features = operator.features();
        operator.unfold(&self.nearer, &mut self.images);
        engine.analyse(theta, &self.images, &mut features);
        operator.clear_around(features.data_mut());
        let penalty = conjugate.sum_conjugate(features.data());
        let fenchel = penalty + conjugate.sum(self.found.data()) - dot(features.data(), self.found.data());
        drop(features);
        let mut back = memory::zeros(self.nearer.len());
        engine.adjoint(theta, &self.found, &mut self.images);
        operator.fold(&self.images, &mut back);
        (penalty, fenchel.max(0.0), back)
    }
}
