//! Learning rates over a training.

use crate::named::named;
use std::f64::consts::PI;

named! {
    /// How the rate changes from the first batch to the last.
    pub enum Schedule ("schedule") {
        /// The same throughout.
        Constant = "constant",
        /// Half a cosine, down to zero.
        Cosine = "cosine",
    }
}

/// A rate and its schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The rate at the start.
    pub start: f64,
    /// How it goes on.
    pub schedule: Schedule,
}

impl Rate {
    /// The rate when `progress` in `[0, 1]` of the training is done.
    pub fn at(&self, progress: f64) -> f64 {
        match self.schedule {
            Schedule::Constant => self.start,
            Schedule::Cosine => 0.5 * self.start * (1.0 + (PI * progress.clamp(0.0, 1.0)).cos()),
        }
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.schedule {
            Schedule::Constant => write!(f, "{} constant", self.start),
            Schedule::Cosine => write!(f, "{} falling by a cosine", self.start),
        }
    }
}
