//! Proximity operators, in double precision.

use crate::error::to_python;
use numpy::PyReadonlyArray1;
use numpy::{PyArray1, PyReadonlyArray2};
use proxlift::network::Activation;
use proxlift::prox::{
    BoxClip, GroupL2, Identity, L2Ball, PiecewiseLinear, Relu, Sigmoid, Simplex, SoftThreshold, Softmax,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A penalty `psi` through its proximity operator. Fields are flat, plane after plane.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct Prox {
    inner: Activation<f64>,
}

type Field<'py> = PyReadonlyArray1<'py, f64>;

impl Prox {
    pub fn prox(&self) -> &dyn proxlift::prox::Prox<f64> {
        self.inner.prox()
    }

    /// Refuses fields that differ in length, or have another number of planes.
    fn check(&self, fields: &[&[f64]]) -> PyResult<()> {
        let length = fields[0].len();
        if fields.iter().any(|field| field.len() != length) {
            return Err(PyValueError::new_err("the fields have different lengths"));
        }
        match self.prox().planes() {
            Some(planes) if !length.is_multiple_of(planes) => {
                Err(PyValueError::new_err(format!("{length} numbers cannot be split into {planes} planes")))
            }
            _ => Ok(()),
        }
    }
}

fn made<T: Into<Activation<f64>>>(prox: proxlift::Result<T>) -> PyResult<Prox> {
    prox.map(|prox| Prox { inner: prox.into() }).map_err(to_python)
}

#[pymethods]
impl Prox {
    #[staticmethod]
    fn soft_threshold(thresholds: Vec<f64>) -> PyResult<Self> {
        made(SoftThreshold::new(thresholds))
    }

    #[staticmethod]
    fn box_clip(low: Vec<f64>, high: Vec<f64>) -> PyResult<Self> {
        made(BoxClip::interval(low, high))
    }

    #[staticmethod]
    fn l2_ball(planes: usize, size: usize, radii: Vec<f64>) -> PyResult<Self> {
        made(L2Ball::new(planes, size, radii))
    }

    #[staticmethod]
    fn group_l2(planes: usize, size: usize, thresholds: Vec<f64>) -> PyResult<Self> {
        made(GroupL2::new(planes, size, thresholds))
    }

    #[staticmethod]
    fn piecewise_linear(
        knots: PyReadonlyArray2<'_, f64>,
        slopes: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Self> {
        let (knots, slopes) = (knots.as_array(), slopes.as_array());
        made(PiecewiseLinear::new(
            knots.dim().1,
            knots.iter().copied().collect(),
            slopes.iter().copied().collect(),
        ))
    }

    #[staticmethod]
    fn relu() -> Self {
        Self { inner: Relu.into() }
    }

    #[staticmethod]
    fn simplex(planes: usize) -> PyResult<Self> {
        made(Simplex::new(planes))
    }

    #[staticmethod]
    fn softmax(planes: usize) -> PyResult<Self> {
        made(Softmax::new(planes))
    }

    #[staticmethod]
    fn sigmoid() -> Self {
        Self { inner: Sigmoid::default().into() }
    }

    #[staticmethod]
    fn identity() -> Self {
        Self { inner: Identity.into() }
    }

    #[getter]
    fn planes(&self) -> Option<usize> {
        self.prox().planes()
    }

    fn value(&self, u: Field<'_>) -> PyResult<f64> {
        let u = u.as_slice()?;
        self.check(&[u])?;
        Ok(self.prox().value(u))
    }

    fn conjugate_value(&self, w: Field<'_>) -> PyResult<f64> {
        let w = w.as_slice()?;
        self.check(&[w])?;
        Ok(self.prox().conjugate_value(w))
    }

    #[pyo3(name = "prox")]
    fn apply<'py>(&self, py: Python<'py>, v: Field<'_>, tau: f64) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let v = v.as_slice()?;
        self.check(&[v])?;
        let mut out = vec![0.0; v.len()];
        self.prox().prox(tau, v, &mut out);
        Ok(PyArray1::from_vec(py, out))
    }

    fn prox_conjugate<'py>(
        &self,
        py: Python<'py>,
        v: Field<'_>,
        tau: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let v = v.as_slice()?;
        self.check(&[v])?;
        let mut out = vec![0.0; v.len()];
        self.prox().prox_conjugate(tau, v, &mut out);
        Ok(PyArray1::from_vec(py, out))
    }

    fn pullback<'py>(
        &self,
        py: Python<'py>,
        v: Field<'_>,
        g: Field<'_>,
        tau: f64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (v, g) = (v.as_slice()?, g.as_slice()?);
        self.check(&[v, g])?;
        let mut out = vec![0.0; v.len()];
        self.prox().pullback(tau, v, g, &mut out);
        Ok(PyArray1::from_vec(py, out))
    }

    fn bregman(&self, u: Field<'_>, v: Field<'_>, tau: f64) -> PyResult<f64> {
        let (u, v) = (u.as_slice()?, v.as_slice()?);
        self.check(&[u, v])?;
        Ok(self.prox().bregman(tau, u, v, &mut vec![0.0; u.len()]))
    }

    fn q_star(&self, v: Field<'_>, tau: f64) -> PyResult<f64> {
        let v = v.as_slice()?;
        self.check(&[v])?;
        Ok(self.prox().q_star(tau, v, &mut vec![0.0; v.len()]))
    }
}
