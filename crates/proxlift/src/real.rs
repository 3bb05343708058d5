//! The scalar: `f32` for work, `f64` for checking.

use std::iter::Sum;

/// A floating-point number the mathematics is written in.
pub trait Real:
    num_traits::Float
    + num_traits::NumAssign
    + Sum
    + Default
    + Send
    + Sync
    + std::fmt::Debug
    + std::fmt::Display
    + 'static
{
    /// Rounds an `f64` constant.
    fn of(x: f64) -> Self;
    /// Widens to `f64`.
    fn to_double(self) -> f64;
}

impl Real for f32 {
    fn of(x: f64) -> Self {
        x as f32
    }
    fn to_double(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn to_double(self) -> f64 {
        self
    }
}

/// The inner product, summed in index order.
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    assert_eq!(a.len(), b.len(), "inner product of vectors of different lengths");
    a.iter().zip(b).map(|(&a, &b)| a * b).sum()
}

/// The squared Euclidean norm, summed in index order.
pub fn norm_squared<T: Real>(a: &[T]) -> T {
    dot(a, a)
}
