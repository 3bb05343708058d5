//! The scalar, `f32` for work and `f64` for checking, and sums over many of them.

use num_traits::{Float, NumAssign};
use std::fmt::{Debug, Display};
use std::iter::Sum;

/// A floating-point number the mathematics is written in.
pub trait Real:
    Float + NumAssign + Sum + Default + bytemuck::Pod + Send + Sync + Debug + Display + 'static
{
    /// Rounds an `f64` constant.
    fn of(x: f64) -> Self;
    /// Widens to `f64`.
    fn to_double(self) -> f64;

    /// `c <- scale a b + keep c` for matrices of `m x k`, `k x n` and `m x n` numbers, each with the strides of its rows and
    /// columns.
    ///
    /// # Safety
    /// All numbers of the matrices are there, and nobody else touches those of `c`.
    unsafe fn gemm(
        shape: [usize; 3],
        scales: (Self, Self),
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        c: (*mut Self, isize, isize),
    );
}

/// The product of the crate `matrixmultiply`.
type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    T,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    *mut T,
    isize,
    isize,
);

/// Safety: that of [`Real::gemm`].
unsafe fn any_gemm<T>(
    gemm: Gemm<T>,
    [m, k, n]: [usize; 3],
    (scale, keep): (T, T),
    a: (*const T, isize, isize),
    b: (*const T, isize, isize),
    c: (*mut T, isize, isize),
) {
    // SAFETY: the caller's promise.
    unsafe { gemm(m, k, n, scale, a.0, a.1, a.2, b.0, b.1, b.2, keep, c.0, c.1, c.2) };
}

impl Real for f32 {
    unsafe fn gemm(
        shape: [usize; 3],
        scales: (Self, Self),
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        c: (*mut Self, isize, isize),
    ) {
        // SAFETY: the caller's promise.
        unsafe { any_gemm(matrixmultiply::sgemm, shape, scales, a, b, c) };
    }

    fn of(x: f64) -> Self {
        x as f32
    }
    fn to_double(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    unsafe fn gemm(
        shape: [usize; 3],
        scales: (Self, Self),
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        c: (*mut Self, isize, isize),
    ) {
        // SAFETY: the caller's promise.
        unsafe { any_gemm(matrixmultiply::dgemm, shape, scales, a, b, c) };
    }

    fn of(x: f64) -> Self {
        x
    }
    fn to_double(self) -> f64 {
        self
    }
}

/// `c <- a b` for matrices of `m x k`, `k x n` and `m x n` numbers, row by row, on this thread; `a` may be stored transposed.
pub(crate) fn product<T: Real>([m, k, n]: [usize; 3], (a, transposed): (&[T], bool), b: &[T], c: &mut [T]) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "the matrices do not fit");
    let strides = if transposed { (1, m as isize) } else { (k as isize, 1) };
    let (a, b) = ((a.as_ptr(), strides.0, strides.1), (b.as_ptr(), n as isize, 1));
    // SAFETY: all numbers were asserted to be there, and `c` is lent to nobody else.
    unsafe { T::gemm([m, k, n], (T::one(), T::zero()), a, b, (c.as_mut_ptr(), n as isize, 1)) };
}

/// Sums are taken in `f64` in a fixed order, as so many interleaved partial sums: they vectorise, and a value summed over a
/// megapixel in `f32` keeps its digits.
const LANES: usize = 8;

/// Whether `f(a_i)` for any `i`: without a branch for each number, so that it vectorises.
pub(crate) fn any<T: Real>(a: &[T], f: impl Fn(T) -> bool) -> bool {
    a.chunks(256).any(|chunk| chunk.iter().fold(false, |found, &a| found | f(a)))
}

/// `sum_i f(a_i)`.
pub(crate) fn sum1<T: Real>(a: &[T], f: impl Fn(T) -> f64) -> f64 {
    sum3(a, a, a, |a, _, _| f(a))
}

/// `sum_i f(a_i, b_i)`.
#[inline(always)]
pub(crate) fn sum2<T: Real>(a: &[T], b: &[T], f: impl Fn(T, T) -> f64) -> f64 {
    sum3(a, b, b, |a, b, _| f(a, b))
}

/// `sum_i f(a_i, b_i, c_i)`.
#[inline(always)]
pub(crate) fn sum3<T: Real>(a: &[T], b: &[T], c: &[T], f: impl Fn(T, T, T) -> f64) -> f64 {
    assert!(a.len() == b.len() && a.len() == c.len(), "a sum over fields of different lengths");
    let mut lanes = [0.0; LANES];
    let (a, b, c) = (a.chunks_exact(LANES), b.chunks_exact(LANES), c.chunks_exact(LANES));
    let (rest_a, rest_b, rest_c) = (a.remainder(), b.remainder(), c.remainder());
    for ((a, b), c) in a.zip(b).zip(c) {
        for (((lane, &a), &b), &c) in lanes.iter_mut().zip(a).zip(b).zip(c) {
            *lane += f(a, b, c);
        }
    }
    for (((lane, &a), &b), &c) in lanes.iter_mut().zip(rest_a).zip(rest_b).zip(rest_c) {
        *lane += f(a, b, c);
    }
    lanes.iter().sum()
}

/// `exp x` to the last digits, for `x` from -700 to 700 and as there beyond: without a branch, so that it vectorises.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    /// What is added to such a number is rounded to an integer, and stands in its last bits.
    const POINT: f64 = 6_755_399_441_055_744.0;
    /// `ln 2`, first what has zeros at its end.
    const LN2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    let x = if x < -700.0 { -700.0 } else { x };
    let x = if x > 700.0 { 700.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + POINT;
    let n = shifted - POINT;
    let r = x - n * LN2[0] - n * LN2[1];
    // 1/k! of the series.
    let mut sum = 1.0 / 6_227_020_800.0;
    for factor in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = sum * r + factor;
    }
    sum * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// `<a, b>` in `f64`.
#[inline(always)]
pub fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    sum2(a, b, |a, b| a.to_double() * b.to_double())
}

/// `||a||^2` in `f64`.
pub fn norm_squared<T: Real>(a: &[T]) -> f64 {
    sum1(a, |a| a.to_double() * a.to_double())
}

#[cfg(test)]
mod tests {
    #[test]
    fn exponentials_are_right_to_the_last_digits() {
        for i in -7000..=7000 {
            let x = 0.1 * f64::from(i) + 1e-3;
            let (ours, theirs) = (super::exp(x), x.clamp(-700.0, 700.0).exp());
            assert!((ours / theirs - 1.0).abs() < 1e-15, "{x}: {ours} {theirs}");
        }
        assert_eq!(super::exp(0.0), 1.0);
        assert!(super::exp(f64::NAN).is_nan());
    }
}
