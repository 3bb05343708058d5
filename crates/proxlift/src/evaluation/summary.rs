//! Scores over a set of images.

use crate::Result;
use std::fmt;

/// Mean and standard deviation.
///
/// ```
/// use proxlift::evaluation::Summary;
/// assert_eq!(Summary::of(&[28.0, 30.0])?.to_string(), "29.00 ± 1.41");
/// # Ok::<(), proxlift::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation with the divisor `count - 1`; 0 for one value.
    pub std: f64,
}

impl Summary {
    /// Summarises `values`, added in order; refuses an empty list.
    pub fn of(values: &[f64]) -> Result<Self> {
        refuse!(values.is_empty() => "there are no scores to summarise");
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let std = if count == 1 { 0.0 } else { (squares / (count - 1) as f64).sqrt() };
        Ok(Self { count, mean, std })
    }
}

impl fmt::Display for Summary {
    /// `mean +- std`, with the caller's precision (2 digits if none is asked for).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.std)
    }
}
