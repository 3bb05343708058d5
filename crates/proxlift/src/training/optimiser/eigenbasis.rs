//! The Kronecker metric: the diagonal one in a basis where the entries of a layer's gradient are uncorrelated (Shampoo,
//! Gupta, Koren and Singer 2018; in this form SOAP, Vyas and others 2024).
//!
//! The gradient `G` of a layer is a matrix with a row for each feature and a column for each tap. With the eigenvectors
//! `P` of a moving average of `G G^T` and `Q` of one of `G^T G`, the step is that of the diagonal metric on `P^T G Q`,
//! turned back. Taps see an image whose neighbouring pixels are alike, and features see alike parts of it: the diagonal
//! metric alone is blind to both.

use super::eigenvectors::turn_to_eigenvectors;
use crate::matrix::{Matrix, multiply, product};
use crate::{Result, training::Snapshot};

/// What is kept of the moving averages.
const KEEP: f32 = 0.99;
/// The step that first has a basis, and how often it is renewed.
const FIRST: u64 = 20;
const EVERY: u64 = 200;

#[derive(Clone, Debug)]
pub(super) struct Eigenbasis {
    shape: [usize; 2],
    /// Moving averages of `G G^T` and `G^T G`.
    moments: [Vec<f32>; 2],
    /// `P` and `Q`, with an eigenvector in each column.
    vectors: [Vec<f32>; 2],
    /// What a product is written to before it replaces its factor.
    product: Vec<f32>,
    steps: u64,
}

impl Eigenbasis {
    /// The basis of the weights themselves, a matrix of this shape.
    pub(super) fn new(shape: [usize; 2]) -> Self {
        Self {
            shape,
            moments: shape.map(|n| vec![0.0; n * n]),
            vectors: shape.map(|n| (0..n * n).map(|k| if k / n == k % n { 1.0 } else { 0.0 }).collect()),
            product: vec![0.0; shape[0] * shape[1]],
            steps: 0,
        }
    }

    /// Averages the gradient in. When the basis changes, `mean`, which was in the old one, is taken to the new one.
    pub(super) fn observe(&mut self, gradient: &[f32], mean: &mut [f32]) {
        let [rows, columns] = self.shape;
        let [left, right] = &mut self.moments;
        let (g, scales) = (gradient, (1.0 - KEEP, KEEP));
        multiply(scales, Matrix::new(g, rows, columns), Matrix::new(g, rows, columns).transposed(), left);
        multiply(scales, Matrix::new(g, rows, columns).transposed(), Matrix::new(g, rows, columns), right);
        self.steps += 1;
        if self.steps == FIRST || self.steps.is_multiple_of(EVERY) {
            self.back(mean);
            for ((n, moment), vectors) in self.shape.iter().zip(&self.moments).zip(&mut self.vectors) {
                turn_to_eigenvectors(*n, moment, vectors);
            }
            self.turn(mean);
        }
    }

    /// `G <- P^T G Q`.
    pub(super) fn turn(&mut self, g: &mut [f32]) {
        let [rows, columns] = self.shape;
        let [p, q] = &self.vectors;
        multiply(
            product(),
            Matrix::new(p, rows, rows).transposed(),
            Matrix::new(g, rows, columns),
            &mut self.product,
        );
        multiply(product(), Matrix::new(&self.product, rows, columns), Matrix::new(q, columns, columns), g);
    }

    /// `G <- P G Q^T`.
    pub(super) fn back(&mut self, g: &mut [f32]) {
        let [rows, columns] = self.shape;
        let [p, q] = &self.vectors;
        multiply(product(), Matrix::new(p, rows, rows), Matrix::new(g, rows, columns), &mut self.product);
        multiply(
            product(),
            Matrix::new(&self.product, rows, columns),
            Matrix::new(q, columns, columns).transposed(),
            g,
        );
    }

    pub(super) fn save(&self, k: usize, state: &mut Snapshot) {
        for (side, (moment, vectors)) in self.moments.iter().zip(&self.vectors).enumerate() {
            state.put(format!("moment_{k}_{side}"), moment);
            state.put(format!("vectors_{k}_{side}"), vectors);
        }
        state.put_scalar(format!("observed_{k}"), self.steps as f64);
    }

    pub(super) fn restore(&mut self, k: usize, state: &Snapshot) -> Result<()> {
        for (side, (moment, vectors)) in self.moments.iter_mut().zip(&mut self.vectors).enumerate() {
            state.get(&format!("moment_{k}_{side}"), moment)?;
            state.get(&format!("vectors_{k}_{side}"), vectors)?;
        }
        self.steps = state.scalar(&format!("observed_{k}"))? as u64;
        Ok(())
    }
}
