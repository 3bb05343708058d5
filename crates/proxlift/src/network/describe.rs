//! A network in a line, for people.

use super::Network;
use crate::Real;
use std::fmt;

impl<T: Real> fmt::Display for Network<T> {
    /// Its sizes, and what it is unrolled from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.architecture();
        let (k, channels) = (sizes.kernel, if sizes.channels == 1 { "grey" } else { "RGB" });
        write!(f, "K={}, J={}, {k}x{k} kernels, {channels}", sizes.depth, sizes.features)?;
        write!(f, ", unrolled from {}", self.unrolling)?;
        if self.learns_activations() {
            write!(f, ", activations of {} knots", self.pieces())?;
        }
        if self.bounded {
            write!(f, ", bounded")?;
        }
        if self.step_scale != T::one() {
            write!(f, ", steps {} times as long", self.step_scale)?;
        }
        if self.border > 0 {
            write!(f, ", a border of {}", self.border)?;
        }
        Ok(())
    }
}
