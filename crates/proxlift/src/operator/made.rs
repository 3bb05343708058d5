//! Operators made of others, or of two functions.

use super::LinearOperator;
use crate::{Real, Result, memory};

/// `A B`: first `B`, then `A`.
#[derive(Clone, Debug)]
pub struct Composed<A, B> {
    after: A,
    first: B,
}

impl<A, B> Composed<A, B> {
    /// Fails when `A` does not take what `B` gives.
    pub fn new<T: Real>(after: A, first: B) -> Result<Self>
    where
        A: LinearOperator<T>,
        B: LinearOperator<T>,
    {
        let (takes, given) = (after.domain_len(), first.range_len());
        refuse!(takes != given => "an operator on {takes} numbers cannot follow one that gives {given}");
        Ok(Self { after, first })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for Composed<A, B> {
    fn domain_len(&self) -> usize {
        self.first.domain_len()
    }

    fn range_len(&self) -> usize {
        self.after.range_len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let mut between: Vec<T> = memory::zeros(self.first.range_len());
        self.first.apply(x, &mut between);
        self.after.apply(&between, y);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        let mut between: Vec<T> = memory::zeros(self.first.range_len());
        self.after.adjoint(y, &mut between);
        self.first.adjoint(&between, x);
    }
}

/// `x -> (A x, B x)`, the one after the other: the operator of a sum of two penalties.
#[derive(Clone, Debug)]
pub struct Stacked<A, B> {
    upper: A,
    lower: B,
}

impl<A, B> Stacked<A, B> {
    /// Fails when the two take fields of different sizes.
    pub fn new<T: Real>(upper: A, lower: B) -> Result<Self>
    where
        A: LinearOperator<T>,
        B: LinearOperator<T>,
    {
        let (a, b) = (upper.domain_len(), lower.domain_len());
        refuse!(a != b => "operators on {a} and on {b} numbers cannot be stacked");
        Ok(Self { upper, lower })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for Stacked<A, B> {
    fn domain_len(&self) -> usize {
        self.upper.domain_len()
    }

    fn range_len(&self) -> usize {
        self.upper.range_len() + self.lower.range_len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let (upper, lower) = y.split_at_mut(self.upper.range_len());
        self.upper.apply(x, upper);
        self.lower.apply(x, lower);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        let (upper, lower) = y.split_at(self.upper.range_len());
        let mut other: Vec<T> = memory::zeros(x.len());
        self.upper.adjoint(upper, x);
        self.lower.adjoint(lower, &mut other);
        x.iter_mut().zip(&other).for_each(|(x, &other)| *x += other);
    }
}

/// An operator of one's own, by two functions that write into their second argument.
///
/// ```
/// use proxlift::laws::adjoint_mismatch;
/// use proxlift::operator::Functions;
/// let sum = Functions::new((3, 1), |x: &[f64], y| y[0] = x.iter().sum(), |y: &[f64], x| x.fill(y[0]));
/// assert!(adjoint_mismatch(&sum, 1) < 1e-14);
/// ```
#[derive(Clone, Debug)]
pub struct Functions<F, G> {
    lengths: (usize, usize),
    apply: F,
    adjoint: G,
}

impl<F, G> Functions<F, G> {
    /// From fields of the first length to fields of the second.
    pub fn new<T: Real>(lengths: (usize, usize), apply: F, adjoint: G) -> Self
    where
        F: Fn(&[T], &mut [T]),
        G: Fn(&[T], &mut [T]),
    {
        Self { lengths, apply, adjoint }
    }
}

impl<T: Real, F: Fn(&[T], &mut [T]), G: Fn(&[T], &mut [T])> LinearOperator<T> for Functions<F, G> {
    fn domain_len(&self) -> usize {
        self.lengths.0
    }

    fn range_len(&self) -> usize {
        self.lengths.1
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        (self.apply)(x, y);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        (self.adjoint)(y, x);
    }
}

/// The operator that a reference or a box leads to.
macro_rules! through {
    ($($pointer:ty),+) => {$(
        impl<T: Real, A: LinearOperator<T> + ?Sized> LinearOperator<T> for $pointer {
            fn domain_len(&self) -> usize {
                (**self).domain_len()
            }
            fn range_len(&self) -> usize {
                (**self).range_len()
            }
            fn apply(&self, x: &[T], y: &mut [T]) {
                (**self).apply(x, y);
            }
            fn adjoint(&self, y: &[T], x: &mut [T]) {
                (**self).adjoint(y, x);
            }
        }
    )+};
}

through!(&A, Box<A>, std::sync::Arc<A>);
