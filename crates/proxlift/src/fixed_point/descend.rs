//! Activations that fall somewhere: fixed points of weakly convex functions, by descent in the picture.
//!
//! `u = s(t)` with slopes below 1 is still the slope of a function `g` at `w = (t - u) / tau`; where `s` has the slope `-a`, `g` has the
//! curvature `-tau a / (1 + a)`. So `R = g(L .)` is weakly convex, with a modulus `rho <= tau ||L||^2 a / (1 + a)`, which is below 1
//! whatever `a` is if `tau ||L||^2 <= 1`, and
//!
//! ```text
//! E(x) = 1/2 ||x - z||^2 + g(L x),      grad E(x) = x - z + L* g'(L x)
//! ```
//!
//! is strongly convex, with the modulus `1 - rho >= 1 / (1 + a)`, and smooth, with the constant `1 + tau ||L||^2 p / (1 - p) <= 1 / (1 - p)`.
//! Its minimiser is the fixed point, found by accelerated descent: layers as they are need not approach it where `a` is above 1.

use super::solve::One;
use super::{Acceleration, FixedPoint, FixedPointParams, Momentum};
use crate::network::{Activation, Layer};
use crate::real::{norm_squared, sum2, sum3};
use crate::{Real, Result, engine::Engine, field::Field};

/// Descent with momentum, which starts again where it points uphill. `slope` gives the gradient at a point after so many iterations, and
/// says whether it is small enough; the last point is returned.
pub(super) fn descend<T: Real>(
    start: Vec<T>,
    (step, mut momentum): (T, Momentum<T>),
    mut slope: impl FnMut(usize, &[T], &mut [T]) -> Result<bool>,
) -> Result<Vec<T>> {
    let (mut x, mut y, mut gradient) = (start.clone(), start.clone(), start);
    for iterations in 0.. {
        if slope(iterations, &y, &mut gradient)? {
            break;
        }
        // `gradient` becomes x+, then x is what it was before.
        gradient.iter_mut().zip(&y).for_each(|(g, &y)| *g = y - step * *g);
        let next = &gradient;
        let against = |y: T, next: T, x: T| (y - next).to_double() * (next - x).to_double();
        if sum3(&y, next, &x, against) > 0.0 {
            momentum.restart();
        }
        let beta = momentum.next().unwrap_or(T::zero());
        y.iter_mut().zip(next.iter().zip(&x)).for_each(|(y, (&next, &x))| *y = next + beta * (next - x));
        std::mem::swap(&mut x, &mut gradient);
    }
    Ok(y)
}

/// The momenta for curvatures from `least` to `most`.
pub(super) fn momentum<T: Real>(acceleration: Acceleration, least: f64, most: f64) -> Momentum<T> {
    Momentum::new(acceleration, T::of(1.0 - least / most))
}

impl<T: Real> FixedPoint<T> {
    /// The minimiser of `E` for one sample, from `x = z - L* u`.
    pub(super) fn minimise(
        &self,
        engine: &dyn Engine<T>,
        z: &Field<T>,
        mut u: Field<T>,
        params: FixedPointParams,
    ) -> Result<One<T>> {
        let one = T::one();
        let Some(s) = self.activation.piecewise().filter(|s| s.steepest() < one) else {
            return Err(invalid!("activations that fall somewhere need slopes below 1"));
        };
        let influence = Activation::from(s.influence(self.tau));
        let layer = Layer { activation: &influence, ..self.layer() };
        let (least, step) = ((one - s.flattest()).to_double().recip(), one - s.steepest());
        let momentum = momentum(params.acceleration, least, step.to_double().recip());
        let (mut w, mut r, mut image) = (u.zeros_like(), z.zeros_like(), z.zeros_like());
        engine.residual(layer.theta, &u, z, &mut image);
        let start = image.data().iter().map(|r| -*r).collect();
        let (mut iterations, mut residual) = (0, 0.0);
        let x = descend(start, (step, momentum), |done, y, gradient| {
            image.data_mut().copy_from_slice(y);
            engine.analyse(layer.theta, &image, &mut w);
            engine.activate(layer, &w, &mut u);
            engine.residual(layer.theta, &u, z, &mut r);
            gradient.iter_mut().zip(r.data().iter().zip(y)).for_each(|(g, (&r, &y))| *g = r + y);
            let removed = sum2(y, z.data(), |y, z| (y - z).to_double().powi(2)).sqrt();
            let slope = norm_squared(gradient).sqrt();
            (iterations, residual) = (done, if slope == 0.0 { 0.0 } else { slope / removed });
            refuse!(residual.is_nan() =>
                "the iterates were not finite after {done} iterations: is tau at most 1 / ||L||^2 and the input finite?");
            Ok(residual <= params.tolerance || done >= params.most)
        })?;
        let (tau, mut v) = (self.tau, w);
        v.zip(&u, |w, u| u + tau * w);
        r.data_mut().iter_mut().zip(&x).for_each(|(r, &x)| *r = -x);
        Ok(One { u, v, r, iterations, residual })
    }
}
