//! The alternating direction method of multipliers, and half-quadratic splitting, which has none.
//!
//! D. Gabay, B. Mercier, "A dual algorithm for the solution of nonlinear variational problems via finite element
//! approximation", 1976; D. Geman, C. Yang, "Nonlinear image recovery with half-quadratic regularization", 1995.

use super::iteration::{Course, Iterate, Until, Watcher, moved, repeat};
use crate::{Error, Real, Result, memory, prox::Prox};

/// Minimises `f(x) + g(x)` with a copy `z` of `x`, from the `x` that it is given:
///
/// ```text
/// x_{k+1} = prox_{f / rho}(z_k - w_k)
/// z_{k+1} = prox_{g / rho}(x_{k+1} + w_k)
/// w_{k+1} = w_k + x_{k+1} - z_{k+1}
/// ```
///
/// for any `rho > 0`. Every iteration lowers `||z - z^||^2 + ||w - w^||^2`; what the watcher sees beside `x` is `z`, then `w`.
///
/// Fails when `rho` is not positive and finite, or the iterates are not finite.
pub fn admm<T: Real>(
    f: &(impl Prox<T> + ?Sized),
    g: &(impl Prox<T> + ?Sized),
    x: &mut Vec<T>,
    rho: f64,
    until: &Until,
    watch: &mut Watcher<'_, T>,
) -> Result<Course> {
    refuse!(!(rho.is_finite() && rho > 0.0) => "rho is {rho}, but it must be above zero");
    let (tau, n) = (T::of(1.0 / rho), x.len());
    let mut both: Vec<T> = x.iter().copied().chain(std::iter::repeat_n(T::zero(), n)).collect();
    let mut next = x.clone();
    repeat(until, (x, &mut both), watch, |x, both| {
        let (z, w) = both.split_at_mut(n);
        x.iter_mut().zip(z.iter().zip(&*w)).for_each(|(x, (&z, &w))| *x = z - w);
        f.prox_in_place(tau, x);
        next.iter_mut().zip(x.iter().zip(&*w)).for_each(|(next, (&x, &w))| *next = x + w);
        g.prox_in_place(tau, &mut next);
        w.iter_mut().zip(x.iter().zip(&next)).for_each(|(w, (&x, &z))| *w += x - z);
        let ((dual, size), (primal, _)) = (moved(&next, z), moved(&next, x));
        z.copy_from_slice(&next);
        (dual + primal, size.max(f64::MIN_POSITIVE))
    })
}

/// A turn of [`half_quadratic`] and [`multipliers`]: moves a field, as the prox of the given step would.
pub type Turn<'a, T> = dyn FnMut(f64, &mut Vec<T>) -> Result<()> + 'a;

/// Minimises `f(x) + g(z) + 1/(2 tau) ||x - z||^2` by turns:
///
/// ```text
/// x_{k+1} = prox_{tau_k f}(z_k)
/// z_{k+1} = prox_{tau_k g}(x_{k+1})
/// ```
///
/// Both are given as functions, which may do something else than a prox: with a denoiser as the second, this is plug-and-play.
/// Starts from the `z` that it is given and goes through all steps `taus`; each lowers the objective while `tau` stays the same
/// and both are proxes. Returns the changes `||z_{k+1} - z_k|| / ||z_{k+1}||`; what the watcher sees is `z`, and beside it `x`.
/// Fails when a step is not positive and finite, a turn does, or the iterates are not finite.
pub fn half_quadratic<T: Real>(
    f: &mut Turn<'_, T>,
    g: &mut Turn<'_, T>,
    z: &mut Vec<T>,
    taus: &[f64],
    watch: &mut Watcher<'_, T>,
) -> Result<Vec<f64>> {
    by_turns(f, g, z, taus, None, watch)
}

/// Minimises `f(x) + g(x)` by turns that remember what they disagree by: [`admm`] with functions for the two proxes and a step of
/// its own for each iteration.
///
/// ```text
/// x_{k+1} = prox_{tau_k f}(z_k - w_k)
/// z_{k+1} = prox_{tau_k g}(x_{k+1} + w_k)
/// w_{k+1} = tau_{k+1} / tau_k (w_k + x_{k+1} - z_{k+1})
/// ```
///
/// `w / tau` is the multiplier, which a change of the step leaves as it is. Arguments and result are those of [`half_quadratic`].
pub fn multipliers<T: Real>(
    f: &mut Turn<'_, T>,
    g: &mut Turn<'_, T>,
    z: &mut Vec<T>,
    taus: &[f64],
    watch: &mut Watcher<'_, T>,
) -> Result<Vec<f64>> {
    let w = memory::zeros(z.len());
    by_turns(f, g, z, taus, Some(w), watch)
}

fn by_turns<T: Real>(
    f: &mut Turn<'_, T>,
    g: &mut Turn<'_, T>,
    z: &mut Vec<T>,
    taus: &[f64],
    mut w: Option<Vec<T>>,
    watch: &mut Watcher<'_, T>,
) -> Result<Vec<f64>> {
    let wrong = taus.iter().find(|tau| !(tau.is_finite() && **tau > 0.0));
    refuse!(wrong.is_some() => "a step is {}, but it must be above zero", wrong.unwrap_or(&0.0));
    let (mut x, mut residuals) = (z.clone(), Vec::new());
    for (k, &tau) in taus.iter().enumerate() {
        x.copy_from_slice(z);
        if let Some(w) = &w {
            x.iter_mut().zip(w).for_each(|(x, &w)| *x -= w);
        }
        f(tau, &mut x)?;
        let before = std::mem::replace(z, x.clone());
        if let Some(w) = &w {
            z.iter_mut().zip(w).for_each(|(z, &w)| *z += w);
        }
        g(tau, z)?;
        if let Some(w) = &mut w {
            let ratio = T::of(taus.get(k + 1).unwrap_or(&tau) / tau);
            for (w, (&x, &z)) in w.iter_mut().zip(x.iter().zip(&*z)) {
                *w = ratio * (*w + x - z);
            }
        }
        let (change, size) = moved(z, &before);
        let residual = (change / size.max(f64::MIN_POSITIVE)).sqrt();
        refuse!(residual.is_nan() => "the iterates were not finite after {} iterations: is the input finite?", k + 1);
        residuals.push(residual);
        if watch(&Iterate { iteration: k + 1, x: z, other: &x, residual }).is_break() {
            return Err(Error::Cancelled);
        }
    }
    Ok(residuals)
}
