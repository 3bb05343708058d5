//! Affine maps: what stands between two activations.
//!
//! | | `F(u, z)` | parameters |
//! |---|---|---|
//! | [`Dense`] | `W u + b` | `W`, `b` |
//! | [`Convolutional`] | `sum_c w_{jc} * u_c + b_j`, with a stride and padding | `w`, `b` |
//! | [`DualStep`] | `u - tau L (L* u - z)`, a layer of the paper's denoiser (Section 4) | the filters of `L` |
//! | [`Synthesis`] | `z - L* u`, its estimate | the filters of `L` |
//! | [`Imprecise`] | any of them in few bits, or with noise on its gradients | those of the map |
//!
//! A map of your own is a type with the trait [`Affine`].

mod assemble;
mod convolution;
mod dense;
mod dual_step;
mod imprecise;
mod init;
mod kind;

pub(super) use assemble::with_parameters;
pub use convolution::Convolutional;
pub use dense::Dense;
pub use dual_step::{DualStep, Synthesis};
pub use imprecise::Imprecise;
pub use kind::Kind;

use super::Rows;
use crate::Real;

/// An affine map `F(u, z) = A u + C z + b` of the layer before and of the network's input, with its parameters.
///
/// Most maps have no `C`. All methods panic when a batch does not fit the map.
pub trait Affine<T: Real>: Send + Sync {
    /// What it is, in a line for people.
    fn describe(&self) -> String;

    /// Its sizes, for files and casts; none for maps that these do not know.
    fn kind(&self) -> Option<Kind> {
        None
    }

    /// Numbers of `u`.
    fn inputs(&self) -> usize;

    /// Numbers of `F(u, z)`.
    fn outputs(&self) -> usize;

    /// Numbers of `z` that it needs; none if it does not see the input.
    fn skips(&self) -> Option<usize> {
        None
    }

    /// Whether it is a full matrix of weights, row by row, and a bias for each row: there are kernels for those.
    fn is_dense(&self) -> bool {
        false
    }

    /// Rows of its weights, as a matrix: one for each output or feature.
    fn rows(&self) -> usize;

    /// Its parameters, block by block: weights first, then biases where there are any.
    fn parameters(&self) -> Vec<&[T]>;

    /// The same, to be moved.
    fn parameters_mut(&mut self) -> Vec<&mut [T]>;

    /// `v = F(u, z)`.
    fn apply(&self, u: &Rows<T>, z: &Rows<T>, v: &mut Rows<T>);

    /// `back = A* d`.
    fn adjoint(&self, d: &Rows<T>, back: &mut Rows<T>);

    /// `to_z += C* d`.
    fn add_adjoint_skip(&self, _d: &Rows<T>, _to_z: &mut Rows<T>) {}

    /// The gradient of `<d, F(u, z)>`, summed over the batch, by each block of parameters.
    fn gradient(&self, u: &Rows<T>, z: &Rows<T>, d: &Rows<T>) -> Vec<Vec<T>>;
}

/// Adds the bias of each feature to its plane.
fn add_bias<T: Real>(v: &mut [T], bias: &[T]) {
    let pixels = v.len() / bias.len();
    for (plane, &b) in v.chunks_exact_mut(pixels).zip(bias) {
        plane.iter_mut().for_each(|v| *v += b);
    }
}

/// The gradient by the bias of each feature: sums of its plane, sample after sample.
fn bias_gradient<T: Real>(d: &Rows<T>, features: usize) -> Vec<T> {
    let (mut gradient, pixels) = (vec![T::zero(); features], d.width() / features);
    for row in d.rows() {
        for (g, plane) in gradient.iter_mut().zip(row.chunks_exact(pixels)) {
            *g += plane.iter().copied().sum::<T>();
        }
    }
    gradient
}
