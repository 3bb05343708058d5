//! What is known of an unknown input: convex terms `R`, given by their value and their backward step.

use crate::lifting::Rows;
use crate::operator::{FiniteDifferences, LinearOperator};
use crate::prox::{BoxClip, L2Ball, Prox};
use crate::solver::{Inertia, StopRule, TotalVariation, TvParams, total_variation};
use crate::{Real, Result};

/// A convex term `R(z)` of every sample.
///
/// Every [`Prox`] is one, as [`ByProx`]; [`Near`] and [`Variation`] are others.
pub trait Regulariser<T: Real>: Send + Sync {
    /// Refuses batches that it is not for.
    fn check(&self, samples: usize, width: usize) -> Result<()>;

    /// `R(z)` of sample number `sample`.
    fn value(&self, sample: usize, z: &[T]) -> f64;

    /// `z <- argmin_w 1/2 ||w - z||^2 + tau R(w)`, for `tau > 0`.
    fn backward(&self, sample: usize, tau: T, z: &mut [T]);
}

/// A penalty with a [`Prox`]: with [`SoftThreshold`](crate::prox::SoftThreshold) the 1-norm, with [`BoxClip`] bounds, with
/// [`Identity`](crate::prox::Identity) nothing at all.
#[derive(Clone, Debug, PartialEq)]
pub struct ByProx<P>(
    /// The penalty.
    pub P,
);

impl<T: Real, P: Prox<T>> Regulariser<T> for ByProx<P> {
    fn check(&self, _: usize, width: usize) -> Result<()> {
        self.0.validate()?;
        let planes = self.0.planes().unwrap_or(1);
        refuse!(!width.is_multiple_of(planes) =>
            "inputs of {width} numbers are not {planes} planes for their regulariser");
        Ok(())
    }

    fn value(&self, _: usize, z: &[T]) -> f64 {
        self.0.value(z).to_double()
    }

    fn backward(&self, _: usize, tau: T, z: &mut [T]) {
        self.0.prox_in_place(tau, z);
    }
}

/// `1/2 ||z - centre||^2`, a centre for each sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Near<T>(
    /// The centres.
    pub Rows<T>,
);

impl<T: Real> Regulariser<T> for Near<T> {
    fn check(&self, samples: usize, width: usize) -> Result<()> {
        let (given, wide) = (self.0.samples(), self.0.width());
        refuse!((given, wide) != (samples, width) =>
            "{given} centres of {wide} numbers are given for {samples} inputs of {width}");
        Ok(())
    }

    fn value(&self, sample: usize, z: &[T]) -> f64 {
        0.5 * z.iter().zip(self.0.row(sample)).map(|(z, c)| (*z - *c).to_double().powi(2)).sum::<f64>()
    }

    fn backward(&self, sample: usize, tau: T, z: &mut [T]) {
        z.iter_mut().zip(self.0.row(sample)).for_each(|(z, &c)| *z = (*z + tau * c) / (T::one() + tau));
    }
}

/// Total variation of images; its backward step is the [solver](total_variation)'s, to a small gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    differences: FiniteDifferences,
    size: (usize, usize, usize),
    kind: TotalVariation,
}

/// What a backward step is solved to.
const SOLVED: TvParams = TvParams {
    inertia: Inertia::ChambolleDossal { a: 4.0 },
    stop: StopRule::Gap { tolerance: 1e-5, max_iterations: 300, check_every: 10 },
};

impl Variation {
    /// For images of so many channels, rows and columns. Fails when there is none of one of them.
    pub fn new(size: (usize, usize, usize), kind: TotalVariation) -> Result<Self> {
        Ok(Self { differences: FiniteDifferences::new(size.0, size.1, size.2)?, size, kind })
    }
}

impl<T: Real> Regulariser<T> for Variation {
    fn check(&self, _: usize, width: usize) -> Result<()> {
        let (c, h, w) = self.size;
        refuse!(width != c * h * w =>
            "inputs of {width} numbers are no images of {c} channels and {h} x {w} pixels for their total variation");
        Ok(())
    }

    fn value(&self, _: usize, z: &[T]) -> f64 {
        let mut w = vec![T::zero(); LinearOperator::<T>::range_len(&self.differences)];
        self.differences.apply(z, &mut w);
        let planes = 2 * self.size.0;
        // The conjugate of the indicator of a ball is the norm that is dual to it.
        let norm = match self.kind {
            TotalVariation::Anisotropic => BoxClip::symmetric(vec![T::one()]).map(|p| p.conjugate_value(&w)),
            TotalVariation::Isotropic => {
                L2Ball::new(planes, 2, vec![T::one()]).map(|p| p.conjugate_value(&w))
            }
            TotalVariation::Vectorial => {
                L2Ball::new(planes, planes, vec![T::one()]).map(|p| p.conjugate_value(&w))
            }
        };
        norm.expect("a ball of radius 1").to_double()
    }

    fn backward(&self, _: usize, tau: T, z: &mut [T]) {
        let (c, h, w) = self.size;
        // Refused only where z is not finite: then it stays so, and whoever asks refuses the step.
        if let Ok((smooth, _)) = total_variation(z, c, h, w, tau, self.kind, &SOLVED) {
            z.copy_from_slice(&smooth);
        }
    }
}
