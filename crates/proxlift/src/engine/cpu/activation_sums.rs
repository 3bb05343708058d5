//! The sums from which activations learn.

// Iterators over arrays of vectors would move these through memory.
#![allow(clippy::needless_range_loop)]

use super::{activation::PackedActivation, vectors::lesser};
use crate::{field::LANES, prox::PiecewiseGradient};
use fearless_simd::{Simd, prelude::*};

/// Where the gradients of a layer's activations are summed: for each feature `dc`, then `da_m, dl_m`, a vector each.
pub struct ActivationSums<'a> {
    pub sums: &'a mut [f32],
    /// One at pixels: in the gaps there is nothing to learn.
    pub mask: &'a [f32],
}

impl ActivationSums<'_> {
    /// `s(v)` and `s(w)` of feature `j`; adds `weight (dq*(v) - dq*(w))`, but for factors that [`ActivationSums::total`] puts in.
    ///
    /// All of them are even: with `a = |v|`, `b = |w|`, `p = min(a, l)`, `q = min(b, l)`, the difference of the Hubers is
    /// `1/2 ((p - q)(a + b - p - q) + (p + q)(a - b))`, and that of `(|.| - l)_+` is `(a - b) - (p - q)`.
    #[inline(always)]
    pub fn secant<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        s: &PackedActivation,
        j: usize,
        v: [S::f32s; N],
        w: [S::f32s; N],
        weight: f32,
    ) -> [[S::f32s; N]; 2] {
        let zero = S::f32s::splat(simd, 0.0);
        let weight = S::f32s::splat(simd, weight);
        let (c, pieces) = s.feature(j);
        let c = S::f32s::splat(simd, c);
        let sums = &mut self.sums[j * s.stride() * LANES..][..s.stride() * LANES];
        let (mut both, mut apart, mut now, mut then) = ([zero; N], [zero; N], [zero; N], [zero; N]);
        let mut by_slope = zero;
        for n in 0..N {
            let (a, b) = (v[n].abs(), w[n].abs());
            (both[n], apart[n], now[n], then[n]) = (a + b, a - b, c * a, c * b);
            by_slope = both[n].mul_add(apart[n], by_slope);
        }
        add(simd, &mut sums[..LANES], weight * by_slope);
        for (sums, &[a, l]) in sums[LANES..].chunks_exact_mut(2 * LANES).zip(pieces) {
            let (a, l) = (S::f32s::splat(simd, a), S::f32s::splat(simd, l));
            // Two sums in turns: one would wait for itself.
            let (mut by_clip, mut by_knot) = ([zero; 2], [zero; 2]);
            for n in 0..N {
                let (p, q) = (lesser::<S>(v[n].abs(), l), lesser::<S>(w[n].abs(), l));
                let (moved, sum) = (p - q, p + q);
                now[n] = p.mul_add(a, now[n]);
                then[n] = q.mul_add(a, then[n]);
                by_clip[0] = moved.mul_add(both[n] - sum, by_clip[0]);
                by_clip[1] = sum.mul_add(apart[n], by_clip[1]);
                by_knot[n % 2] += apart[n] - moved;
            }
            let (clips, knots) = sums.split_at_mut(LANES);
            add(simd, clips, weight * (by_clip[0] + by_clip[1]));
            add(simd, knots, weight * (by_knot[0] + by_knot[1]));
        }
        for n in 0..N {
            (now[n], then[n]) = (now[n].copysign(v[n]), then[n].copysign(w[n]));
        }
        [now, then]
    }

    /// Adds the derivative of `s(v)` times `back`, likewise.
    #[inline(always)]
    pub fn backprop<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        s: &PackedActivation,
        j: usize,
        v: [S::f32s; N],
        back: [S::f32s; N],
    ) {
        let zero = S::f32s::splat(simd, 0.0);
        let sums = &mut self.sums[j * s.stride() * LANES..][..s.stride() * LANES];
        let mut by_slope = zero;
        for n in 0..N {
            by_slope = (back[n] + back[n]).mul_add(v[n], by_slope);
        }
        add(simd, &mut sums[..LANES], by_slope);
        for (sums, &[_, l]) in sums[LANES..].chunks_exact_mut(2 * LANES).zip(s.feature(j).1) {
            let l = S::f32s::splat(simd, l);
            let (mut by_clip, mut by_knot) = (zero, zero);
            for n in 0..N {
                let p = v[n].min(l).max(-l);
                by_clip = (back[n] + back[n]).mul_add(p, by_clip);
                by_knot += v[n].simd_gt(l).select(back[n], zero) - v[n].simd_lt(-l).select(back[n], zero);
            }
            let (clips, knots) = sums.split_at_mut(LANES);
            add(simd, clips, by_clip);
            add(simd, knots, by_knot);
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
