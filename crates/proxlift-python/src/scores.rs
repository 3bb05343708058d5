//! Scores of arrays.

use crate::error::to_python;
use crate::pool;
use numpy::PyReadonlyArray3;
use proxlift::Image;
use proxlift::evaluation::{self, Peak};
use pyo3::prelude::*;

fn image(array: &PyReadonlyArray3<'_, f32>) -> PyResult<Image> {
    let array = array.as_array();
    let (channels, height, width) = array.dim();
    Image::new(channels, height, width, array.iter().copied().collect()).map_err(to_python)
}

/// The structural similarity of `[channel][row][column]`.
#[pyfunction]
pub fn ssim(
    py: Python<'_>,
    clean: PyReadonlyArray3<'_, f32>,
    estimate: PyReadonlyArray3<'_, f32>,
    peak: f64,
) -> PyResult<f64> {
    let (clean, estimate) = (image(&clean)?, image(&estimate)?);
    pool::run(py, |_| evaluation::ssim(&clean, &estimate, Peak::Value(peak)))
}
