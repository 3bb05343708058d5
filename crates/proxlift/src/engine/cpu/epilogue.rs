//! Where the sums of a convolution start from, and what becomes of them.

// Iterators over arrays of vectors would move these through memory.
#![allow(clippy::needless_range_loop)]

use super::activation::Clip;
use super::vectors::{load, prefetch, store};
use crate::{engine::ReverseRule, field::LANES};
use fearless_simd::{Simd, prelude::*};

/// Where sums start from and where they go, one vector of a row, which is a feature or a tap, at a time.
///
/// # Safety
/// [`source`](Epilogue::source) and [`planes`](Epilogue::planes) have at least [`len`](Epilogue::len) numbers, whenever
/// they are asked, and no other method touches memory outside its bounds as long as its own conditions hold: the kernels
/// check `len` and `rows` once, and nothing after that.
pub unsafe trait Epilogue {
    /// What sums start from, if not from zero: the features before a layer, which its adjoint reads too.
    fn source(&self) -> Option<&[f32]>;

    /// The planes that it writes and whose gaps are to be zero afterwards.
    fn planes(&mut self) -> &mut [f32];

    /// Numbers that may be touched.
    fn len(&self) -> usize;

    fn rows(&self) -> usize {
        usize::MAX
    }

    /// What the sum of the lanes from `at` on starts from.
    /// Safety: these lanes are before [`Epilogue::len`].
    #[inline(always)]
    unsafe fn start<S: Simd>(&self, simd: S, at: usize) -> S::f32s {
        match self.source() {
            // SAFETY: the source has so many numbers.
            Some(source) => unsafe { load(simd, source, at) },
            None => S::f32s::splat(simd, 0.0),
        }
    }

    /// Takes the sums of row `row`, still in registers, for `N` vectors from each `at` on.
    /// Safety: these lanes are before [`Epilogue::len`], and the row is before [`Epilogue::rows`].
    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        _: S,
        _: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        // SAFETY: the planes have so many numbers.
        unsafe { store_row::<S, P, N>(self.planes(), at, sums) };
    }

    /// What is left to do with row `row` when all rows have finished these vectors, which are still in the nearest
    /// cache. It is compiled once where [`Epilogue::finish`] is compiled for every shape of a register block.
    /// Safety: as for [`Epilogue::finish`].
    #[inline(always)]
    unsafe fn after<S: Simd, const P: usize, const N: usize>(&mut self, _: S, _: usize, _: [usize; P]) {}
}

/// The source, the planes, as [`Epilogue::len`] the numbers that the shortest of all slices has, and the rows.
macro_rules! memory {
    ($self:ident, $source:expr => $planes:expr $(, $other:expr)* $(; $rows:expr)?) => {
        #[inline(always)]
        fn source(&$self) -> Option<&[f32]> {
            $source
        }

        #[inline(always)]
        fn planes(&mut $self) -> &mut [f32] {
            $planes
        }

        fn len(&$self) -> usize {
            $planes.len()$(.min($other.len()))*
        }

        $(fn rows(&$self) -> usize {
            $rows
        })?
    };
}
pub(super) use memory;

/// Safety: the lanes from each `at` on are inside `planes`.
#[inline(always)]
pub unsafe fn store_row<S: Simd, const P: usize, const N: usize>(
    planes: &mut [f32],
    at: [usize; P],
    sums: [[S::f32s; N]; P],
) {
    for p in 0..P {
        for n in 0..N {
            // SAFETY: the caller's promise.
            unsafe { store::<S>(sums[p][n], planes, at[p] + n * S::f32s::LEN) };
        }
    }
}

/// `out = sum` from zero: the planes of the taps, or the first layer.
pub struct Assign<'a>(pub &'a mut [f32]);

// SAFETY: both are the slice itself.
unsafe impl Epilogue for Assign<'_> {
    memory!(self, None => self.0);
}

/// `u <- u + sum` in place: the pull-back.
pub struct AddTo<'a>(pub &'a mut [f32]);

// SAFETY: both are the slice itself.
unsafe impl Epilogue for AddTo<'_> {
    memory!(self, Some(self.0) => self.0);
}

/// `v = u + sum`: the affine part of a layer of a batch.
pub struct WriteTo<'a> {
    pub u: &'a [f32],
    pub v: &'a mut [f32],
}

// SAFETY: `len` is that of the shorter slice.
unsafe impl Epilogue for WriteTo<'_> {
    memory!(self, Some(self.u) => self.v, self.u);
}

/// `u <- clip(u + sum)` in place: a layer of inference of the paper's network.
pub struct ClipInPlace<'a> {
    pub u: &'a mut [f32],
    pub clip: Clip<'a>,
}

// SAFETY: source and planes are the same slice, and `rows` is the number of thresholds.
unsafe impl Epilogue for ClipInPlace<'_> {
    memory!(self, Some(self.u) => self.u; self.clip.features());

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        // SAFETY: the caller's promise.
        unsafe { store_row::<S, P, N>(self.u, at, self.clip.apply(simd, row, sums)) };
    }
}

/// `v = u + sum`, `u+ = clip(v)`, both kept: a layer of training of the paper's network.
pub struct ClipForward<'a> {
    pub u: &'a [f32],
    pub v: &'a mut [f32],
    pub next: &'a mut [f32],
    pub clip: Clip<'a>,
}

// SAFETY: `len` is that of the shortest slice, and `rows` the number of thresholds.
unsafe impl Epilogue for ClipForward<'_> {
    memory!(self, Some(self.u) => self.next, self.u, self.v; self.clip.features());

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            store_row::<S, P, N>(self.v, at, sums);
            store_row::<S, P, N>(self.next, at, self.clip.apply(simd, row, sums));
        }
    }
}

/// `d <- rule(v, d + sum)` in place: the reverse sweep through a clip.
pub struct ClipBackward<'a> {
    pub d: &'a mut [f32],
    pub v: &'a [f32],
    pub clip: Clip<'a>,
    pub rule: ReverseRule<f32>,
}

// SAFETY: `len` is that of the shorter slice, and `rows` the number of thresholds.
unsafe impl Epilogue for ClipBackward<'_> {
    memory!(self, Some(self.d) => self.d, self.v; self.clip.features());

    #[inline(always)]
    unsafe fn finish<S: Simd, const P: usize, const N: usize>(
        &mut self,
        simd: S,
        row: usize,
        at: [usize; P],
        sums: [[S::f32s; N]; P],
    ) {
        for p in 0..P {
            for n in 0..N {
                let (at, back) = (at[p] + n * S::f32s::LEN, sums[p][n]);
                prefetch(self.v, at + AHEAD);
                // SAFETY: the caller's promise.
                unsafe {
                    let v = load(simd, self.v, at);
                    let d = match self.rule {
                        ReverseRule::Backprop => self.clip.derivative(simd, row, v, back),
                        ReverseRule::Lifted { .. } => {
                            let [[now, then]] = self.clip.apply(simd, row, [[v, v - back]]);
                            now - then
                        }
                        ReverseRule::Centred { .. } => {
                            let [[above, below]] = self.clip.apply(simd, row, [[v + back, v - back]]);
                            (above - below) * S::f32s::splat(simd, 0.5)
                        }
                    };
                    store::<S>(d, self.d, at);
                }
            }
        }
    }
}

/// Numbers from a vector to the one that is needed a block of pixels later.
pub const AHEAD: usize = 2 * LANES;
