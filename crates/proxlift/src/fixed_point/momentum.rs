//! How fast the iteration may go: inertia, and what is known of it when `g` is smooth.
//!
//! Where all slopes of `s` are at most `p`, `g*` is strongly convex: `tau g*` with modulus `(1 - p) / p`. The iteration
//!
//! ```text
//! u_{k+1} = s(y_k - tau L (L* y_k - z)),     y_{k+1} = u_{k+1} + beta_k (u_{k+1} - u_k)
//! ```
//!
//! with `beta = (1 - sqrt(q)) / (1 + sqrt(q))`, `q = 1 - p`, then lowers the dual objective by the factor `1 - sqrt(q)` each time:
//! 0.9 for `p = 0.99`. Until momenta have grown to it they are those of the general case, `(t_k - 1) / t_{k+1}`, which for `p = 1`
//! start again when they point the wrong way, `<y_k - u_{k+1}, u_{k+1} - u_k> > 0`, or the gap grew.
//!
//! A. Chambolle, T. Pock, "An introduction to continuous optimization for imaging", 2016, section 4.7; B. O'Donoghue, E. Candes,
//! "Adaptive restart for accelerated gradient schemes", 2015.

use crate::{Real, named::named};

named! {
    /// How the iteration is sped up.
    pub enum Acceleration ("acceleration") {
        /// Not at all: for steps below `2 / ||L||^2`.
        None = "none",
        /// By inertia with restarts: for steps of at most `1 / ||L||^2`.
        Nesterov = "nesterov",
    }
}

/// The momenta `beta_1, beta_2, ...`.
#[derive(Clone, Debug)]
pub struct Momentum<T> {
    acceleration: Acceleration,
    t: f64,
    most: T,
}

impl<T: Real> Momentum<T> {
    /// For an activation whose slopes are at most `steepest`.
    pub fn new(acceleration: Acceleration, steepest: T) -> Self {
        let root = (1.0 - steepest.to_double()).clamp(0.0, 1.0).sqrt();
        Self { acceleration, t: 1.0, most: T::of((1.0 - root) / (1.0 + root)) }
    }

    /// Whether it stays below 1, so that it need not start again.
    pub fn is_bounded(&self) -> bool {
        self.acceleration == Acceleration::None || self.most < T::one()
    }

    /// Starts again.
    pub fn restart(&mut self) {
        self.t = 1.0;
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
