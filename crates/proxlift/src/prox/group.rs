//! Groups of consecutive planes, pixel by pixel: what the ball and the norm of a group share.
//!
//! The entries of a group lie a plane apart, so the work goes through blocks of pixels that fit on the stack: every
//! inner loop runs along a row of memory and vectorises.

use super::threshold::{cast, validate};
use crate::{Real, Result};
use std::ops::Range;

pub(super) const BLOCK: usize = 256;

/// `J` planes in groups of `size` consecutive ones, and a threshold for all groups or for each.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Groups<T> {
    pub(super) planes: usize,
    pub(super) size: usize,
    pub(super) thresholds: Vec<T>,
}

impl<T: Real> Groups<T> {
    pub(super) fn new(planes: usize, size: usize, thresholds: Vec<T>) -> Result<Self> {
        validate(&thresholds)?;
        refuse!(planes == 0 || size == 0 || !planes.is_multiple_of(size) =>
            "{planes} planes can't be split into groups of {size}");
        refuse!(thresholds.len() != 1 && thresholds.len() != planes / size =>
            "{} thresholds given for {} groups: give one, or one per group", thresholds.len(), planes / size);
        Ok(Self { planes, size, thresholds })
    }

    pub(super) fn validate(&self) -> Result<()> {
        Self::new(self.planes, self.size, self.thresholds.clone()).map(drop)
    }

    pub(super) fn cast<U: Real>(&self) -> Groups<U> {
        Groups { planes: self.planes, size: self.size, thresholds: cast(&self.thresholds) }
    }

    /// Every group of a field of `len` entries, in blocks of pixels.
    pub(super) fn blocks(&self, len: usize) -> impl Iterator<Item = Block<T>> {
        assert!(
            len.is_multiple_of(self.planes),
            "a field of {len} entries does not have {} planes",
            self.planes
        );
        let pixels = len / self.planes;
        (0..self.planes / self.size).flat_map(move |group| {
            let threshold = self.thresholds[group % self.thresholds.len()];
            (0..pixels).step_by(BLOCK).map(move |first| Block {
                threshold,
                start: group * self.size * pixels + first,
                stride: pixels,
                size: self.size,
                len: BLOCK.min(pixels - first),
            })
        })
    }
}

/// `out(p) = a(p) g(p) + b(p) v(p)` with `(a, b)` by `factors(threshold, ||v(p)||, <v(p), g(p)>)`.
pub(super) fn pull_groups<T: Real>(
    groups: &Groups<T>,
    (v, g, out): (&[T], &[T], &mut [T]),
    factors: impl Fn(T, T, T) -> (T, T),
) {
    assert!(v.len() == g.len() && v.len() == out.len(), "the fields of a pullback have different lengths");
    let (mut a, mut b) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
    for block in groups.blocks(v.len()) {
        block.norms(v, &mut a);
        block.inner(v, g, &mut b);
        a.iter_mut().zip(&mut b).for_each(|(a, b)| (*a, *b) = factors(block.threshold, *a, *b));
        for range in block.ranges() {
            let fields = out[range.clone()].iter_mut().zip(&g[range.clone()]).zip(&v[range]);
            fields.zip(a.iter().zip(&b)).for_each(|(((out, &g), &v), (&a, &b))| *out = a * g + b * v);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block<T> {
    pub(super) threshold: T,
    start: usize,
    stride: usize,
    size: usize,
    pub(super) len: usize,
}

impl<T: Real> Block<T> {
    /// Where the block's pixels lie in each plane of the group.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let Self { start, stride, size, len, .. } = *self;
        (0..size).map(move |plane| start + plane * stride..start + plane * stride + len)
    }

    /// `out(p) = <a(p), b(p)>`, the inner product over the group.
    pub(super) fn inner(&self, a: &[T], b: &[T], out: &mut [T; BLOCK]) {
        out.fill(T::zero());
        for range in self.ranges() {
            out.iter_mut().zip(&a[range.clone()]).zip(&b[range]).for_each(|((out, &a), &b)| *out += a * b);
        }
    }

    /// `out(p) = ||u(p)||`, the l2 norm over the group.
    pub(super) fn norms(&self, u: &[T], out: &mut [T; BLOCK]) {
        self.inner(u, u, out);
        out.iter_mut().for_each(|out| *out = out.sqrt());
    }

    /// `u(p) <- factors(p) u(p)`.
    pub(super) fn scale(&self, factors: &[T; BLOCK], u: &mut [T]) {
        for range in self.ranges() {
            u[range].iter_mut().zip(factors).for_each(|(u, &factor)| *u *= factor);
        }
    }
}
