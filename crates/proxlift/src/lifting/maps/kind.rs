//! Affine maps by their sizes: what a file says of a layer beside its numbers.

use crate::operator::Filters;
use crate::{Real, Result};
use serde::{Deserialize, Serialize};

/// An affine map without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "map", rename_all = "kebab-case")]
pub enum Kind {
    /// A full matrix.
    Dense {
        /// Columns of the matrix.
        inputs: usize,
        /// Its rows.
        outputs: usize,
    },
    /// A convolution.
    Convolution {
        /// The filters.
        filters: Shape,
        /// Rows and columns of the input.
        size: (usize, usize),
        /// Pixels from one place to the next.
        stride: usize,
        /// Zeros around the input.
        padding: usize,
    },
    /// A layer of the denoiser.
    DualStep {
        /// The filters.
        filters: Shape,
        /// Rows and columns of the image.
        size: (usize, usize),
        /// The step.
        tau: f64,
        /// Whether it starts from the image.
        first: bool,
    },
    /// The estimate of the denoiser.
    Synthesis {
        /// The filters.
        filters: Shape,
        /// Rows and columns of the image.
        size: (usize, usize),
    },
}

/// The sizes of [`Filters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    features: usize,
    channels: usize,
    kernel: usize,
}

impl Shape {
    pub(super) fn of<T: Real>(filters: &Filters<T>) -> Self {
        Self { features: filters.features(), channels: filters.channels(), kernel: filters.size() }
    }

    fn numbers(&self) -> Result<usize> {
        within(&[self.features, self.channels, self.kernel, self.kernel])
    }

    pub(super) fn filled<T: Real>(&self, weights: Vec<T>) -> Result<Filters<T>> {
        Filters::new(self.features, self.channels, self.kernel, weights)
    }
}

/// No layer has more numbers, in or out.
const MOST: usize = 1 << 31;

/// The product of sizes that are not too large.
fn within(sizes: &[usize]) -> Result<usize> {
    let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    product.filter(|&product| product > 0 && product <= MOST).ok_or_else(|| {
        invalid!("a layer with sizes {sizes:?} is empty or too large: no layer has more than {MOST} numbers")
    })
}

impl Kind {
    /// Numbers of each block of parameters. Fails when a size is out of range.
    pub(super) fn blocks(&self) -> Result<Vec<usize>> {
        Ok(match *self {
            Self::Dense { inputs, outputs } => vec![within(&[inputs, outputs])?, outputs],
            Self::Convolution { filters, size: (height, width), padding, stride } => {
                refuse!(padding > MOST || stride > MOST => "the padding or the stride of a convolution is too large");
                within(&[filters.features.max(filters.channels), height + 2 * padding, width + 2 * padding])?;
                vec![filters.numbers()?, filters.features]
            }
            Self::DualStep { filters, size: (height, width), tau, first } => {
                refuse!(!tau.is_finite() => "the step of a layer is not a finite number");
                within(&[filters.features.max(filters.channels), height, width])?;
                vec![filters.numbers()?; 1 + usize::from(first)]
            }
            Self::Synthesis { filters, size: (height, width) } => {
                within(&[filters.features.max(filters.channels), height, width])?;
                vec![filters.numbers()?]
            }
        })
    }
}
