//! Pixels that are known, and those that are not.

use super::{LinearOperator, Resolvent};
use crate::{Real, Result};

/// `(M x)_i = x_i` where it is known, else 0; its norm is 1.
///
/// ```
/// use proxlift::operator::{LinearOperator, Mask};
/// let mut y = [9.0f32; 3];
/// Mask::new(vec![true, false, true])?.apply(&[1.0, 2.0, 3.0], &mut y);
/// assert_eq!(y, [1.0, 0.0, 3.0]);
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    known: Vec<bool>,
}

impl Mask {
    /// Of so many entries. Fails when none is known.
    pub fn new(known: Vec<bool>) -> Result<Self> {
        refuse!(!known.contains(&true) => "the mask has no known pixel: there is nothing to restore from");
        Ok(Self { known })
    }

    /// The mosaic of a camera, whose pixels see one colour each: `pattern` names those of two by two pixels, such as `rggb`,
    /// row by row. Of pictures with three channels.
    /// Fails when it is not of four letters out of `r`, `g` and `b`.
    pub fn mosaic(pattern: &str, (height, width): (usize, usize)) -> Result<Self> {
        let channel = |letter: char| "rgb".find(letter.to_ascii_lowercase());
        let seen: Option<Vec<usize>> = pattern.chars().map(channel).collect();
        let seen = seen.filter(|seen| seen.len() == 4).ok_or_else(|| {
            invalid!("the pattern {pattern} is not of four letters such as rggb, bggr, grbg or gbrg")
        })?;
        let place = |i: usize| (i / (height * width), i / width % height, i % width);
        Self::new(
            (0..3 * height * width)
                .map(|i| {
                    let (c, y, x) = place(i);
                    seen[2 * (y % 2) + x % 2] == c
                })
                .collect(),
        )
    }

    /// Which entries are known.
    pub fn known(&self) -> &[bool] {
        &self.known
    }
}

impl<T: Real> LinearOperator<T> for Mask {
    fn domain_len(&self) -> usize {
        self.known.len()
    }

    fn range_len(&self) -> usize {
        self.known.len()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        assert!(x.len() == self.known.len() && y.len() == x.len(), "the mask is for another size");
        for ((y, &x), &known) in y.iter_mut().zip(x).zip(&self.known) {
            *y = if known { x } else { T::zero() };
        }
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        self.apply(y, x);
    }
}

impl<T: Real> Resolvent<T> for Mask {
    fn resolve(&self, tau: T, b: &[T], x: &mut [T]) {
        assert!(b.len() == self.known.len() && x.len() == b.len(), "the mask is for another size");
        let factor = T::one() / (T::one() + tau);
        for ((x, &b), &known) in x.iter_mut().zip(b).zip(&self.known) {
            *x = if known { factor * b } else { b };
        }
    }
}
