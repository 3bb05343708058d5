//! Operators of one's own, whose data need not be pictures.

use super::forward::{Forward, TOLERANCE};
use crate::image::Channels;
use crate::operator::{ConjugateGradients, LinearOperator, Resolvent};
use crate::real::norm_squared;
use crate::{Result, memory, random};
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// A residual of conjugate gradients that no proof will see, without an operator that is near.
const EXACT: f64 = 1e-9;

type Own = Arc<dyn LinearOperator<f64> + Send + Sync>;

/// An operator of one's own, on pictures of one size. What it gives may be anything: [`Restorer::restore_data`] takes it.
#[derive(Clone)]
pub struct Linear {
    operator: Own,
    channels: Channels,
    size: (usize, usize),
}

impl Linear {
    /// On pictures with these channels, of this height and width.
    /// Fails when the operator takes another number of values.
    pub fn new(
        operator: impl LinearOperator<f64> + Send + Sync + 'static,
        channels: Channels,
        (height, width): (usize, usize),
    ) -> Result<Self> {
        let (takes, values) = (operator.domain_len(), channels.count() * height * width);
        refuse!(takes != values => "the operator takes {takes} numbers, but the picture has {values}");
        Ok(Self { operator: Arc::new(operator), channels, size: (height, width) })
    }

    /// Channels, rows and columns.
    pub(super) fn shape(&self) -> (Channels, usize, usize) {
        (self.channels, self.size.0, self.size.1)
    }

    /// By conjugate gradients; where nothing has to be exact, from where the iteration is.
    pub(super) fn forward(&self, exact: bool) -> Forward {
        let mut operator = ConjugateGradients::new::<f64>(self.operator.clone());
        (operator.tolerance, operator.warm) = if exact { (EXACT, false) } else { (TOLERANCE, true) };
        let channels = self.channels.count();
        Forward {
            operator: Arc::new(Precise(operator)),
            channels,
            scene: self.size,
            around: 0,
            direct: false,
        }
    }

    /// `||A r|| / ||r||` for white noise `r`: the root of the mean of the eigenvalues of `A* A`, about.
    pub(super) fn gain(&self) -> f64 {
        let mut generator = random::seeded(0);
        let noise = (0..self.operator.domain_len()).map(|_| StandardNormal.sample(&mut generator));
        let (noise, mut there): (Vec<f64>, Vec<f64>) =
            (noise.collect(), memory::zeros(self.operator.range_len()));
        self.operator.apply(&noise, &mut there);
        (norm_squared(&there) / norm_squared(&noise)).sqrt()
    }
}

/// Solves in double precision, for pictures in single precision: the gap of a convex prior would see the rounding of the iteration.
struct Precise(ConjugateGradients<Own>);

fn rounded(f: impl FnOnce(&mut [f64]), out: &mut [f32]) {
    let mut precise: Vec<f64> = doubled(out);
    f(&mut precise);
    out.iter_mut().zip(&precise).for_each(|(out, v)| *out = *v as f32);
}

fn doubled(field: &[f32]) -> Vec<f64> {
    field.iter().map(|v| f64::from(*v)).collect()
}

impl LinearOperator<f32> for Precise {
    fn domain_len(&self) -> usize {
        self.0.domain_len()
    }

    fn range_len(&self) -> usize {
        self.0.range_len()
    }

    fn apply(&self, x: &[f32], y: &mut [f32]) {
        rounded(|y| self.0.apply(&doubled(x), y), y);
    }

    fn adjoint(&self, y: &[f32], x: &mut [f32]) {
        rounded(|x| self.0.adjoint(&doubled(y), x), x);
    }
}

impl Resolvent<f32> for Precise {
    fn resolve(&self, tau: f32, b: &[f32], x: &mut [f32]) {
        rounded(|x| self.0.resolve(f64::from(tau), &doubled(b), x), x);
    }
}

impl std::fmt::Debug for Linear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Linear")
            .field("channels", &self.channels)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
