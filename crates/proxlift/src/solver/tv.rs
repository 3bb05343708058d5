//! Total-variation denoising: the baseline the paper's networks have to beat.
//!
//! L. Rudin, S. Osher, E. Fatemi, "Nonlinear total variation based noise removal algorithms", 1992.

use super::{DualForwardBackward, DualInfo, DualParams, Inertia, StopRule, Watch};
use crate::prox::{BoxClip, L2Ball, Prox};
use crate::{Real, Result, operator::FiniteDifferences};
use std::ops::ControlFlow;

/// How the differences at a pixel are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalVariation {
    /// `sum |dx| + |dy|`, channel by channel.
    Anisotropic,
    /// `sum sqrt(dx^2 + dy^2)`, channel by channel.
    Isotropic,
    /// `sum sqrt(sum_c dx_c^2 + dy_c^2)`: one norm over all channels, so that their edges meet. The same as
    /// [`TotalVariation::Isotropic`] for grey images.
    Vectorial,
}

/// The parameters of [`total_variation`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TvParams {
    /// The extrapolation of the dual iteration.
    pub inertia: Inertia,
    /// The stopping rule.
    pub stop: StopRule,
}

impl Default for TvParams {
    fn default() -> Self {
        Self { inertia: Inertia::ChambolleDossal { a: 4.0 }, stop: StopRule::default() }
    }
}

/// `argmin_x 1/2 ||x - z||^2 + lambda TV(x)` for the planar image `z`, `[c][y][x]`, with how the solver ended.
///
/// Dual forward-backward on [`FiniteDifferences`], whose norm is known; `g*` is the indicator of a box (anisotropic)
/// or of balls (isotropic, vectorial). [`Denoiser::total_variation`](crate::Denoiser::total_variation) chooses kind and
/// weight for a picture.
///
/// ```
/// use proxlift::solver::{TotalVariation, TvParams, total_variation};
/// let z = [0.0f64, 0.1, 0.0, 1.0, 0.9, 1.0];
/// let (x, _) = total_variation(&z, 1, 1, 6, 0.1, TotalVariation::Isotropic, &TvParams::default())?;
/// // Each half becomes flat, and the edge stays.
/// assert!((x[0] - x[2]).abs() < 1e-3 && (x[3] - x[5]).abs() < 1e-3 && x[3] - x[2] > 0.7);
/// # Ok::<(), proxlift::Error>(())
/// ```
/// Fails when the sizes do not fit, `lambda` is negative or not finite, a parameter is out of range, or `z` is not
/// finite.
pub fn total_variation<T: Real>(
    z: &[T],
    channels: usize,
    height: usize,
    width: usize,
    lambda: T,
    kind: TotalVariation,
    params: &TvParams,
) -> Result<(Vec<T>, DualInfo)> {
    watched_total_variation(z, (channels, height, width), lambda, kind, params, &mut |_| {
        ControlFlow::Continue(())
    })
}

/// [`total_variation`] for an image of `(channels, height, width)`; `watch` may end it.
pub fn watched_total_variation<T: Real>(
    z: &[T],
    (channels, height, width): (usize, usize, usize),
    lambda: T,
    kind: TotalVariation,
    params: &TvParams,
    watch: &mut Watch<'_>,
) -> Result<(Vec<T>, DualInfo)> {
    let differences = FiniteDifferences::new(channels, height, width)?;
    refuse!(z.len() != channels * height * width =>
        "{} pixels given for an image of {channels} channels and {height} x {width} pixels", z.len());
    let planes = 2 * channels;
    let step = DualParams::for_norm(T::of(differences.norm()), params.inertia, params.stop);
    let mut solver = DualForwardBackward::new(&differences);
    let conjugate: Box<dyn Prox<T>> = match kind {
        TotalVariation::Anisotropic => Box::new(BoxClip::symmetric(vec![lambda])?),
        TotalVariation::Isotropic => Box::new(L2Ball::new(planes, 2, vec![lambda])?),
        TotalVariation::Vectorial => Box::new(L2Ball::new(planes, planes, vec![lambda])?),
    };
    let info = solver.solve_watched(&differences, &*conjugate, z, &step, watch)?;
    Ok((solver.into_x(), info))
}
