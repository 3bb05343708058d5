//! The sums from which activations learn.

use super::activation::PackedActivation;
use crate::{field::LANES, prox::PiecewiseGradient};
use fearless_simd::{Simd, prelude::*};

/// Where the gradients of a layer's activations are summed: for each feature `dc`, then `da_m, dl_m`, a vector each.
pub struct ActivationSums<'a> {
    pub sums: &'a mut [f32],
    /// One at pixels: in the gaps there is nothing to learn.
    pub mask: &'a [f32],
}

impl ActivationSums<'_> {
    /// Adds `dq*(v) - dq*(w)`, `w = v - back`, of feature `j`, but for factors that [`ActivationSums::total`] puts in.
    ///
    /// With `p = clip(v)`, `q = clip(w)`, the difference of the Hubers is `1/2 ((p - q)(v + w - p - q) + (p + q) back)`,
    /// and that of `(|.| - l)_+` is `|v - p| - |w - q|`.
    #[inline(always)]
    pub fn lifted<S: Simd>(&mut self, simd: S, s: &PackedActivation, j: usize, v: S::f32s, back: S::f32s) {
        self.difference(simd, s, j, [v, v - back, back], S::f32s::splat(simd, 1.0));
    }

    /// Adds half of `dq*(v + back) - dq*(v - back)`, likewise.
    #[inline(always)]
    pub fn centred<S: Simd>(&mut self, simd: S, s: &PackedActivation, j: usize, v: S::f32s, back: S::f32s) {
        self.difference(simd, s, j, [v + back, v - back, back + back], S::f32s::splat(simd, 0.5));
    }

    #[inline(always)]
    fn difference<S: Simd>(
        &mut self,
        simd: S,
        s: &PackedActivation,
        j: usize,
        [v, w, back]: [S::f32s; 3],
        weight: S::f32s,
    ) {
        let both = v + w;
        let sums = &mut self.sums[j * s.stride() * LANES..][..s.stride() * LANES];
        add(simd, &mut sums[..LANES], weight * back * both);
        for (sums, &[_, l]) in sums[LANES..].chunks_exact_mut(2 * LANES).zip(s.feature(j).1) {
            let l = S::f32s::splat(simd, l);
            let (p, q) = (v.min(l).max(-l), w.min(l).max(-l));
            let (moved, sum) = (p - q, p + q);
            let (by_clip, by_knot) = sums.split_at_mut(LANES);
            add(simd, by_clip, weight * moved.mul_add(both - sum, sum * back));
            add(simd, by_knot, weight * ((v - p).abs() - (w - q).abs()));
        }
    }

    /// Adds the derivative of `s(v)` times `back`, likewise.
    #[inline(always)]
    pub fn backprop<S: Simd>(&mut self, simd: S, s: &PackedActivation, j: usize, v: S::f32s, back: S::f32s) {
        let zero = S::f32s::splat(simd, 0.0);
        let twice = back + back;
        let sums = &mut self.sums[j * s.stride() * LANES..][..s.stride() * LANES];
        add(simd, &mut sums[..LANES], twice * v);
        for (sums, &[_, l]) in sums[LANES..].chunks_exact_mut(2 * LANES).zip(s.feature(j).1) {
            let l = S::f32s::splat(simd, l);
            let p = v.min(l).max(-l);
            let (by_clip, by_knot) = sums.split_at_mut(LANES);
            add(simd, by_clip, twice * p);
            add(simd, by_knot, v.simd_gt(l).select(back, zero) - v.simd_lt(-l).select(back, zero));
        }
    }

    /// What was summed, one number each, added to `gradient`; the sums start anew.
    pub fn total(&mut self, s: &PackedActivation, gradient: &mut [f32]) {
        for (i, sums) in self.sums.chunks_exact_mut(LANES).enumerate().take(gradient.len()) {
            let (j, part) = (i / s.stride(), i % s.stride());
            // Of the clips half, of the knots a times.
            let factor = match part {
                0 => 0.5,
                m if m % 2 == 1 => 0.5,
                m => s.feature(j).1[m / 2 - 1][0],
            };
            gradient[i] += factor * sums.iter().sum::<f32>();
            sums.fill(0.0);
        }
    }
}

/// From `dc`, then `da_m, dl_m` of each feature to the slopes, `a_m = p_m - p_{m+1}`, `c = p_{M+1}`, and the knots.
pub fn unpack_gradient(clips: &[f32], gradient: &mut PiecewiseGradient<f32>) {
    let pieces = gradient.knots.len() / (gradient.slopes.len() - gradient.knots.len());
    let features = gradient.knots.chunks_exact_mut(pieces).zip(gradient.slopes.chunks_exact_mut(pieces + 1));
    for ((knots, slopes), clips) in features.zip(clips.chunks_exact(1 + 2 * pieces)) {
        let mut last = 0.0;
        for (m, &[by_clip, by_knot]) in clips[1..].as_chunks::<2>().0.iter().enumerate() {
            slopes[m] = by_clip - last;
            knots[m] = by_knot;
            last = by_clip;
        }
        slopes[pieces] = clips[0] - last;
    }
}

/// `sums += value`.
#[inline(always)]
fn add<S: Simd>(simd: S, sums: &mut [f32], value: S::f32s) {
    let lanes = &mut sums[..S::f32s::LEN];
    (S::f32s::from_slice(simd, lanes) + value).store_slice(lanes);
}
