//! The full matrix.

use super::{Affine, Kind, add_bias, bias_gradient};
use crate::lifting::Rows;
use crate::matrix::{Matrix, multiply, product};
use crate::{Real, Result};

/// `F(u) = W u + b`, `W` row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<T> {
    inputs: usize,
    weights: Vec<T>,
    bias: Vec<T>,
}

impl<T: Real> Dense<T> {
    /// The map with `bias.len()` outputs and `inputs` inputs. Fails when the weights do not fit them.
    pub fn new(inputs: usize, weights: Vec<T>, bias: Vec<T>) -> Result<Self> {
        refuse!(inputs == 0 || bias.is_empty() || weights.len() != inputs * bias.len() =>
            "{} weights given for a dense layer of {inputs} inputs and {} outputs",
            weights.len(), bias.len());
        Ok(Self { inputs, weights, bias })
    }

    fn matrix(&self) -> Matrix<'_, T> {
        Matrix::new(&self.weights, self.bias.len(), self.inputs)
    }
}

impl<T: Real> Affine<T> for Dense<T> {
    fn describe(&self) -> String {
        format!("dense, {} to {}", self.inputs, self.bias.len())
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Dense { inputs: self.inputs, outputs: self.bias.len() })
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn outputs(&self) -> usize {
        self.bias.len()
    }

    fn is_dense(&self) -> bool {
        true
    }

    fn rows(&self) -> usize {
        self.bias.len()
    }

    fn parameters(&self) -> Vec<&[T]> {
        vec![&self.weights, &self.bias]
    }

    fn parameters_mut(&mut self) -> Vec<&mut [T]> {
        vec![&mut self.weights, &mut self.bias]
    }

    fn apply(&self, u: &Rows<T>, _: &Rows<T>, v: &mut Rows<T>) {
        let u = Matrix::new(u.data(), u.samples(), self.inputs);
        multiply(product(), u, self.matrix().transposed(), v.data_mut());
        v.data_mut().chunks_exact_mut(self.bias.len()).for_each(|row| add_bias(row, &self.bias));
    }

    fn adjoint(&self, d: &Rows<T>, back: &mut Rows<T>) {
        let d = Matrix::new(d.data(), d.samples(), self.bias.len());
        multiply(product(), d, self.matrix(), back.data_mut());
    }

    fn gradient(&self, u: &Rows<T>, _: &Rows<T>, d: &Rows<T>) -> Vec<Vec<T>> {
        let (samples, mut weights) = (d.samples(), vec![T::zero(); self.weights.len()]);
        let (u, error) =
            (Matrix::new(u.data(), samples, self.inputs), Matrix::new(d.data(), samples, self.bias.len()));
        multiply(product(), error.transposed(), u, &mut weights);
        vec![weights, bias_gradient(d, self.bias.len())]
    }
}
