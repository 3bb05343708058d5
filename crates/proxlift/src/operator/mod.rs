//! Linear operators with their exact adjoints.
//!
//! A field is a slice of planes, `[c][y][x]`: all pixels of the first channel (or feature) row by row, then the
//! second. Operators write into buffers that the caller lends.

mod blur;
mod convolution;
mod differences;
mod downsampling;
mod filters;
mod fourier;
mod made;
mod mask;
mod norm;
mod resolvent;
mod symbol;
mod window;

pub use blur::Blur;
pub use convolution::Convolution;
pub use differences::FiniteDifferences;
pub use downsampling::Downsampling;
pub use filters::Filters;
pub use made::{Composed, Functions, Stacked};
pub use mask::Mask;
pub use norm::{NormInfo, NormParams, NormStop, PowerState, spectral_norm};
pub use resolvent::{ConjugateGradients, Nothing, Resolvent};
pub use symbol::{SymbolNorm, convolution_norm_bound};
pub use window::{Mirror, Window};

use crate::Real;

/// A bounded linear map `L` between two spaces of fields, with its adjoint: `<L x, y> = <x, L* y>` for all `x`, `y`.
///
/// [`crate::laws::adjoint_mismatch`] measures how well an implementation keeps that law.
pub trait LinearOperator<T: Real> {
    /// The number of entries of `x`.
    fn domain_len(&self) -> usize;
    /// The number of entries of `L x`.
    fn range_len(&self) -> usize;
    /// `y = L x`, overwriting `y`.
    fn apply(&self, x: &[T], y: &mut [T]);
    /// `x = L* y`, overwriting `x`.
    fn adjoint(&self, y: &[T], x: &mut [T]);
}
