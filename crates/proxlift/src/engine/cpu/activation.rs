//! Activations as the kernels apply them to a vector, and the sums from which they learn.

use crate::field::LANES;
use crate::prox::{PiecewiseGradient, PiecewiseLinear};
use fearless_simd::{Simd, prelude::*};

/// An activation `s = prox_psi`, one vector of feature `j` at a time.
pub(super) trait Activation: Copy + Sync {
    /// The features that it is for.
    fn features(self) -> usize;
    /// `s(v)` of `P` times `N` vectors.
    ///
    /// # Safety
    /// There is a feature `j`. (A check here would order the kernels' sums one after the other.)
    unsafe fn apply<S: Simd, const P: usize, const N: usize>(
        self,
        simd: S,
        j: usize,
        v: [[S::f32s; N]; P],
    ) -> [[S::f32s; N]; P];
    /// `s'(v) back`, with `s' = 0` where it jumps.
    ///
    /// # Safety
    /// There is a feature `j`.
    unsafe fn derivative<S: Simd>(self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s;
}

/// The activations of a layer, packed: for each feature `c`, then `a_m, l_m` (see [`PiecewiseLinear`]).
#[derive(Clone, Debug, Default)]
pub(super) struct PackedActivation {
    coefficients: Vec<f32>,
    /// Numbers of a feature.
    stride: usize,
    /// Whether [`Clip`] does.
    pub clip: bool,
}

impl PackedActivation {
    pub(super) fn pack(&mut self, activation: &PiecewiseLinear<f32>) {
        self.stride = 1 + 2 * activation.pieces();
        self.clip = activation.is_clip();
        self.coefficients.clear();
        for j in 0..activation.features() {
            let (c, clips) = activation.clips(j);
            self.coefficients.push(c);
            self.coefficients.extend(clips.flat_map(|(a, l)| [a, l]));
        }
    }

    /// Numbers of a feature: `c`, and two for each knot.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    #[inline(always)]
    fn feature(&self, j: usize) -> (f32, &[[f32; 2]]) {
        let feature = &self.coefficients[j * self.stride..][..self.stride];
        (feature[0], feature[1..].as_chunks::<2>().0)
    }

    /// The same.
    ///
    /// # Safety
    /// There is a feature `j`.
    #[inline(always)]
    unsafe fn feature_unchecked(&self, j: usize) -> (f32, &[[f32; 2]]) {
        debug_assert!((j + 1) * self.stride <= self.coefficients.len());
        // SAFETY: the caller's promise.
        unsafe {
            let feature = self.coefficients.get_unchecked(j * self.stride..(j + 1) * self.stride);
            (*feature.get_unchecked(0), feature.get_unchecked(1..).as_chunks::<2>().0)
        }
    }
}

impl Activation for &PackedActivation {
    fn features(self) -> usize {
        self.coefficients.len() / self.stride
    }

    #[inline(always)]
    unsafe fn apply<S: Simd, const P: usize, const N: usize>(
        self,
        simd: S,
        j: usize,
        v: [[S::f32s; N]; P],
    ) -> [[S::f32s; N]; P] {
        // It is odd, and does not fall: of |v|, then with the sign of v.
        // SAFETY: the caller's promise.
        let (c, clips) = unsafe { self.feature_unchecked(j) };
        let c = S::f32s::splat(simd, c);
        let mut sums = v;
        for p in 0..P {
            for n in 0..N {
                sums[p][n] = v[p][n].abs() * c;
            }
        }
        for &[a, l] in clips {
            let (a, l) = (S::f32s::splat(simd, a), S::f32s::splat(simd, l));
            for p in 0..P {
                for n in 0..N {
                    sums[p][n] = v[p][n].abs().min(l).mul_add(a, sums[p][n]);
                }
            }
        }
        for p in 0..P {
            for n in 0..N {
                sums[p][n] = sums[p][n].copysign(v[p][n]);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn derivative<S: Simd>(self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s {
        // SAFETY: the caller's promise.
        let (c, clips) = unsafe { self.feature_unchecked(j) };
        let zero = S::f32s::splat(simd, 0.0);
        let mut slope = S::f32s::splat(simd, c);
        for &[a, l] in clips {
            let inside = v.abs().simd_lt(S::f32s::splat(simd, l));
            slope += inside.select(S::f32s::splat(simd, a), zero);
        }
        slope * back
    }
}

/// Where the gradients of a layer's activations are summed: for each feature `dc`, then `da_m, dl_m`, a vector each.
pub(super) struct Learn<'a> {
    pub sums: &'a mut [f32],
    /// One at pixels: in the gaps there is nothing to learn.
    pub mask: &'a [f32],
}

impl Learn<'_> {
    /// Adds `dq*(v) - dq*(w)`, `w = v - back`, of feature `j`, but for factors that [`Learn::total`] puts in.
    ///
    /// With `p = clip(v)`, `q = clip(w)`, the difference of the Hubers is `1/2 ((p - q)(v + w - p - q) + (p + q) back)`,
    /// and that of `(|.| - l)_+` is `|v - p| - |w - q|`.
    #[inline(always)]
    pub(super) fn lifted<S: Simd>(
        &mut self,
        simd: S,
        s: &PackedActivation,
        j: usize,
        v: S::f32s,
        back: S::f32s,
    ) {
        let w = v - back;
        let both = v + w;
        let sums = &mut self.sums[j * s.stride * LANES..][..s.stride * LANES];
        add(simd, &mut sums[..LANES], back * both);
        for (sums, &[_, l]) in sums[LANES..].chunks_exact_mut(2 * LANES).zip(s.feature(j).1) {
            let l = S::f32s::splat(simd, l);
            let (p, q) = (v.min(l).max(-l), w.min(l).max(-l));
            let (moved, sum) = (p - q, p + q);
            let (by_clip, by_knot) = sums.split_at_mut(LANES);
            add(simd, by_clip, moved.mul_add(both - sum, sum * back));
            add(simd, by_knot, (v - p).abs() - (w - q).abs());
        }
    }

    /// Adds the derivative of `s(v)` times `back`, likewise.
    #[inline(always)]
    pub(super) fn backprop<S: Simd>(
        &mut self,
        simd: S,
        s: &PackedActivation,
        j: usize,
        v: S::f32s,
        back: S::f32s,
    ) {
        let zero = S::f32s::splat(simd, 0.0);
        let twice = back + back;
        let sums = &mut self.sums[j * s.stride * LANES..][..s.stride * LANES];
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
    pub(super) fn total(&mut self, s: &PackedActivation, gradient: &mut [f32]) {
        for (i, sums) in self.sums.chunks_exact_mut(LANES).enumerate().take(gradient.len()) {
            let (j, part) = (i / s.stride, i % s.stride);
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
pub(super) fn unpack_gradient(clips: &[f32], gradient: &mut PiecewiseGradient<f32>) {
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

/// The clip of every feature, as [`PackedActivation`] has it: the paper's network needs no loop over knots.
#[derive(Clone, Copy)]
pub(super) struct Clip<'a>(pub &'a PackedActivation);

impl Clip<'_> {
    /// # Safety
    /// There is a feature `j`.
    #[inline(always)]
    unsafe fn threshold(self, j: usize) -> f32 {
        debug_assert!(3 * j + 2 < self.0.coefficients.len());
        // SAFETY: the caller's promise.
        unsafe { *self.0.coefficients.get_unchecked(3 * j + 2) }
    }
}

impl Activation for Clip<'_> {
    fn features(self) -> usize {
        self.0.features()
    }

    #[inline(always)]
    unsafe fn apply<S: Simd, const P: usize, const N: usize>(
        self,
        simd: S,
        j: usize,
        v: [[S::f32s; N]; P],
    ) -> [[S::f32s; N]; P] {
        // SAFETY: the caller's promise.
        let l = S::f32s::splat(simd, unsafe { self.threshold(j) });
        let (mut clipped, low) = (v, -l);
        for p in 0..P {
            for n in 0..N {
                clipped[p][n] = v[p][n].min(l).max(low);
            }
        }
        clipped
    }

    #[inline(always)]
    unsafe fn derivative<S: Simd>(self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s {
        // SAFETY: the caller's promise.
        let inside = v.abs().simd_lt(S::f32s::splat(simd, unsafe { self.threshold(j) }));
        inside.select(back, S::f32s::splat(simd, 0.0))
    }
}

/// No activation.
#[derive(Clone, Copy)]
pub(super) struct Identity;

impl Activation for Identity {
    fn features(self) -> usize {
        usize::MAX
    }

    #[inline(always)]
    unsafe fn apply<S: Simd, const P: usize, const N: usize>(
        self,
        _: S,
        _: usize,
        v: [[S::f32s; N]; P],
    ) -> [[S::f32s; N]; P] {
        v
    }

    #[inline(always)]
    unsafe fn derivative<S: Simd>(self, _: S, _: usize, _: S::f32s, back: S::f32s) -> S::f32s {
        back
    }
}
