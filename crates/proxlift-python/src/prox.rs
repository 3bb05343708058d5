//! Proximity operators, in double precision.

use crate::error::to_python;
use numpy::PyReadonlyArray1;
use numpy::{PyArray1, PyReadonlyArray2};
use proxlift::prox::{
    self, AbsoluteDistance, BoxClip, GroupL2, Identity, KullbackLeibler, L2Ball, PiecewiseLinear, Relu,
    Sigmoid, Simplex, SoftThreshold, Softmax, SquaredDistance,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A penalty `psi` through its proximity operator. Fields are flat, plane after plane.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct Prox {
    inner: Box<dyn prox::Prox<f64>>,
    /// How long fields are; none where any length will do.
    length: Option<usize>,
}

type Field<'py> = PyReadonlyArray1<'py, f64>;

impl Prox {
    pub fn prox(&self) -> &dyn prox::Prox<f64> {
        &*self.inner
    }

    fn of(prox: impl prox::Prox<f64> + 'static) -> Self {
        Self { inner: Box::new(prox), length: None }
    }

    /// Refuses fields that are not as long as the data, or have another number of planes.
    pub fn check_length(&self, length: usize) -> PyResult<()> {
        Err(PyValueError::new_err(match (self.length, self.prox().planes()) {
            (Some(data), _) if data != length => {
                format!("the field has {length} numbers, but the data have {data}")
            }
            (_, Some(planes)) if !length.is_multiple_of(planes) => {
                format!("{length} numbers cannot be split into {planes} planes")
            }
            _ => return Ok(()),
        }))
    }

    /// The same; and fields that differ in length.
    fn check(&self, fields: &[&[f64]]) -> PyResult<()> {
        let length = fields[0].len();
        if fields.iter().any(|field| field.len() != length) {
            return Err(PyValueError::new_err("the fields have different lengths"));
        }
        self.check_length(length)
    }
}

fn made(prox: proxlift::Result<impl prox::Prox<f64> + 'static>) -> PyResult<Prox> {
    prox.map(Prox::of).map_err(to_python)
}

/// A distance to data.
fn to_data<P: prox::Prox<f64> + 'static>(
    y: &Field<'_>,
    weight: f64,
    new: fn(Vec<f64>, f64) -> proxlift::Result<P>,
) -> PyResult<Prox> {
    let y = y.as_slice()?.to_vec();
    let length = Some(y.len());
    Ok(Prox { length, ..made(new(y, weight))? })
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
        Self::of(Relu)
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
        Self::of(Sigmoid::default())
    }

    #[staticmethod]
    fn identity() -> Self {
        Self::of(Identity)
    }

    #[staticmethod]
    fn squared_distance(y: Field<'_>, weight: f64) -> PyResult<Self> {
        to_data(&y, weight, SquaredDistance::new)
    }

    #[staticmethod]
    fn absolute_distance(y: Field<'_>, weight: f64) -> PyResult<Self> {
        to_data(&y, weight, AbsoluteDistance::new)
    }

    #[staticmethod]
    fn kullback_leibler(y: Field<'_>, weight: f64) -> PyResult<Self> {
        to_data(&y, weight, KullbackLeibler::new)
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
