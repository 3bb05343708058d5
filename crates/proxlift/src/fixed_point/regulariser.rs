//! What a network at its fixed point minimises, on a whole picture.
//!
//! The activation is `s = prox_{tau g*}`, so the fixed point solves
//!
//! ```text
//! x^ = argmin_x  1/2 ||x - z||^2 + R(x),      R(x) = g(L x)
//! ```
//!
//! with a convex `R` whatever the weights are, as slopes of activations lie between 0 and 1. So `z -> x^` is the proximity
//! operator of `R`, and firmly non-expansive: `||x^ - y^||^2 <= <x^ - y^, z - w>` for the results of `z` and `w`. How near
//! an iterate is to `x^` is proven by the [duality gap](crate::solver::DualForwardBackward).

use super::descend::{descend, momentum};
use super::{Acceleration, Conjugate, FixedPoint, Mirrored, Momentum};
use crate::engine::Engine;
use crate::field::Field;
use crate::network::{Activation, Layer};
use crate::operator::LinearOperator;
use crate::prox::PiecewiseLinear;
use crate::real::{dot, norm_squared, sum2};
use crate::solver::{DualInfo, DualStop, StopRule, Watch};
use crate::{Error, Real, Result, memory};

/// `R`, for pictures of one size.
pub struct Regulariser<'e, T: Real> {
    /// `L`.
    pub operator: Mirrored<'e, T>,
    /// `g*`.
    pub conjugate: Conjugate<T>,
    /// A step that inertia allows: `tau ||L||^2 <= 1`.
    pub tau: T,
    /// The prox of `tau g*`.
    activation: Activation<T>,
    /// The least and the largest curvature of `g`, times a bound of `||L||^2`: those of `R`, or beyond them.
    curvature: (f64, f64),
    /// The slope of `g`, where it is weakly convex.
    influence: Option<Activation<T>>,
}

/// What a gradient is computed in ([`Regulariser::room`]).
pub struct Room<T: Real> {
    images: Field<T>,
    w: Field<T>,
    u: Field<T>,
}

impl<T: Real> FixedPoint<T> {
    /// A modulus of weak convexity of `R` on pictures of this height and width: where the activation of feature `j` falls by `-a_j` at most, `g_j` has a
    /// curvature of at least `-k_j` with `k_j = tau a_j / (1 + a_j)`, and `R` one of at least `-||K^(1/2) L||^2` with `K = diag(k)`. 0 where `R` is convex.
    /// Fails as [`FixedPoint::regulariser`] does.
    pub fn modulus(&self, engine: &dyn Engine<T>, size: (usize, usize)) -> Result<f64> {
        let Some(s) = self.activation.piecewise().filter(|s| s.flattest() < T::zero()) else {
            return Ok(0.0);
        };
        let mut weighted = self.theta.clone();
        let taps = weighted.weights().len() / weighted.features();
        let filters = weighted.weights_mut().chunks_exact_mut(taps);
        for (filter, slopes) in filters.zip(s.slopes().chunks_exact(s.pieces() + 1)) {
            let a = slopes.iter().fold(T::zero(), |a, slope| a.max(-*slope));
            let root = (self.tau * a / (T::one() + a)).sqrt();
            filter.iter_mut().for_each(|w| *w *= root);
        }
        Ok(Mirrored::new(engine, weighted, size)?.norm()?.powi(2))
    }

    /// `R` for pictures of this height and width.
    /// Fails when the network has a stride, or an activation that is not learned, or one that may be expansive.
    pub fn regulariser<'e>(
        &self,
        engine: &'e dyn Engine<T>,
        size: (usize, usize),
    ) -> Result<Regulariser<'e, T>> {
        let Some(s) = self.activation.piecewise() else {
            return Err(invalid!("the regulariser is written for clips and for learned activations"));
        };
        refuse!(s.steepest() > T::one() => "a slope of an activation is above 1: the network is no proximity operator");
        let operator = Mirrored::new(engine, self.theta.clone(), size)?;
        let norm = operator.norm()?;
        let tau = if norm > 0.0 { T::of(1.0 / (norm * norm)) } else { self.tau };
        let steepest = s.steepest().to_double();
        let largest = if steepest > 0.0 {
            self.tau.to_double() * steepest / (1.0 - steepest) * norm * norm
        } else {
            0.0
        };
        let curvature = (-self.modulus(engine, size)?, largest);
        if curvature.0 < 0.0 {
            refuse!(curvature.0 <= -1.0 || !curvature.1.is_finite() =>
                "the function is not weakly convex with a modulus below 1, but {:.3}, or it is not smooth", -curvature.0);
            let conjugate = Conjugate::new(s.clone(), self.tau, operator.plane());
            let influence = Some(s.influence(self.tau).into());
            let activation = self.activation.clone();
            return Ok(Regulariser { operator, conjugate, tau: self.tau, activation, curvature, influence });
        }
        let s = s.with_step(tau / self.tau);
        let conjugate = Conjugate::new(s.clone(), tau, operator.plane());
        Ok(Regulariser { operator, conjugate, tau, activation: s.into(), curvature, influence: None })
    }
}

impl<T: Real> Regulariser<'_, T> {
    /// The steepest slope of `prox_{tau g*}`: below 1 where a convex `R` is smooth.
    pub fn steepest(&self) -> T {
        self.activation.steepest()
    }

    /// The prox of `sigma g*`.
    pub(super) fn activation_with(&self, sigma: T) -> Activation<T> {
        match self.activation.piecewise() {
            Some(s) => s.with_step(sigma / self.tau).into(),
            None => self.activation.clone(),
        }
    }

    /// The modulus of weak convexity, `rho`: `R(x) + rho/2 ||x||^2` is convex. 0 where `R` is.
    pub fn weak_convexity(&self) -> f64 {
        -self.curvature.0
    }

    /// A Lipschitz constant of the gradient of `R`; infinite where it has none.
    pub fn smoothness(&self) -> f64 {
        self.curvature.1
    }

    /// Whether every potential has its minimum at zero, so that `R` is not negative.
    pub fn is_bounded_below(&self) -> bool {
        self.activation.piecewise().is_some_and(PiecewiseLinear::keeps_signs)
    }

    /// The gradient of `R`, and `R(x)` where that is asked for, in a [room](Regulariser::room).
    /// Fails where `R` is not weakly convex but convex.
    pub fn gradient(
        &self,
        x: &[T],
        gradient: &mut [T],
        room: &mut Room<T>,
        value: bool,
    ) -> Result<Option<f64>> {
        let Some(influence) = &self.influence else {
            return Err(invalid!("the function is not weakly convex"));
        };
        Ok(self.gradient_with(influence, x, gradient, room, value))
    }

    /// What gradients are computed in: it can serve any number of them.
    pub fn room(&self) -> Room<T> {
        Room { images: self.operator.images(), w: self.operator.features(), u: self.operator.features() }
    }

    /// The gradient, and where it is asked for the value.
    fn gradient_with(
        &self,
        influence: &Activation<T>,
        x: &[T],
        gradient: &mut [T],
        Room { images, w, u }: &mut Room<T>,
        value: bool,
    ) -> Option<f64> {
        let (theta, engine) = self.operator.parts();
        let layer = Layer { theta, synthesis: theta, tau: self.tau, activation: influence };
        self.operator.unfold(x, images);
        engine.analyse(theta, images, w);
        self.operator.clear_around(w.data_mut());
        engine.activate(layer, w, u);
        engine.adjoint(theta, u, images);
        self.operator.fold(images, gradient);
        value.then(|| self.conjugate.sum_conjugate(w.data()))
    }

    /// `prox_R(z)` of a weakly convex function. With the modulus `1 - rho` of what is minimised,
    /// `E(x) - min E <= ||grad E(x)||^2 / (2 (1 - rho))`, which is the gap here.
    fn minimise(
        &self,
        influence: &Activation<T>,
        z: &[T],
        (tolerance, most, every, at_limit): (f64, usize, usize, DualStop),
        watch: &mut Watch<'_>,
    ) -> Result<(Vec<T>, DualInfo)> {
        let (least, largest) = (1.0 + self.curvature.0, 1.0 + self.curvature.1);
        let momentum = momentum(Acceleration::Nesterov, least, largest);
        let (mut room, mut info) = (self.room(), None);
        let x = descend(z.to_vec(), (T::of(largest.recip()), momentum), |iterations, x, gradient| {
            if watch(iterations).is_break() {
                return Err(Error::Cancelled);
            }
            let look = iterations % every == 0 || iterations >= most;
            let penalty = self.gradient_with(influence, x, gradient, &mut room, look);
            gradient.iter_mut().zip(x.iter().zip(z)).for_each(|(g, (&x, &z))| *g += x - z);
            let Some(penalty) = penalty else { return Ok(false) };
            let primal = 0.5 * sum2(x, z, |x, z| (x - z).to_double().powi(2)) + penalty;
            let gap = norm_squared(gradient) / (2.0 * least);
            refuse!(gap.is_nan() || primal.is_nan() =>
                "the iterates were not finite after {iterations} iterations: is the input finite?");
            let reached = gap <= tolerance * primal;
            let stop = if reached { DualStop::GapReached } else { at_limit };
            info = Some(DualInfo { iterations, primal, gap, stop });
            Ok(reached || iterations >= most)
        })?;
        info.map(|info| (x, info)).ok_or_else(|| invalid!("nothing was iterated"))
    }

    /// `R(x)`.
    pub fn value(&self, x: &[T]) -> f64 {
        let mut features: Vec<T> = memory::zeros(self.operator.range_len());
        self.operator.apply(x, &mut features);
        self.conjugate.sum_conjugate(&features)
    }

    /// `prox_R(z)`, as near as the rule asks, by dual forward-backward with [momentum](Momentum); `watch` may end it.
    /// Fails when the length does not fit, or the iterates are not finite.
    pub fn prox(&self, z: &[T], stop: StopRule, watch: &mut Watch<'_>) -> Result<(Vec<T>, DualInfo)> {
        let (operator, pixels) = (&self.operator, self.operator.domain_len());
        refuse!(z.len() != pixels => "a field has {} entries, but the operator needs {pixels}", z.len());
        let (tolerance, most, every, at_limit) = match stop {
            StopRule::Gap { tolerance, max_iterations, check_every } => {
                (tolerance, max_iterations, check_every.max(1), DualStop::IterationLimit)
            }
            StopRule::Iterations(most) => (-1.0, most, most.max(1), DualStop::IterationsDone),
        };
        if let Some(influence) = &self.influence {
            return self.minimise(influence, z, (tolerance, most, every, at_limit), watch);
        }
        let (theta, engine) = operator.parts();
        let layer = Layer { theta, synthesis: theta, tau: self.tau, activation: &self.activation };
        let (mut images, mut u, mut y, mut w) =
            (operator.images(), operator.features(), operator.features(), operator.features());
        let mut x: Vec<T> = memory::zeros(pixels);
        let mut momentum = Momentum::new(Acceleration::Nesterov, self.activation.steepest());
        let (mut iterations, mut before) = (0, f64::INFINITY);
        loop {
            let betas: Vec<T> = momentum.by_ref().take(every.min(most - iterations)).collect();
            for &beta in &betas {
                if watch(iterations).is_break() {
                    return Err(Error::Cancelled);
                }
                engine.adjoint(theta, &y, &mut images);
                operator.fold(&images, &mut x);
                x.iter_mut().zip(z).for_each(|(x, &z)| *x -= z);
                operator.unfold(&x, &mut images);
                engine.advance(layer, &images, beta, &mut u, &mut y);
                operator.clear_around(u.data_mut());
                operator.clear_around(y.data_mut());
                iterations += 1;
            }
            engine.adjoint(theta, &u, &mut images);
            operator.fold(&images, &mut x);
            x.iter_mut().zip(z).for_each(|(x, &z)| *x = z - *x);
            operator.unfold(&x, &mut images);
            engine.analyse(theta, &images, &mut w);
            operator.clear_around(w.data_mut());
            let penalty = self.conjugate.sum_conjugate(w.data());
            let gap = penalty + self.conjugate.sum(u.data()) - dot(w.data(), u.data());
            let primal = 0.5 * sum2(&x, z, |x, z| (x - z).to_double().powi(2)) + penalty;
            refuse!(gap.is_nan() || primal.is_nan() =>
                "the iterates were not finite after {iterations} iterations: is the input finite?");
            let info = DualInfo { iterations, primal, gap: gap.max(0.0), stop: DualStop::GapReached };
            if info.gap <= tolerance * primal && info.gap.is_finite() {
                return Ok((x, info));
            }
            if iterations >= most {
                return Ok((x, DualInfo { stop: at_limit, ..info }));
            }
            if info.gap > before && !momentum.is_bounded() {
                momentum.restart();
                y.copy_from(&u);
            }
            before = info.gap;
        }
    }
}
