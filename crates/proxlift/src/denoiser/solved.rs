//! A network whose layers are all the same, run to its fixed point: a proximity operator, with a proof of how near it is.

use super::progress::{Progress, step};
use crate::engine::Engine;
use crate::fixed_point::FixedPoint;
use crate::image::Image;
use crate::network::Network;
use crate::solver::StopRule;
use crate::{Error, Result, memory};
use std::ops::Range;

/// Larger pictures are solved in parts of this side, which see so many pixels more: what is further away changes a pixel by less
/// than rounding to 8 bits does.
const PART: usize = 640;
const AROUND: usize = 64;

/// The most iterations, and how often the gap is measured.
const MOST: usize = 5000;
const EVERY: usize = 10;

/// What is proven of a result that was [solved](super::Denoiser::tolerance) for.
#[derive(Clone, Copy, Debug, PartialEq, Default, serde::Serialize)]
pub struct Proof {
    /// Iterations, of the part of the picture that took the most.
    pub iterations: usize,
    /// How much lower than it is the objective may be, as a share of it, of the part where that is most: the duality gap, or where the
    /// regulariser is weakly convex what the gradient allows.
    pub gap: f64,
    /// Parts that the picture was solved in, channel by channel where the network is for grey pictures.
    pub parts: usize,
}

/// Denoises a picture to a duality gap of at most `tolerance` of the objective.
pub(super) fn denoise(
    (engine, network): (&dyn Engine<f32>, &Network<f32>),
    noisy: &Image,
    tolerance: f64,
    progress: &mut Progress<'_>,
) -> Result<(Image, Proof)> {
    let limit = FixedPoint::of(network)?;
    let (colours, (channels, height, width)) = (limit.theta.channels(), noisy.shape());
    let planes: Vec<Range<usize>> = (0..channels).step_by(colours).map(|c| c..c + colours).collect();
    let parts: Vec<_> = (0..height)
        .step_by(PART)
        .flat_map(|y| (0..width).step_by(PART).map(move |x| (span(y, height), span(x, width))))
        .collect();
    let (mut result, mut proof) =
        (noisy.clone(), Proof { parts: parts.len() * planes.len(), ..Proof::default() });
    step(progress, 0, proof.parts)?;
    let mut done = 0;
    for ((rows, seen_rows), (columns, seen_columns)) in parts {
        let seen = noisy.crop(seen_rows.clone(), seen_columns.clone());
        let (mut estimate, pixels) = (seen.clone(), seen.pixels());
        let size = (seen.height(), seen.width());
        check_memory(limit.theta.features(), size)?;
        let regulariser = limit.regulariser(engine, size)?;
        for planes in &planes {
            let samples = planes.start * pixels..planes.end * pixels;
            let stop = StopRule::Gap { tolerance, max_iterations: MOST, check_every: EVERY };
            let mut watch = |_| progress(done, proof.parts);
            let (x, info) = regulariser.prox(&seen.data()[samples.clone()], stop, &mut watch)?;
            let gap = info.gap / info.primal.max(f64::MIN_POSITIVE);
            if gap > tolerance {
                tracing::warn!(
                    "after {MOST} iterations the duality gap is {gap:.1e} of the objective, more than was asked for"
                );
            }
            estimate.data_mut()[samples].copy_from_slice(&x);
            proof =
                Proof { iterations: proof.iterations.max(info.iterations), gap: proof.gap.max(gap), ..proof };
            done += 1;
            step(progress, done, proof.parts)?;
        }
        let inside =
            |wanted: &Range<usize>, seen: &Range<usize>| wanted.start - seen.start..wanted.end - seen.start;
        let wanted = estimate.crop(inside(&rows, &seen_rows), inside(&columns, &seen_columns));
        result.put((rows.start, columns.start), &wanted);
    }
    Ok((result, proof))
}

/// The pixels of a part, and those that it sees.
fn span(start: usize, length: usize) -> (Range<usize>, Range<usize>) {
    let end = (start + PART).min(length);
    (start..end, start.saturating_sub(AROUND)..(end + AROUND).min(length))
}

/// Four fields of features.
fn check_memory(features: usize, (height, width): (usize, usize)) -> Result<()> {
    let bytes = [features, height, width].iter().fold(16u64, |bytes, &n| bytes.saturating_mul(n as u64));
    memory::check("the fixed point of this network on a part of the picture", bytes)
}

/// Refuses what is no tolerance, and a network that has no fixed point of this kind.
pub(super) fn check(network: Option<&Network<f32>>, tolerance: f64) -> Result<()> {
    refuse!(!(tolerance.is_finite() && tolerance > 0.0) => "the tolerance is {tolerance}, but it must be above zero");
    let Some(network) = network else {
        return Err(Error::invalid(
            "a tolerance is for networks whose layers are all the same, such as convex",
        ));
    };
    FixedPoint::of(network).map(drop).map_err(|e| {
        invalid!("a tolerance is for networks whose layers are all the same, such as convex: {e}")
    })
}
