//! The noise of arrays.

use crate::array::{Input, Page, Sample, each};
use crate::pool;
use numpy::ndarray::{ArrayView4, Axis};
use proxlift::Result;
use proxlift::denoiser::{Pixels, estimate_pixels};
use proxlift::named::from_name;
use proxlift::noise::NoiseKind;
use pyo3::prelude::*;

/// The noise of each picture `[picture][channel][row][column]`, in JSON: its model, and in a line for people.
#[pyfunction]
#[pyo3(signature = (input, noise=None))]
pub fn estimate(py: Python<'_>, input: Input<'_>, noise: Option<&str>) -> PyResult<Vec<(String, String)>> {
    let kind = noise.map(from_name::<NoiseKind>).transpose().map_err(crate::error::to_python)?;
    each!(&input, array => pool::run(py, |_| all(array, kind)))
}

fn all<T: Sample>(input: ArrayView4<'_, T>, kind: Option<NoiseKind>) -> Result<Vec<(String, String)>> {
    let one = |i: usize| {
        let page = Page(input.index_axis(Axis(0), i));
        page.check_finite()?;
        let noise = estimate_pixels(&page, kind);
        let model = serde_json::to_string(&noise.model)
            .map_err(|e| proxlift::Error::invalid(format!("the noise cannot be told: {e}")))?;
        Ok((model, noise.to_string()))
    };
    (0..input.dim().0).map(one).collect()
}
