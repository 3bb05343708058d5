//! The conjugate of a function whose prox is known.

use super::Prox;
use crate::{Real, Result};

/// `psi*`, from `psi`, by Moreau's identity: `prox_{tau psi*}(v) = v - tau prox_{psi / tau}(v / tau)`.
///
/// ```
/// use proxlift::prox::{BoxClip, Conjugated, Prox};
/// // The conjugate of the indicator of [-0.5, 0.5] is 0.5 |.|, whose prox is the soft threshold.
/// let absolute = Conjugated(BoxClip::symmetric(vec![0.5f64])?);
/// let mut v = [2.0, -0.3];
/// absolute.prox_in_place(1.0, &mut v);
/// assert_eq!(v, [1.5, 0.0]);
/// assert_eq!(absolute.value(&[2.0, -0.3]), 1.15);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Conjugated<P>(pub P);

impl<T: Real, P: Prox<T>> Prox<T> for Conjugated<P> {
    fn validate(&self) -> Result<()> {
        self.0.validate()
    }

    fn planes(&self) -> Option<usize> {
        self.0.planes()
    }

    fn scale(&mut self, factor: T) {
        self.0.scale(factor);
    }

    fn value(&self, u: &[T]) -> T {
        self.0.conjugate_value(u)
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        self.0.value(w)
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let mut inner: Vec<T> = v.iter().map(|&v| v / tau).collect();
        self.0.prox_in_place(T::one() / tau, &mut inner);
        v.iter_mut().zip(inner).for_each(|(v, p)| *v -= tau * p);
    }

    fn prox_conjugate(&self, tau: T, v: &[T], out: &mut [T]) {
        self.0.prox(tau, v, out);
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        let inner: Vec<T> = v.iter().map(|&v| v / tau).collect();
        self.0.pullback(T::one() / tau, &inner, g, out);
        out.iter_mut().zip(g).for_each(|(out, &g)| *out = g - *out);
    }
}
