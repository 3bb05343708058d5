//! One step of some numbers along their gradient, with its means, in a single pass over memory.

use super::super::level::{self, dispatch};

/// What is added to the root of a mean square.
const EPSILON: f32 = 1e-8;

/// The constants of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    /// What the gradient is multiplied by.
    scale: f32,
    rate: f32,
    beta1: f32,
    squares: Option<Squares>,
}

/// Those of Adam.
#[derive(Clone, Copy, Debug)]
struct Squares {
    beta2: f32,
    /// The rate over the bias of the means.
    rate: f32,
    /// One over the root of the bias of the squares.
    root: f32,
}

impl Update {
    /// Step number `steps`, from 1 on: along the mean with `beta1`, over the root of mean squares with `beta2` if there is one.
    pub(crate) fn new(steps: f64, scale: f32, rate: f32, (beta1, beta2): (f32, Option<f32>)) -> Self {
        let unbias = |beta: f32| 1.0 - f64::from(beta).powf(steps);
        let squares = beta2.map(|beta2| Squares {
            beta2,
            rate: (f64::from(rate) / unbias(beta1)) as f32,
            root: unbias(beta2).sqrt().recip() as f32,
        });
        Self { scale, rate, beta1, squares }
    }

    /// Moves `weights` along `gradient`.
    #[inline(never)]
    pub(crate) fn apply(&self, weights: &mut [f32], gradient: &[f32], mean: &mut [f32], square: &mut [f32]) {
        let update = *self;
        dispatch!(level::best(), simd => {
            let _ = simd;
            update.descend(weights, gradient, mean, square);
        });
    }

    #[inline(always)]
    fn descend(&self, weights: &mut [f32], gradient: &[f32], mean: &mut [f32], square: &mut [f32]) {
        let all = weights.iter_mut().zip(gradient).zip(mean.iter_mut()).zip(square);
        let Self { scale, rate, beta1, squares } = *self;
        match squares {
            None => {
                for (((weight, gradient), mean), _) in all {
                    *mean = beta1 * *mean + scale * gradient;
                    *weight -= rate * *mean;
                }
            }
            Some(Squares { beta2, rate, root }) => {
                for (((weight, gradient), mean), square) in all {
                    let g = scale * gradient;
                    *mean = beta1 * *mean + (1.0 - beta1) * g;
                    *square = beta2 * *square + (1.0 - beta2) * (g * g);
                    *weight -= rate * *mean / (root * square.sqrt() + EPSILON);
                }
            }
        }
    }

    /// The same without moving anything: `gradient` becomes the step.
    pub(crate) fn step(&self, gradient: &mut [f32], mean: &mut [f32], square: &mut [f32]) {
        let all = gradient.iter_mut().zip(mean.iter_mut()).zip(square);
        let Self { beta1, rate, squares, .. } = *self;
        for ((gradient, mean), square) in all {
            match squares {
                None => {
                    *mean = beta1 * *mean + *gradient;
                    *gradient = rate * *mean;
                }
                Some(Squares { beta2, rate, root }) => {
                    let g = *gradient;
                    *mean = beta1 * *mean + (1.0 - beta1) * g;
                    *square = beta2 * *square + (1.0 - beta2) * (g * g);
                    *gradient = rate * *mean / (root * square.sqrt() + EPSILON);
                }
            }
        }
    }
}
