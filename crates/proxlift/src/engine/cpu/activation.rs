//! Activations as the kernels apply them to a vector.

// Iterators over arrays of vectors would move these through memory.
#![allow(clippy::needless_range_loop)]

use super::vectors::lesser;
use crate::prox::PiecewiseLinear;
use fearless_simd::{Simd, prelude::*};

/// The activations of a layer, packed: for each feature `c`, then `a_m, l_m` (see [`PiecewiseLinear`]).
#[derive(Clone, Debug, Default)]
pub struct PackedActivation {
    coefficients: Vec<f32>,
    /// Numbers of a feature.
    stride: usize,
    /// The thresholds of all features, if their activations are clips and nothing else.
    clips: Vec<f32>,
}

impl PackedActivation {
    pub fn pack(&mut self, activation: &PiecewiseLinear<f32>) {
        self.stride = 1 + 2 * activation.pieces();
        self.clips.clear();
        if activation.is_clip() {
            self.clips.extend_from_slice(activation.knots());
        }
        self.coefficients.clear();
        for j in 0..activation.features() {
            let (c, clips) = activation.clips(j);
            self.coefficients.push(c);
            self.coefficients.extend(clips.flat_map(|(a, l)| [a, l]));
        }
    }

    /// Numbers of a feature: `c`, and two for each knot.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// `c`, and `a_m, l_m`, of feature `j`.
    #[inline(always)]
    pub fn feature(&self, j: usize) -> (f32, &[[f32; 2]]) {
        let feature = &self.coefficients[j * self.stride..][..self.stride];
        (feature[0], feature[1..].as_chunks::<2>().0)
    }

    /// `s(v)` of `P` times `N` vectors of feature `j`.
    #[inline(always)]
    pub fn apply<S: Simd, const P: usize, const N: usize>(
        &self,
        simd: S,
        j: usize,
        v: [[S::f32s; N]; P],
    ) -> [[S::f32s; N]; P] {
        // It is odd, and does not fall: of |v|, then with the sign of v.
        let (c, clips) = self.feature(j);
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
                    sums[p][n] = lesser::<S>(v[p][n].abs(), l).mul_add(a, sums[p][n]);
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

    /// `s'(v) back` of feature `j`, with `s' = 0` where it jumps.
    #[inline(always)]
    pub fn derivative<S: Simd>(&self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s {
        let (c, clips) = self.feature(j);
        let zero = S::f32s::splat(simd, 0.0);
        let mut slope = S::f32s::splat(simd, c);
        for &[a, l] in clips {
            let inside = v.abs().simd_lt(S::f32s::splat(simd, l));
            slope += inside.select(S::f32s::splat(simd, a), zero);
        }
        slope * back
    }
}

/// The clip of every feature: the paper's network needs no loop over knots, and its activation is applied in registers.
#[derive(Clone, Copy)]
pub struct Clip<'a> {
    thresholds: &'a [f32],
}

impl<'a> Clip<'a> {
    pub fn of(packed: &'a PackedActivation) -> Option<Self> {
        (!packed.clips.is_empty()).then_some(Self { thresholds: &packed.clips })
    }

    pub fn features(self) -> usize {
        self.thresholds.len()
    }

    /// Safety: there is a feature `j`. (A check here would order the kernels' sums one after the other.)
    #[inline(always)]
    unsafe fn threshold(self, j: usize) -> f32 {
        debug_assert!(j < self.thresholds.len());
        // SAFETY: the caller's promise.
        unsafe { *self.thresholds.get_unchecked(j) }
    }

    /// `s(v)` of `P` times `N` vectors of feature `j`.
    /// Safety: there is a feature `j`.
    #[inline(always)]
    pub unsafe fn apply<S: Simd, const P: usize, const N: usize>(
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

    /// `s'(v) back` of feature `j`, with `s' = 0` where it jumps.
    /// Safety: there is a feature `j`.
    #[inline(always)]
    pub unsafe fn derivative<S: Simd>(self, simd: S, j: usize, v: S::f32s, back: S::f32s) -> S::f32s {
        // SAFETY: the caller's promise.
        let inside = v.abs().simd_lt(S::f32s::splat(simd, unsafe { self.threshold(j) }));
        inside.select(back, S::f32s::splat(simd, 0.0))
    }
}
