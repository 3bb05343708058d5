//! Linear operators, in double precision. Fields are `[plane][row][column]`.

use crate::error::to_python;
use crate::pool;
use numpy::ndarray::{Array3, ArrayView3};
use numpy::{IntoPyArray, PyArray3, PyReadonlyArray3, PyReadonlyArray4};
use proxlift::operator::{self, Filters, LinearOperator, NormParams, PowerState, spectral_norm};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Field<'py> = PyReadonlyArray3<'py, f64>;

/// Applies an operator, or its adjoint, to a field; the result has so many planes.
fn through<'py>(
    py: Python<'py>,
    field: ArrayView3<'_, f64>,
    planes: usize,
    f: impl FnOnce(&[f64], &mut [f64]) + Send,
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    let (_, height, width) = field.dim();
    let from: Vec<f64> = field.iter().copied().collect();
    let result = pool::run(py, |_| {
        let mut to = vec![0.0; planes * height * width];
        f(&from, &mut to);
        Ok(to)
    })?;
    let array = Array3::from_shape_vec((planes, height, width), result);
    Ok(array.map_err(|e| PyValueError::new_err(e.to_string()))?.into_pyarray(py))
}

fn check_planes(field: &ArrayView3<'_, f64>, planes: usize) -> PyResult<()> {
    match field.dim() {
        (found, _, _) if found != planes => Err(PyValueError::new_err(format!(
            "the field has {found} planes, but the operator needs {planes}"
        ))),
        (_, 0, _) | (_, _, 0) => Err(PyValueError::new_err("the field is empty")),
        _ => Ok(()),
    }
}

/// The convolution of a layer.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct Convolution {
    pub filters: Filters<f64>,
}

#[pymethods]
impl Convolution {
    #[new]
    fn new(filters: PyReadonlyArray4<'_, f64>) -> PyResult<Self> {
        let filters = filters.as_array();
        let (features, channels, height, width) = filters.dim();
        if height != width {
            return Err(PyValueError::new_err(format!("kernels are square, not {height} x {width}")));
        }
        let filters = Filters::new(features, channels, height, filters.iter().copied().collect());
        filters.map(|filters| Self { filters }).map_err(to_python)
    }

    fn apply<'py>(&self, py: Python<'py>, x: Field<'_>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let x = x.as_array();
        check_planes(&x, self.filters.channels())?;
        let op = operator::Convolution::new(&self.filters, x.dim().1, x.dim().2).map_err(to_python)?;
        through(py, x, self.filters.features(), |x, y| op.apply(x, y))
    }

    fn adjoint<'py>(&self, py: Python<'py>, y: Field<'_>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let y = y.as_array();
        check_planes(&y, self.filters.features())?;
        let op = operator::Convolution::new(&self.filters, y.dim().1, y.dim().2).map_err(to_python)?;
        through(py, y, self.filters.channels(), |y, x| op.adjoint(y, x))
    }

    /// The norm on images of this size, by power iteration.
    fn norm(&self, py: Python<'_>, height: usize, width: usize) -> PyResult<f64> {
        let op = operator::Convolution::new(&self.filters, height, width).map_err(to_python)?;
        pool::run(py, |_| {
            let mut state = PowerState::new(&op, 0);
            Ok(spectral_norm(&op, &mut state, &NormParams::default()).norm)
        })
    }
}

/// Differences of neighbouring pixels.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct FiniteDifferences;

#[pymethods]
impl FiniteDifferences {
    #[new]
    fn new() -> Self {
        Self
    }

    fn apply<'py>(&self, py: Python<'py>, x: Field<'_>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let x = x.as_array();
        let (channels, height, width) = x.dim();
        let op = operator::FiniteDifferences::new(channels, height, width).map_err(to_python)?;
        through(py, x, 2 * channels, |x, y| op.apply(x, y))
    }

    fn adjoint<'py>(&self, py: Python<'py>, y: Field<'_>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let y = y.as_array();
        let (planes, height, width) = y.dim();
        if !planes.is_multiple_of(2) {
            return Err(PyValueError::new_err(format!(
                "{planes} planes are no differences: give an even number"
            )));
        }
        let op = operator::FiniteDifferences::new(planes / 2, height, width).map_err(to_python)?;
        through(py, y, planes / 2, |y, x| op.adjoint(y, x))
    }

    fn norm(&self, height: usize, width: usize) -> PyResult<f64> {
        Ok(operator::FiniteDifferences::new(1, height, width).map_err(to_python)?.norm())
    }
}
