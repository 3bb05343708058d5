//! What stands for the matrix unit where there is none to be had: it is never called, since there is no [`Unit`].

use super::epilogue::Epilogue;
use super::product::Place;
use super::unit::Unit;
use fearless_simd::Level;
use std::ops::Range;

#[derive(Clone, Debug, Default)]
pub struct Matrix;

impl Matrix {
    pub fn pack(&mut self, _: usize, _: usize, _: impl Fn(usize, usize) -> f32) {}
}

#[derive(Clone, Debug)]
pub struct Taps;

impl Taps {
    pub fn new(_: &[usize], _: usize) -> Self {
        Self
    }
}

pub fn product<E: Epilogue>(
    (unit, _): (Unit, Level),
    _: &Matrix,
    _: (&[f32], &[usize]),
    _: Range<usize>,
    _: Place,
    _: &mut E,
) {
    match unit {}
}

pub fn correlate<D>(unit: Unit, _: f32, _: D, _: (&[f32], &Taps), _: usize, _: &mut [f32]) {
    match unit {}
}

pub mod halves {
    use super::super::activation::PackedActivation;
    use super::super::epilogue::{Epilogue, memory};
    use super::super::learned::Kept;
    use fearless_simd::{Simd, prelude::*};

    pub struct Half<'a> {
        pub v: &'a [u16],
        pub u: &'a mut [u16],
    }

    impl Kept for Half<'_> {
        const WANTS_ACTIVATED: bool = false;

        fn len(&self) -> usize {
            self.v.len().min(self.u.len())
        }

        unsafe fn load<S: Simd>(&self, simd: S, _: usize) -> S::f32s {
            S::f32s::splat(simd, 0.0)
        }

        fn prefetch(&self, _: usize) {}

        unsafe fn activated<S: Simd>(&mut self, _: usize, _: S::f32s) {}
    }

    pub struct Forward<'a> {
        pub u: &'a mut [f32],
        pub v: &'a mut [u16],
        #[expect(dead_code)]
        pub activation: &'a PackedActivation,
        pub mask: &'a [f32],
    }

    // SAFETY: source and planes are the same slice.
    unsafe impl Epilogue for Forward<'_> {
        memory!(self, Some(self.u) => self.u, self.v, self.mask);
    }

    pub fn round(_: &[f32], _: &mut [u16]) {}
}
