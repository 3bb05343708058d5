//! Losses: Bregman distances between what a network gives and what it should.
//!
//! With a convex `h` of its output `o`, `l(o, x) = h(o) + h*(x) - <o, x>`: zero where `x = grad h(o)`, and its gradient by `o`
//! is `grad h(o) - x`.

use super::Rows;
use crate::engine::cpu::dense::{self, vectorised};
use crate::real::{any, dot, exp, sum2};
use crate::{Real, Result, named::named};
use rayon::prelude::*;

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
    #[inline]
    pub fn value<T: Real>(self, output: &[T], x: &[T]) -> f64 {
        match self {
            Self::Squared => {
                0.5 * sum2(output, x, |o, x| {
                    let away = o.to_double() - x.to_double();
                    away * away
                })
            }
            Self::Logistic => vectorised(
                dense::level(),
                #[inline(always)]
                || {
                    let linear =
                        sum2(output, x, |o, x| o.to_double().max(0.0) - x.to_double() * o.to_double());
                    linear + soft_parts(output)
                },
            ),
            Self::Softmax => {
                let most = output.iter().fold(f64::NEG_INFINITY, |most, o| most.max(o.to_double()));
                let sum: f64 = output.iter().map(|o| (o.to_double() - most).exp()).sum();
                most + sum.ln() - dot(output, x)
            }
        }
    }

    /// The loss of each sample of a batch.
    pub fn values<T: Real>(self, output: &Rows<T>, x: &Rows<T>) -> Vec<f64> {
        output.par_rows().zip(x.par_rows()).map(|(output, x)| self.value(output, x)).collect()
    }

    /// `out = grad h(o) - x`, for a batch.
    pub fn gradient<T: Real>(self, output: &Rows<T>, x: &Rows<T>, out: &mut Rows<T>) {
        let rows = out.par_rows_mut().zip(output.par_rows()).zip(x.par_rows());
        rows.for_each(|((out, output), x)| self.gradient_of_sample(output, x, out));
    }

    /// The same for a sample.
    #[inline(always)]
    pub(super) fn gradient_of_sample<T: Real>(self, output: &[T], x: &[T], out: &mut [T]) {
        let triples = out.iter_mut().zip(output).zip(x);
        match self {
            Self::Squared => triples.for_each(|((out, &o), &x)| *out = o - x),
            Self::Logistic => {
                triples.for_each(|((out, o), &x)| *out = T::of(1.0 / (1.0 + exp(-o.to_double()))) - x);
            }
            Self::Softmax => {
                out.copy_from_slice(output);
                softmax(out);
                out.iter_mut().zip(x).for_each(|(out, &x)| *out -= x);
            }
        }
    }

    /// `mu (grad h(o) - x)`, for a batch: the error of the last affine map.
    pub(super) fn error<T: Real>(self, output: &Rows<T>, x: &Rows<T>, mu: T) -> Rows<T> {
        let mut d = output.zeros_like();
        self.gradient(output, x, &mut d);
        d.data_mut().iter_mut().for_each(|d| *d *= mu);
        d
    }

    /// Refuses what no sample should become.
    pub fn check<T: Real>(self, x: &Rows<T>) -> Result<()> {
        refuse!(!self.allows(x.data(), x.width()) => "{}", match self {
            Self::Squared => "a target is not a finite number",
            Self::Logistic => "a target of the logistic loss is not between 0 and 1",
            Self::Softmax =>
                "a target of the softmax loss is no probability: its numbers must not be negative and sum to 1",
        });
        Ok(())
    }

    /// Whether samples of so many numbers, one after the other, are what samples can become.
    pub(super) fn allows<T: Real>(self, x: &[T], width: usize) -> bool {
        let (least, most) = (T::of(-1e-6), T::of(1.0 + 1e-6));
        let bad = |v: T| !(v >= least && v <= most);
        let sum = |row: &[T]| row.iter().map(|v| v.to_double()).sum::<f64>();
        match self {
            Self::Squared => !any(x, |v| !v.is_finite()),
            Self::Logistic => !any(x, bad),
            Self::Softmax => !any(x, bad) && x.chunks(width).all(|row| (sum(row) - 1.0).abs() <= 1e-4),
        }
    }
}

/// `sum log(1 + exp -|o|)`: the logarithm of products that are too short to overflow.
#[inline(always)]
fn soft_parts<T: Real>(output: &[T]) -> f64 {
    const LANES: usize = 8;
    let part = |some: &[T]| {
        let mut products = [1.0; LANES];
        for some in some.chunks(LANES) {
            products
                .iter_mut()
                .zip(some)
                .for_each(|(product, o)| *product *= 1.0 + exp(-o.to_double().abs()));
        }
        products.map(f64::ln).iter().sum::<f64>()
    };
    output.chunks(512 * LANES).map(part).sum()
}

/// `exp v / sum exp v`, in place.
pub(crate) fn softmax<T: Real>(v: &mut [T]) {
    let most = v.iter().copied().fold(T::neg_infinity(), T::max);
    v.iter_mut().for_each(|v| *v = (*v - most).exp());
    let sum: T = v.iter().copied().sum();
    v.iter_mut().for_each(|v| *v /= sum);
}

/// Classes as unit vectors. Fails when a label is not one of the classes.
pub fn one_hot<T: Real>(labels: &[usize], classes: usize) -> Result<Rows<T>> {
    refuse!(classes == 0 => "labels are given, but there are no classes");
    let mut rows = Rows::zeros(labels.len(), classes);
    for (i, &label) in labels.iter().enumerate() {
        refuse!(label >= classes => "the label of sample {i} is {label}, but there are {classes} classes, from 0 on");
        rows.data_mut()[i * classes + label] = T::one();
    }
    Ok(rows)
}
