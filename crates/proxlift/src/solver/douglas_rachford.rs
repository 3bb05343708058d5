//! Douglas-Rachford.
//!
//! P.-L. Lions, B. Mercier, "Splitting algorithms for the sum of two nonlinear operators", 1979.

use super::iteration::{Course, Until, Watcher, moved, repeat};
use crate::{Real, Result, prox::Prox};

/// Minimises `f(x) + g(x)`, both given by their proxes, from the `x` that it is given:
///
/// ```text
/// x_k     = prox_{tau f}(z_k)
/// z_{k+1} = z_k + prox_{tau g}(2 x_k - z_k) - x_k
/// ```
///
/// for any `tau > 0`. Every iteration brings `z` (what the watcher sees beside `x`) nearer to every fixed point.
///
/// ```
/// use proxlift::prox::{BoxClip, SquaredDistance};
/// use proxlift::solver::{Until, douglas_rachford};
/// use std::ops::ControlFlow;
/// let (near, inside) = (SquaredDistance::new(vec![0.5, 2.0], 1.0)?, BoxClip::symmetric(vec![1.0])?);
/// let mut x = vec![0.0f64; 2];
/// let until = Until { tolerance: 1e-9, most: 200 };
/// douglas_rachford(&near, &inside, &mut x, 1.0, &until, &mut |_| ControlFlow::Continue(()))?;
/// assert!((x[0] - 0.5).abs() < 1e-6 && (x[1] - 1.0).abs() < 1e-6);
/// # Ok::<(), proxlift::Error>(())
/// ```
/// Fails when the step is not positive and finite, or the iterates are not finite.
pub fn douglas_rachford<T: Real>(
    f: &(impl Prox<T> + ?Sized),
    g: &(impl Prox<T> + ?Sized),
    x: &mut Vec<T>,
    tau: f64,
    until: &Until,
    watch: &mut Watcher<'_, T>,
) -> Result<Course> {
    refuse!(!(tau.is_finite() && tau > 0.0) => "the step is {tau}, but it must be above zero");
    let (mut z, mut reflected, tau) = (x.clone(), x.clone(), T::of(tau));
    let course = repeat(until, (x, &mut z), watch, |x, z| {
        f.prox(tau, z, x);
        reflected.iter_mut().zip(x.iter().zip(&*z)).for_each(|(r, (&x, &z))| *r = x + x - z);
        g.prox_in_place(tau, &mut reflected);
        let (change, size) = (moved(&reflected, x).0, moved(z, z).1);
        z.iter_mut().zip(reflected.iter().zip(&*x)).for_each(|(z, (&p, &x))| *z += p - x);
        (change, size.max(f64::MIN_POSITIVE))
    })?;
    f.prox(tau, &z, x);
    Ok(course)
}
