//! Kernels of blurs: by name, by numbers, or from a file.

use super::npy;
use crate::{Error, Result, image::io};
use std::path::Path;
use std::str::FromStr;

/// The largest side of a kernel that is made by name.
const LARGEST: f64 = 999.0;

/// A blur: numbers that are not negative and sum to 1, around their middle, `(rows / 2, columns / 2)` rounded down.
///
/// ```
/// use proxlift::restoration::Kernel;
/// let gaussian: Kernel = "gaussian:1.6".parse()?;
/// let (rows, columns) = gaussian.size();
/// assert!(rows == columns && rows % 2 == 1);
/// assert!("box:0".parse::<Kernel>().is_err() && "motion:15,30".parse::<Kernel>().is_ok());
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    rows: usize,
    columns: usize,
    weights: Vec<f64>,
}

impl Kernel {
    /// Scales the numbers, row by row, so that they sum to 1.
    /// Fails when there are none, one is negative or not finite, or all are zero.
    pub fn new(rows: usize, columns: usize, weights: Vec<f64>) -> Result<Self> {
        refuse!(weights.is_empty() || weights.len() != rows * columns =>
            "the kernel is empty: a kernel has at least one pixel");
        refuse!(weights.iter().any(|w| !w.is_finite()) => "the kernel holds a number that is not finite");
        let least = weights.iter().fold(0.0f64, |least, w| least.min(*w));
        refuse!(least < 0.0 => "the kernel holds the negative number {least}: a blur adds light and never takes it");
        let sum: f64 = weights.iter().sum();
        refuse!(sum == 0.0 || !sum.is_finite() => "the kernel is empty: all its numbers are zero");
        Ok(Self { rows, columns, weights: weights.into_iter().map(|w| w / sum).collect() })
    }

    /// A Gaussian of this standard deviation, in pixels, cut off at five of them.
    pub fn gaussian(deviation: f64) -> Result<Self> {
        refuse!(!(deviation > 0.0 && 10.0 * deviation < LARGEST) =>
            "the deviation of the Gaussian is {deviation}, but it must be above 0 and below {:.0}", LARGEST / 10.0);
        let radius = (5.0 * deviation).ceil() as i64;
        let at = |t: i64| (-0.5 * (t as f64 / deviation).powi(2)).exp();
        Self::of(radius, |y, x| at(y) * at(x))
    }

    /// The mean of `side` by `side` pixels.
    pub fn square(side: usize) -> Result<Self> {
        refuse!(side == 0 || side as f64 > LARGEST => "the side of the box is {side}, but it must be 1 to {LARGEST}");
        Self::new(side, side, vec![1.0; side * side])
    }

    /// A line of `length` pixels at `angle` degrees, counter-clockwise from the horizontal.
    pub fn motion(length: f64, angle: f64) -> Result<Self> {
        refuse!(!((1.0..=LARGEST).contains(&length) && angle.is_finite()) =>
            "a motion of {length} pixels at {angle} degrees is none: give 1 to {LARGEST} pixels and any angle");
        const POINTS: usize = 64;
        let (radius, steps) = ((0.5 * length).ceil() as i64, POINTS * length.ceil() as usize);
        let (rise, run) = angle.to_radians().sin_cos();
        let side = (2 * radius + 1) as usize;
        let mut weights = vec![0.0; side * side];
        for step in 0..steps {
            // The middles of so many parts of the line, each shared by the four pixels around it.
            let t = ((step as f64 + 0.5) / steps as f64 - 0.5) * (length - 1.0);
            let (y, x) = (radius as f64 - t * rise, radius as f64 + t * run);
            let (top, left) = (y.floor(), x.floor());
            for (dy, dx) in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)] {
                let share = (1.0 - (y - top - dy).abs()) * (1.0 - (x - left - dx).abs());
                let (row, column) = ((top + dy) as usize, (left + dx) as usize);
                if row < side && column < side {
                    weights[row * side + column] += share;
                }
            }
        }
        Self::new(side, side, weights)
    }

    /// Cubic interpolation stretched by `factor`, as pictures are made smaller with (`imresize` of MATLAB, `BICUBIC` of
    /// Pillow): its middle lies between the pixels for even factors. It has negative numbers.
    pub fn cubic(factor: usize) -> Self {
        let cubic = |t: f64| match t.abs() {
            t if t <= 1.0 => (1.5 * t - 2.5) * t * t + 1.0,
            t if t < 2.0 => ((-0.5 * t + 2.5) * t - 4.0) * t + 2.0,
            _ => 0.0,
        };
        let s = factor as f64;
        // The pixel i of the small picture lies at s i + (s - 1) / 2 of the large one; a convolution turns this around.
        let (radius, shift) = (2 * factor as i64, 0.5 * (s - 1.0));
        let line: Vec<f64> = (-radius..=radius).map(|t| cubic((-t as f64 - shift) / s)).collect();
        let sum: f64 = line.iter().sum();
        let weights = line.iter().flat_map(|y| line.iter().map(move |x| y * x / (sum * sum))).collect();
        Self { rows: line.len(), columns: line.len(), weights }
    }

    /// From a file: the numbers of a `.npy` array, or the brightness of a picture.
    /// Fails where [`Kernel::new`] does, or the file cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let told = |error: Error| match error {
            Error::Invalid(reason) => Error::file(path, reason),
            other => other,
        };
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
            let (rows, columns, weights) = npy::read(path)?;
            return Self::new(rows, columns, weights).map_err(told);
        }
        let image = io::read(path)?.image.to_grey();
        let weights = image.data().iter().map(|v| f64::from(*v)).collect();
        Self::new(image.height(), image.width(), weights).map_err(told)
    }

    /// Rows and columns.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The numbers, row by row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// How far it reaches from its middle, at most.
    pub fn radius(&self) -> usize {
        self.rows.max(self.columns) / 2
    }

    fn of(radius: i64, value: impl Fn(i64, i64) -> f64) -> Result<Self> {
        let side = (2 * radius + 1) as usize;
        let place = |i: usize| (i / side) as i64 - radius;
        let column = |i: usize| (i % side) as i64 - radius;
        Self::new(side, side, (0..side * side).map(|i| value(place(i), column(i))).collect())
    }
}

impl FromStr for Kernel {
    type Err = Error;

    /// `gaussian:DEVIATION`, `box:SIDE`, `motion:LENGTH,ANGLE`, or the name of a file.
    fn from_str(words: &str) -> Result<Self> {
        let number = |text: &str| {
            text.trim().parse::<f64>().map_err(|_| invalid!("{text} in the kernel {words} is not a number"))
        };
        match words.split_once(':') {
            Some(("gaussian", deviation)) => Self::gaussian(number(deviation)?),
            Some(("box", side)) => {
                let side = side.trim().parse();
                Self::square(side.map_err(|_| invalid!("the side of {words} is not a whole number"))?)
            }
            Some(("motion", line)) => {
                let (length, angle) = line.split_once(',').ok_or_else(|| {
                    invalid!("{words} lacks an angle: give length and angle, such as motion:15,30")
                })?;
                Self::motion(number(length)?, number(angle)?)
            }
            _ => Self::open(Path::new(words)),
        }
    }
}
