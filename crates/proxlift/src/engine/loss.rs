//! How the error of a sample counts.

use crate::named::named;

named! {
    /// The loss of a sample.
    pub enum SampleLoss ("loss") {
        /// Half the squared error, as in the paper.
        Squared = "squared",
        /// The norm of the error: smooth pictures count as textured ones do.
        ///
        /// Squares fit a network to textured pictures, whose errors are largest; the mean PSNR of pictures, a logarithm, counts all
        /// of them alike.
        Norm = "norm",
    }
}

/// The squared error of a pixel at which [`SampleLoss::Norm`] weighs a sample as the square does, and the share of it below which
/// weights hardly grow.
const TYPICAL: (f64, f64) = (1.5e-3, 0.03);

impl SampleLoss {
    /// The loss of a sample of so many numbers that count, from `1/2 ||x^ - x||^2`.
    pub fn of(self, half_square: f64, numbers: usize) -> f64 {
        let typical = numbers as f64 * TYPICAL.0;
        match self {
            Self::Squared => half_square,
            Self::Norm => typical * (2.0 * half_square / typical + TYPICAL.1).sqrt(),
        }
    }

    /// What its gradient is of that of the square: the weight of such a sample.
    pub fn weight(self, half_square: f64, numbers: usize) -> f64 {
        let error = 2.0 * half_square / numbers.max(1) as f64;
        match self {
            Self::Squared => 1.0,
            Self::Norm => (error / TYPICAL.0 + TYPICAL.1).powf(-0.5),
        }
    }
}
