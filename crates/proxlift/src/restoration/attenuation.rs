//! How much a degradation leaves of what has to be told from noise, which is how much a convex prior has to count.
//!
//! Where `A* A` is `a^2` times the identity, `1/2 ||A x - y||^2 + w R(x)` is denoising with the weight `w / a^2` of noise that is
//! `1 / a` times as strong. What denoises that is `R(a x) / a^2`, which is about `R(x) / a` as `R` grows like a norm: so `w = a`.
//! A blur leaves another share `|k^|` of every frequency. Those count at which picture and noise are alike: the rest is
//! either plain or lost. With the power `S(f) = C f^-2.5` of photographs,
//!
//! ```text
//! log w = sum_f m(f) log |k^(f)| / sum_f m(f),      m = r / (1 + r)^2,      r = |k^|^2 S / sigma^2
//! ```
//!
//! For the identity, `w = 1`.

use super::{Degradation, Kernel};
use crate::Result;
use crate::operator::Blur;

/// `C`, for which pictures of 192 x 192 pixels have a variance of 0.05, and the exponent.
const POWER: f64 = 2.57e-4;
const EXPONENT: f64 = -2.5;

/// The least side of the picture whose frequencies are looked at.
const SIDE: usize = 128;

impl Degradation {
    /// The weight of a convex prior that suits noise of this standard deviation where nothing but noise was added.
    pub(super) fn weight(&self, sigma: f64) -> Result<f64> {
        match self {
            Self::Blur(kernel) => left(kernel, 1.0, sigma),
            Self::Small { factor, kernel } => left(kernel, 1.0 / *factor as f64, sigma),
            Self::Missing { known, .. } => {
                let share = known.iter().filter(|known| **known).count() as f64 / known.len().max(1) as f64;
                Ok(share.max(f64::MIN_POSITIVE).sqrt())
            }
            // Each pixel has one colour of three.
            Self::Mosaic(_) => Ok((1.0f64 / 3.0).sqrt()),
            // As if it left the same share of all frequencies; exact for masks and for multiples of the identity.
            Self::Operator(linear) => Ok(linear.gain().max(f64::MIN_POSITIVE)),
        }
    }
}

fn left(kernel: &Kernel, share: f64, sigma: f64) -> Result<f64> {
    let side = (2 * kernel.size().0.max(kernel.size().1)).next_power_of_two().max(SIDE);
    let blur = Blur::new(kernel.weights(), kernel.size(), 1, (side, side))?;
    let (mut sum, mut of) = (0.0, 0.0);
    for (frequency, k) in blur.response() {
        let k = share * k;
        let r = k * k * POWER * frequency.powf(EXPONENT) / (sigma * sigma);
        let m = r / (1.0 + r).powi(2);
        if m > 0.0 {
            (sum, of) = (sum + m * k.ln(), of + m);
        }
    }
    Ok(if of > 0.0 { (sum / of).exp() } else { share })
}
