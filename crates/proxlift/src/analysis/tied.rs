//! Networks with one operator in all layers: a Lipschitz constant that hardly grows with the depth, and is 1 for the right
//! average of the iterates.
//!
//! **Setting.** `L` is the operator of all layers and `L*` their synthesis, `tau` the step of all of them, `tau ||L||^2 <= 1`, so
//! that `P = I / tau - L L*` is positive semi-definite. From `u_0 = L z`, with `k = 1..K-1`,
//!
//! ```text
//! u_k = s_k(u_{k-1} - tau L (L* u_{k-1} - z)),     x_k = z - L* u_k,     k = 0..K-1
//! ```
//!
//! Every layer may have its own activation `s_k`, monotone with slopes in `[0, p_k]`, `p_k <= 1`. The output is an average of
//! iterates, `x^ = sum_k w_k x_k / W`, `w_k >= 0`, `W = sum_k w_k`. Plain dual forward-backward has `w_{K-1} = 1` and no other;
//! averaged dual forward-backward has `w_k = k + 1` ([`Unrolling`](crate::network::Unrolling)).
//!
//! **One layer.** For two inputs let `dz`, `du_k`, `dx_k` be the differences, and `A_k = <du_k, P du_k>`. Then
//!
//! ```text
//! 2 (||dx_k||^2 - <dz, dx_k>)  <=  A_{k-1} - q_k A_k,       q_k = 2 / p_k - 1 >= 1.                       (1)
//! ```
//!
//! Proof. With `v_k` the argument of `s_k`, slopes of at most `p_k` say `<dv_k, du_k> >= ||du_k||^2 / p_k`, and
//!
//! ```text
//! (v_k - u_k) / tau = (u_{k-1} - u_k) / tau + L (z - L* u_{k-1}) = L x_k - P (u_k - u_{k-1}).
//! ```
//!
//! So `<L dx_k, du_k> - <P (du_k - du_{k-1}), du_k> >= m ||du_k||^2` with `m tau = 1 / p_k - 1`. Here `<L dx_k, du_k> = <dx_k, L* du_k> =
//! <dx_k, dz - dx_k>`; `2 <P (a - b), a> >= <a, P a> - <b, P b>`; and `||du_k||^2 >= tau A_k`, as `P <= I / tau`. Together this is (1). []
//!
//! **The start.** `u_0 = L z` and `x_0 = (I - L* L) z`. With `e_l >= 0` the share of `dz` in the eigenvalue `l` of `L* L`,
//!
//! ```text
//! A_0 = sum_l e_l l (1 / tau - l),      2 (||dx_0||^2 - <dz, dx_0>) = -2 sum_l e_l l (1 - l),      0 <= l <= ||L||^2.      (2)
//! ```
//!
//! **All layers.** As `||.||^2` is convex, `||dx^||^2 - <dz, dx^>` is at most the average of `||dx_k||^2 - <dz, dx_k>`. The sum of (1)
//! with weights `w_k` telescopes, and with (2)
//!
//! ```text
//! 2 W (||dx^||^2 - <dz, dx^>) <= max_l l (w_1 (1 / tau - l) - 2 w_0 (1 - l)) ||dz||^2 + sum_{k=1}^{K-2} (w_{k+1} - q_k w_k) A_k.     (3)
//! ```
//!
//! **Theorem.** If `w_{k+1} <= q_k w_k` for `k = 1..K-2`, `w_1 <= 2 w_0` and `tau >= 1`, then
//!
//! ```text
//! ||dx^||^2 <= <dz, dx^>,
//! ```
//!
//! the network is firmly non-expansive, hence has the Lipschitz constant 1, whatever its depth and the size of the image.
//!
//! Proof. No term of the sum in (3) is above zero. Nor is the first: `w_1 (1 / tau - l) <= 2 w_0 (1 / tau - l) <= 2 w_0 (1 - l)`, where
//! `l <= ||L||^2 <= 1 / tau`. []
//!
//! **Otherwise.** `||dx||^2 - <dz, dx> >= -||dz||^2 / 4` for all `dx`, so that by (1) `A_k <= (A_{k-1} + ||dz||^2 / 2) / q_k`, from `A_0 <=
//! max_l l (1 / tau - l) ||dz||^2`. That bounds the right-hand side of (3), by `2 W D ||dz||^2` say, and
//!
//! ```text
//! ||dx^|| <= (1 + sqrt(1 + 4 D)) / 2 ||dz||.
//! ```
//!
//! For plain dual forward-backward `D = A_{K-2} / 2`. With clips, `p_k = 1`, this grows like the root of the depth, and with slopes of
//! at most `p < 1` not at all: `A_k` stays below `1 / (2 (q - 1))` if it starts there.
//!
//! Everything is decided by numbers of the network: that operators and steps are equal, `tau N^2 <= 1` with `N` a bound of the norm
//! on images of any size, the steepest slopes, and the weights that follow from `beta_k`. Mirrored borders are no part of it, since
//! mirroring enlarges a difference at the edge of a picture: networks must have none. With stride 2 pictures with odd sides are mirrored by
//! a pixel, so it must be 1.

use crate::Real;
use crate::network::{LayerMemory, Network};

/// What is above zero by no more than this share is rounding.
const ROUNDING: f64 = 1e-12;

/// By how much `||dx^||^2` may exceed `<dz, dx^>`: `D` above, for `||dz|| = 1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Excess(f64);

impl Excess {
    /// That of a network all of whose operators have at most this norm; none where the proof does not apply.
    pub fn of<T: Real>(network: &Network<T>, norm: f64) -> Option<Self> {
        let tau = network.tau[0].to_double();
        let tied = network.has_one_operator() && network.tau.iter().all(|other| *other == network.tau[0]);
        let as_is = !network.bounded && network.border == 0 && network.architecture().stride() == 1;
        let slopes: Vec<f64> = network.activation.iter().map(|s| s.steepest().to_double()).collect();
        let proxes = slopes.iter().all(|p| *p <= 1.0) && !network.redescends();
        let largest = norm * norm;
        if !(tied && as_is && proxes && tau * largest <= 1.0) {
            return None;
        }
        let weights = weights(network)?;
        let start = |w0: f64, w1: f64| most(w1 / tau - 2.0 * w0, w1 - 2.0 * w0, largest);
        let (mut excess, mut a) = (start(weights[0], weights[1]), start(0.0, 1.0));
        for (weights, p) in weights[1..].windows(2).zip(slopes) {
            let q = 2.0 / p - 1.0;
            a = (a + 0.5) / q;
            let over = weights[1] - q * weights[0];
            if over > ROUNDING * weights[1] {
                excess += over * a;
            }
        }
        Some(Self(if excess > ROUNDING { excess / 2.0 } else { 0.0 }))
    }

    /// The Lipschitz constant that follows.
    pub fn bound(self) -> f64 {
        (1.0 + (1.0 + 4.0 * self.0).sqrt()) / 2.0
    }

    /// Whether the network is firmly non-expansive.
    pub fn is_none(self) -> bool {
        self.0 <= 0.0
    }
}

/// The largest `l (a - b l)` for `l` between 0 and `largest`.
fn most(a: f64, b: f64, largest: f64) -> f64 {
    let at = |l: f64| l * (a - b * l);
    let top = if b > 0.0 { (a / (2.0 * b)).clamp(0.0, largest) } else { 0.0 };
    at(0.0).max(at(largest)).max(at(top))
}

/// `w_0..w_{K-1}`: how much of each iterate is in the output, 1 in all; none where the layers do not see the iterates
/// themselves.
fn weights<T: Real>(network: &Network<T>) -> Option<Vec<f64>> {
    let depth = network.theta.len() - 1;
    let memory = |k| network.unrolling.layer_memory::<f64>(k);
    let sees_iterate = |k| {
        let LayerMemory { inertia, memory, extrapolation } = memory(k);
        inertia == 0.0 && (extrapolation * (1.0 - memory) - memory).abs() <= ROUNDING
    };
    if !(1..depth).all(sees_iterate) {
        return None;
    }
    let mut weights = vec![0.0; depth];
    let mut rest = 1.0;
    for k in (1..=depth).rev() {
        let memory = memory(k).memory;
        weights[k - 1] = rest * (1.0 - memory);
        rest *= memory;
    }
    Some(weights)
}
