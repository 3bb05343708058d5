//! The distance of `A x` to data.

use super::Prox;
use crate::operator::{LinearOperator, Resolvent};
use crate::real::{dot, norm_squared, sum2};
use crate::{Real, Result, memory};

/// `psi(x) = 1/2 ||A x - y||^2`.
///
/// ```text
/// prox_{tau psi}(v) = (I + tau A* A)^-1 (v + tau A* y)
/// psi*(w)           = 1/2 ||r||^2 + <y, r> where A* r = w and r = A x - y, else +inf
/// ```
///
/// ```
/// use proxlift::operator::Blur;
/// use proxlift::prox::{LeastSquares, Prox};
/// let blur = Blur::new(&[0.25, 0.5, 0.25], (1, 3), 1, (1, 4))?;
/// let data = LeastSquares::new(blur, vec![0.2, 0.4, 0.6, 0.4])?;
/// let mut x = [0.4f64; 4];
/// data.prox_in_place(1e4, &mut x); // the data weigh much: A x is near y
/// assert!(data.value(&x) < 1e-5);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LeastSquares<A, T> {
    operator: A,
    y: Vec<T>,
    /// `A* y`.
    back: Vec<T>,
}

impl<T: Real, A: LinearOperator<T>> LeastSquares<A, T> {
    /// Fails when the data are not as long as what the operator gives.
    pub fn new(operator: A, y: Vec<T>) -> Result<Self> {
        let (range, found) = (operator.range_len(), y.len());
        refuse!(range != found => "the operator gives {range} numbers, but there are {found} data");
        let mut back = memory::zeros(operator.domain_len());
        operator.adjoint(&y, &mut back);
        Ok(Self { operator, y, back })
    }

    /// `A`.
    pub fn operator(&self) -> &A {
        &self.operator
    }

    /// `y`.
    pub fn data(&self) -> &[T] {
        &self.y
    }

    /// `A x - y`.
    fn residual(&self, x: &[T]) -> Vec<T> {
        let mut r: Vec<T> = memory::zeros(self.y.len());
        self.operator.apply(x, &mut r);
        r.iter_mut().zip(&self.y).for_each(|(r, &y)| *r -= y);
        r
    }

    /// `1/2 ||A x - y||^2`.
    pub fn energy(&self, x: &[T]) -> f64 {
        0.5 * norm_squared(&self.residual(x))
    }

    /// `out = A* (A x - y)`.
    pub fn gradient(&self, x: &[T], out: &mut [T]) {
        self.operator.adjoint(&self.residual(x), out);
    }
}

impl<T: Real, A: Resolvent<T> + Send + Sync> Prox<T> for LeastSquares<A, T> {
    fn scale(&mut self, factor: T) {
        self.y.iter_mut().chain(&mut self.back).for_each(|y| *y *= factor);
    }

    fn value(&self, u: &[T]) -> T {
        T::of(self.energy(u))
    }

    /// By proximal points of `psi - <., w>`, which converge fast in the range of `A*`; steps any longer would lose digits.
    fn conjugate_value(&self, w: &[T]) -> T {
        const ROUNDS: usize = 20;
        let tau = T::one() / T::epsilon().sqrt().sqrt();
        let (mut x, mut b) = (memory::zeros::<T>(w.len()), memory::zeros::<T>(w.len()));
        for _ in 0..ROUNDS {
            for (((b, &x), &w), &y) in b.iter_mut().zip(&x).zip(w).zip(&self.back) {
                *b = x + tau * (w + y);
            }
            self.operator.resolve(tau, &b, &mut x);
        }
        let r = self.residual(&x);
        self.operator.adjoint(&r, &mut b);
        let off = sum2(&b, w, |b, w| (b - w).to_double().powi(2));
        let inside = off <= T::epsilon().to_double() * (norm_squared(w) + norm_squared(&self.back));
        if inside { T::of(0.5 * norm_squared(&r) + dot(&self.y, &r)) } else { T::infinity() }
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let b: Vec<T> = v.iter().zip(&self.back).map(|(&v, &y)| v + tau * y).collect();
        self.operator.resolve(tau, &b, v);
    }

    fn pullback(&self, tau: T, _: &[T], g: &[T], out: &mut [T]) {
        self.operator.resolve(tau, g, out);
    }

    /// `tau/2 ||A (u - p)||^2`.
    fn penalty_distance(&self, tau: T, u: &[T], _: &[T], p: &[T]) -> T {
        let apart: Vec<T> = u.iter().zip(p).map(|(&u, &p)| u - p).collect();
        let mut image: Vec<T> = memory::zeros(self.y.len());
        self.operator.apply(&apart, &mut image);
        T::of(0.5 * tau.to_double() * norm_squared(&image))
    }
}
