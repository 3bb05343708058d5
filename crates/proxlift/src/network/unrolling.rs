//! The algorithms that a network can be unrolled from: what a layer remembers of the ones before it.
//!
//! All solve `min_x 1/2 ||x - z||^2 + g(L x)`, with `x` in `[0, 1]` if the network is bounded, by steps on the dual
//! variable `u`. With `r_k` minus the estimate of the image in layer `k`,
//!
//! ```text
//! y_{k-1} = u_{k-1} + alpha_k (u_{k-1} - u_{k-2})                       inertia, on the features
//! q_k     = (1 - beta_k)(L_k* y_{k-1} - z) + beta_k r_{k-1}             memory, on the image
//! r_k     = q_k,   or -clip(-q_k, 0, 1) if bounded
//! v_k     = y_{k-1} - tau_k L_k (r_k + gamma_k (r_k - r_{k-1}))         extrapolation, on the image
//! u_k     = s_k(v_k)
//! x^      = -r_K
//! ```
//!
//! | | `alpha` | `beta` | `gamma` | `tau ‖L‖^2` |
//! |---|---|---|---|---|
//! | dual forward-backward | 0 | 0 | 0 | 1.8 |
//! | inertial (Beck and Teboulle 2009, Chambolle and Dossal 2015) | `(k - 1) / (k + 2)` | 0 | 0 | 1 |
//! | Chambolle-Pock (2011), primal step `s = 1` | 0 | `1 / (1 + s)` | 1 | `1 / s` |
//! | its strongly convex acceleration, `s_1 = 1`, `s_{k+1} = theta_k s_k`, `theta_k = 1 / sqrt(1 + 2 s_k)` | 0 | `1 / (1 + s_k)` | `theta_{k-1}` | `1 / s_k` |
//! | averaged dual forward-backward | 0 | `(k - 1) / (k + 1)` | `(k - 1) / 2` | 0.98 |
//!
//! In the last one the convolution sees `r_k + gamma_k (r_k - r_{k-1}) = L_k* u_{k-1} - z`, as in plain dual forward-backward,
//! while `r_k` is the average of these over all layers so far with the weights `1, 2, .., k`. With tied operators and slopes of
//! at most [`averaged_slope`] that average is firmly non-expansive in `z`
//! ([`LipschitzBound`](crate::analysis::LipschitzBound)).
//!
//! Long steps ([`Network::step_scale`](super::Network::step_scale)) multiply the last column. The algorithms then no longer
//! converge; a trained network, which stops after `K` layers, need not.
//!
//! The first layer has nothing to remember: its `alpha`, `beta` and `gamma` are zero.

use crate::{Real, named::named};

named! {
    /// The algorithm that a network is unrolled from.
    pub enum Unrolling ("unrolled algorithm") {
        /// Dual forward-backward, the paper's.
        DualForwardBackward = "dual-forward-backward",
        /// Its inertial version: momentum on the features.
        Inertial = "inertial",
        /// Chambolle-Pock: memory and extrapolation on the image.
        ChambollePock = "chambolle-pock",
        /// Chambolle-Pock, accelerated by the strong convexity of the data term.
        ChambollePockAccelerated = "chambolle-pock-accelerated" | "strongly-convex",
        /// Dual forward-backward whose output is a weighted average over all layers: with tied operators, firmly
        /// non-expansive.
        AveragedDualForwardBackward = "averaged-dual-forward-backward",
    }
}

/// What the layers of an unrolling remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The features `u_{k-2}`.
    pub features: bool,
    /// The image `r_{k-1}`.
    pub images: bool,
}

/// The weights with which layer `k` remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerMemory<T> {
    /// `alpha_k`.
    pub inertia: T,
    /// `beta_k`.
    pub memory: T,
    /// `gamma_k`.
    pub extrapolation: T,
}

/// `tau_k ||L_k||^2` of dual forward-backward: below 2, so that every layer is non-expansive.
pub const STEP: f64 = 1.8;

/// `tau ||L||^2` of averaged dual forward-backward: the proof needs at most 1, and training knows the norm to a percent.
pub const AVERAGED_STEP: f64 = 0.98;

impl Unrolling {
    /// The momentum of layer `k = 1..K`; that of `K` has a part in the output.
    pub fn layer_memory<T: Real>(self, k: usize) -> LayerMemory<T> {
        let (inertia, memory, extrapolation) = match self {
            _ if k == 1 => (0.0, 0.0, 0.0),
            Self::DualForwardBackward => (0.0, 0.0, 0.0),
            Self::Inertial => ((k - 1) as f64 / (k + 2) as f64, 0.0, 0.0),
            Self::ChambollePock => (0.0, 0.5, 1.0),
            Self::ChambollePockAccelerated => {
                let (before, step) = (primal_step(k - 1), primal_step(k));
                (0.0, 1.0 / (1.0 + step), 1.0 / (1.0 + 2.0 * before).sqrt())
            }
            Self::AveragedDualForwardBackward => {
                let k = k as f64;
                (0.0, (k - 1.0) / (k + 1.0), (k - 1.0) / 2.0)
            }
        };
        LayerMemory { inertia: T::of(inertia), memory: T::of(memory), extrapolation: T::of(extrapolation) }
    }

    /// `tau_k ||L_k||^2` of layer `k = 1..K-1`.
    pub fn step(self, k: usize) -> f64 {
        match self {
            Self::DualForwardBackward => STEP,
            Self::Inertial | Self::ChambollePock => 1.0,
            Self::ChambollePockAccelerated => 1.0 / primal_step(k),
            Self::AveragedDualForwardBackward => AVERAGED_STEP,
        }
    }

    /// What its layers remember of the ones before them.
    pub fn memory(self) -> Memory {
        Memory {
            features: self == Self::Inertial,
            images: !matches!(self, Self::DualForwardBackward | Self::Inertial),
        }
    }
}

/// `s_k` of the strongly convex acceleration.
fn primal_step(k: usize) -> f64 {
    (1..k).fold(1.0, |s, _| s / (1.0 + 2.0 * s).sqrt())
}

/// The steepest slope that the activation of layer `k` may have for averaged dual forward-backward to be firmly
/// non-expansive: `p` with `2 / p - 1 = (k + 2) / (k + 1)`, the ratio of the weights of the iterate that it makes and of the next.
/// That of the last layer, after which there is none, may be 1.
pub fn averaged_slope(k: usize) -> f64 {
    let k = k as f64;
    (2.0 * k + 2.0) / (2.0 * k + 3.0)
}

/// The image part of a layer: from `L* y - z` to what the convolution sees, and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Primal<T> {
    /// What the layer remembers.
    pub memory: LayerMemory<T>,
    /// Whether the estimate stays in `[0, 1]`.
    pub bounded: bool,
}

impl<T: Real> Primal<T> {
    /// Whether the layer sees `L* y - z` itself.
    pub fn is_plain(&self) -> bool {
        !self.bounded && self.memory.memory == T::zero() && self.memory.extrapolation == T::zero()
    }

    /// `q_k` from `p = L_k* y - z` and `r_{k-1}`.
    pub fn blend(&self, p: T, before: T) -> T {
        (T::one() - self.memory.memory) * p + self.memory.memory * before
    }

    /// `r_k` from `q_k`: the image's activation, `-clip(-q, 0, 1)` if bounded.
    pub fn bound(&self, q: T) -> T {
        if self.bounded { q.min(T::zero()).max(-T::one()) } else { q }
    }

    /// `r_k + gamma_k (r_k - r_{k-1})`.
    pub fn extrapolate(&self, r: T, before: T) -> T {
        r + self.memory.extrapolation * (r - before)
    }

    /// The slope of [`Primal::bound`], from `q_k` or as well from `r_k`: both are inside at once.
    pub fn slope(&self, q: T) -> T {
        let inside = !self.bounded || (q > -T::one() && q < T::zero());
        if inside { T::one() } else { T::zero() }
    }

    /// The reverse of the whole: from `rho`, what the convolution's input gets, and what `r_k` gets from later layers,
    /// to what `L_k* y` gets and what `r_{k-1}` gets.
    pub fn reverse(&self, q: T, rho: T, carried: T) -> (T, T) {
        let LayerMemory { memory, extrapolation, .. } = self.memory;
        let through = self.slope(q) * ((T::one() + extrapolation) * rho + carried);
        ((T::one() - memory) * through, memory * through - extrapolation * rho)
    }
}
