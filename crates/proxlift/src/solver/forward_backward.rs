//! Forward-backward, plain (proximal gradient) and inertial (FISTA).
//!
//! P. L. Combettes, V. R. Wajs, "Signal recovery by proximal forward-backward splitting", 2005; A. Beck, M. Teboulle, "A fast
//! iterative shrinkage-thresholding algorithm for linear inverse problems", 2009.

use super::iteration::{Course, Smooth, Until, Watcher, moved, repeat};
use super::params::Inertia;
use crate::{Real, Result, prox::Prox};

/// Minimises `f(x) + g(x)` for a smooth `f`, from the `x` that it is given:
///
/// ```text
/// y_k     = x_k + beta_k (x_k - x_{k-1})
/// x_{k+1} = prox_{tau g}(y_k - tau grad f(y_k))
/// ```
///
/// with `tau = 1 / lipschitz`, for the Lipschitz constant of `grad f` (`||A||^2` for least squares). Plain, every iteration
/// lowers the objective and brings `x` nearer to every solution; with inertia the objective converges like `1/k^2`.
///
/// ```
/// use proxlift::operator::Blur;
/// use proxlift::prox::{LeastSquares, SoftThreshold};
/// use proxlift::solver::{Ended, Inertia, Until, forward_backward};
/// use std::ops::ControlFlow;
/// let blur = Blur::new(&[0.2, 0.6, 0.2], (1, 3), 1, (1, 6))?;
/// let data = LeastSquares::new(blur, vec![0.0, 0.2, 0.6, 0.2, 0.0, 0.0])?; // a blurred dot
/// let mut x = vec![0.0f64; 6];
/// let sparse = SoftThreshold::new(vec![0.01])?;
/// let course = forward_backward(
///     &data, &sparse, &mut x, (1.0, Inertia::Nesterov), &Until::default(), &mut |_| ControlFlow::Continue(()))?;
/// assert!(course.ended == Ended::Settled && x[2] > 0.9 && x[1].abs() < 0.01);
/// # Ok::<(), proxlift::Error>(())
/// ```
/// Fails when the Lipschitz constant is not positive and finite, or the iterates are not finite.
pub fn forward_backward<T: Real>(
    f: &(impl Smooth<T> + ?Sized),
    g: &(impl Prox<T> + ?Sized),
    x: &mut Vec<T>,
    (lipschitz, inertia): (f64, Inertia),
    until: &Until,
    watch: &mut Watcher<'_, T>,
) -> Result<Course> {
    refuse!(!(lipschitz.is_finite() && lipschitz > 0.0) => "the Lipschitz constant is {lipschitz}, but it must be above zero");
    let tau = T::of(1.0 / lipschitz);
    let (mut y, mut gradient, mut t) = (x.clone(), x.clone(), 1.0);
    repeat(until, (x, &mut Vec::new()), watch, |x, _| {
        f.gradient(&y, &mut gradient);
        y.iter_mut().zip(&gradient).for_each(|(y, &g)| *y -= tau * g);
        g.prox_in_place(tau, &mut y); // x_{k+1}
        let change = moved(&y, x);
        let next = inertia.next(t);
        let beta = T::of((t - 1.0) / next);
        t = next;
        for (x, y) in x.iter_mut().zip(&mut y) {
            (*x, *y) = (*y, *y + beta * (*y - *x));
        }
        change
    })
}
