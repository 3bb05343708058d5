//! The likelihood of a picture: how far `A x` is from what was seen, and the step that brings it nearer.

use super::forward::{Forward, Shared};
use crate::operator::LinearOperator;
use crate::prox::{KullbackLeibler, LeastSquares, Prox};
use crate::{Result, memory};

/// The noise of what was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Likelihood {
    /// White and Gaussian, of this standard deviation; none where it is estimated.
    Gaussian {
        /// Where white is 1.
        sigma: Option<f64>,
    },
    /// Counts: `y = gain Poisson(A x / gain)`.
    Poisson {
        /// What one count adds, where white is 1.
        gain: f64,
    },
}

/// `-log p(y | x)`, up to a constant.
pub(super) enum DataTerm {
    Gaussian { fit: LeastSquares<Shared, f32>, weight: f64 },
    Poisson(Counted),
}

impl DataTerm {
    pub fn gaussian(forward: &Forward, y: Vec<f32>, sigma: f64) -> Result<Self> {
        let fit = LeastSquares::new(forward.operator.clone(), y)?;
        Ok(Self::Gaussian { fit, weight: 1.0 / (sigma * sigma) })
    }

    pub fn poisson(forward: &Forward, y: Vec<f32>, gain: f64) -> Result<Self> {
        refuse!(!(gain.is_finite() && gain > 0.0) => "the gain is {gain}, but it must be above zero");
        let y: Vec<f32> = y.into_iter().map(|y| y.max(0.0)).collect();
        let mean = y.iter().map(|y| f64::from(*y)).sum::<f64>() / y.len() as f64;
        let operator = forward.operator.clone();
        // The curvature of the divergence where counts are as most are.
        let rho = 1.0 / (gain * mean.max(gain));
        Ok(Self::Poisson(Counted { operator, counts: KullbackLeibler::new(y, (1.0 / gain) as f32)?, rho }))
    }

    /// The noise where counts are as most are; that of Gaussian noise.
    pub fn usual_sigma(&self) -> f64 {
        match self {
            Self::Gaussian { weight, .. } => weight.powf(-0.5),
            Self::Poisson(counted) => counted.rho.powf(-0.5),
        }
    }

    pub fn value(&self, x: &[f32]) -> f64 {
        match self {
            Self::Gaussian { fit, weight } => weight * fit.energy(x),
            Self::Poisson(counted) => counted.value(x),
        }
    }

    /// `x <- prox_{tau f}(x)`.
    pub fn prox(&self, tau: f64, x: &mut [f32]) {
        match self {
            Self::Gaussian { fit, weight } => fit.prox_in_place((tau * weight) as f32, x),
            Self::Poisson(counted) => counted.prox(tau, x),
        }
    }
}

/// `h(A x)` for a divergence `h`; its prox by the method of multipliers, with `w` in the place of `A x`.
pub(super) struct Counted {
    operator: Shared,
    counts: KullbackLeibler<f32>,
    rho: f64,
}

/// Iterations of a prox: what they leave is little beside what the denoiser changes.
const ROUNDS: usize = 12;

impl Counted {
    fn value(&self, x: &[f32]) -> f64 {
        let mut image: Vec<f32> = memory::zeros(self.operator.range_len());
        self.operator.apply(x, &mut image);
        // Where the estimate is below zero, its likelihood is that of next to nothing.
        image.iter_mut().for_each(|v| *v = v.max(1e-6));
        f64::from(self.counts.value(&image))
    }

    fn prox(&self, tau: f64, x: &mut [f32]) {
        let (v, t) = (x.to_vec(), (tau * self.rho) as f32);
        let mut image: Vec<f32> = memory::zeros(self.operator.range_len());
        self.operator.apply(x, &mut image);
        let (mut w, mut d) = (image.clone(), memory::zeros::<f32>(image.len()));
        for _ in 0..ROUNDS {
            w.iter_mut().zip(image.iter().zip(&d)).for_each(|(w, (a, d))| *w = a + d);
            self.counts.prox_in_place((1.0 / self.rho) as f32, &mut w);
            let aim: Vec<f32> = w.iter().zip(&d).map(|(w, d)| w - d).collect();
            let mut b: Vec<f32> = memory::zeros(x.len());
            self.operator.adjoint(&aim, &mut b);
            b.iter_mut().zip(&v).for_each(|(b, v)| *b = v + t * *b);
            self.operator.resolve(t, &b, x);
            self.operator.apply(x, &mut image);
            d.iter_mut().zip(image.iter().zip(&w)).for_each(|(d, (a, w))| *d += a - w);
        }
    }
}
