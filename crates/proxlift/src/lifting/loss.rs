//! Losses: Bregman distances between what a network gives and what it should.
//!
//! With a convex `h` of its output `o`, `l(o, x) = h(o) + h*(x) - <o, x>`: zero where `x = grad h(o)`, and its gradient by `o`
//! is `grad h(o) - x`.

use super::Rows;
use crate::{Real, Result, named::named};

named! {
    /// A loss.
    pub enum Loss ("loss") {
        /// `1/2 ||o - x||^2`: `h = 1/2 ||.||^2`.
        Squared = "squared",
        /// `sum log(1 + exp o) - x o` for `x` in `[0, 1]`: `h` is the sum of soft positive parts.
        Logistic = "logistic",
        /// `log sum exp o - <x, o>` for `x` in the simplex, such as a class as a unit vector: cross-entropy after softmax. The
        /// entropy of `x`, which does not depend on `o`, is left out.
        Softmax = "softmax",
    }
}

impl Loss {
    /// The loss of a sample.
    pub fn value<T: Real>(self, output: &[T], x: &[T]) -> f64 {
        let pairs = output.iter().zip(x).map(|(o, x)| (o.to_double(), x.to_double()));
        match self {
            Self::Squared => 0.5 * pairs.map(|(o, x)| (o - x).powi(2)).sum::<f64>(),
            Self::Logistic => pairs.map(|(o, x)| o.max(0.0) + (-o.abs()).exp().ln_1p() - x * o).sum(),
            Self::Softmax => {
                let most = output.iter().fold(f64::NEG_INFINITY, |most, o| most.max(o.to_double()));
                let sum: f64 = output.iter().map(|o| (o.to_double() - most).exp()).sum();
                most + sum.ln() - pairs.map(|(o, x)| o * x).sum::<f64>()
            }
        }
    }

    /// `out = grad h(o) - x`, for a batch.
    pub fn gradient<T: Real>(self, output: &Rows<T>, x: &Rows<T>, out: &mut Rows<T>) {
        let width = output.width();
        out.data_mut().copy_from_slice(output.data());
        match self {
            Self::Squared => {}
            Self::Logistic => {
                out.data_mut().iter_mut().for_each(|o| *o = T::of(1.0 / (1.0 + (-o.to_double()).exp())));
            }
            Self::Softmax => out.data_mut().chunks_exact_mut(width).for_each(softmax),
        }
        out.zip(x, |o, x| o - x);
    }

    /// Refuses what no sample should become.
    pub fn check<T: Real>(self, x: &Rows<T>) -> Result<()> {
        let bad = |v: &T| !(v.to_double() >= -1e-6 && v.to_double() <= 1.0 + 1e-6);
        match self {
            Self::Squared => {
                refuse!(x.data().iter().any(|v| !v.is_finite()) => "a target is not a finite number")
            }
            Self::Logistic => {
                refuse!(x.data().iter().any(bad) => "a target of the logistic loss is not between 0 and 1");
            }
            Self::Softmax => {
                let sum = |row: &[T]| row.iter().map(|v| v.to_double()).sum::<f64>();
                refuse!(x.data().iter().any(bad) || x.rows().any(|row| (sum(row) - 1.0).abs() > 1e-4) =>
                    "a target of the softmax loss is no probability: its numbers must not be negative and sum to 1");
            }
        }
        Ok(())
    }
}

/// `exp v / sum exp v`, in place.
pub(crate) fn softmax<T: Real>(v: &mut [T]) {
    let most = v.iter().copied().fold(T::neg_infinity(), T::max);
    v.iter_mut().for_each(|v| *v = (*v - most).exp());
    let sum: T = v.iter().copied().sum();
    v.iter_mut().for_each(|v| *v /= sum);
}

/// Classes as unit vectors. Fails when a label is no class.
pub fn one_hot<T: Real>(labels: &[usize], classes: usize) -> Result<Rows<T>> {
    let mut rows = Rows::zeros(labels.len(), classes);
    for (i, &label) in labels.iter().enumerate() {
        refuse!(label >= classes => "the label of sample {i} is {label}, but there are {classes} classes, from 0 on");
        rows.data_mut()[i * classes + label] = T::one();
    }
    Ok(rows)
}
