//! How fast the iteration may go: inertia, and what is known of it when `g` is smooth.
//!
//! Where all slopes of `s` are at most `p`, `g*` is strongly convex: `tau g*` with modulus `(1 - p) / p`. The iteration
//!
//! ```text
//! u_{k+1} = s(y_k - tau L (L* y_k - z)),     y_{k+1} = u_{k+1} + beta_k (u_{k+1} - u_k)
//! ```
//!
//! with `beta = (1 - sqrt(q)) / (1 + sqrt(q))`, `q = 1 - p`, then lowers the dual objective by the factor `1 - sqrt(q)` each time:
//! 0.68 for `p = 0.9`. Until momenta have grown to it they are those of the general case, `(t_k - 1) / t_{k+1}`, which for `p = 1`
//! are started again whenever the steps have become longer.
//!
//! A. Chambolle, T. Pock, "An introduction to continuous optimization for imaging", 2016, section 4.7; B. O'Donoghue, E. Candes,
//! "Adaptive restart for accelerated gradient schemes", 2015.

use super::Acceleration;
use crate::Real;

/// The momenta `beta_1, beta_2, ...`.
#[derive(Clone, Debug)]
pub struct Momentum<T> {
    acceleration: Acceleration,
    t: f64,
    most: T,
    /// How far the iteration moved when it was last asked.
    moved: f64,
}

impl<T: Real> Momentum<T> {
    /// For an activation whose slopes are at most `steepest`.
    pub fn new(acceleration: Acceleration, steepest: T) -> Self {
        let root = (1.0 - steepest.to_double()).clamp(0.0, 1.0).sqrt();
        Self { acceleration, t: 1.0, most: T::of((1.0 - root) / (1.0 + root)), moved: f64::INFINITY }
    }

    /// Whether to go on without momentum, as the iteration moves by more than it did; then it starts again.
    pub fn restarts(&mut self, moved: f64) -> bool {
        let longer = moved > self.moved;
        if longer {
            self.t = 1.0;
        }
        self.moved = if longer { f64::INFINITY } else { moved };
        longer
    }
}

impl<T: Real> Iterator for Momentum<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.acceleration == Acceleration::None {
            return Some(T::zero());
        }
        let after = 0.5 * (1.0 + (1.0 + 4.0 * self.t * self.t).sqrt());
        let beta = T::of((self.t - 1.0) / after).min(self.most);
        self.t = after;
        Some(beta)
    }
}
