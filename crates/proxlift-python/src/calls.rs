//! The caller's functions of flat arrays, as operators, proxes and smooth functions. The first exception is kept, and ends the work.

use crate::prox::Prox;
use numpy::{PyArray1, PyReadonlyArray1};
use proxlift::operator::LinearOperator;
use proxlift::prox;
use proxlift::solver::Smooth;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// The first exception.
#[derive(Default)]
pub struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    fn keep(&self, result: PyResult<()>) {
        if let (Err(exception), Ok(mut first)) = (result, self.0.lock()) {
            first.get_or_insert(exception);
        }
    }

    /// Whether to go on: there was no exception, nor Ctrl-C.
    pub fn watch(&self, py: Python<'_>) -> ControlFlow<()> {
        self.keep(py.check_signals());
        if self.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_some(&self) -> bool {
        self.0.lock().is_ok_and(|first| first.is_some())
    }

    /// The exception, or else the result.
    pub fn or<T>(&self, result: proxlift::Result<T>) -> PyResult<T> {
        match self.0.lock().ok().and_then(|mut first| first.take()) {
            Some(exception) => Err(exception),
            None => result.map_err(crate::error::to_python),
        }
    }
}

/// What a function gives: as many numbers as there is room for.
fn put(what: &str, result: &Bound<'_, PyAny>, to: &mut [f64]) -> PyResult<()> {
    let result: PyReadonlyArray1<'_, f64> = result.extract()?;
    let values = result.as_slice()?;
    if values.len() != to.len() {
        let reason = format!("the {what} gave {} numbers where {} were expected", values.len(), to.len());
        return Err(PyValueError::new_err(reason));
    }
    to.copy_from_slice(values);
    Ok(())
}

/// An operator by two functions.
pub struct Functions<'a, 'py> {
    pub py: Python<'py>,
    pub apply: Bound<'py, PyAny>,
    pub adjoint: Bound<'py, PyAny>,
    pub domain: usize,
    pub range: usize,
    pub raised: &'a Raised,
}

impl Functions<'_, '_> {
    fn call(&self, f: &Bound<'_, PyAny>, from: &[f64], to: &mut [f64]) {
        if self.raised.is_some() {
            return;
        }
        let result = f.call1((PyArray1::from_slice(self.py, from),));
        self.raised.keep(result.and_then(|result| put("operator", &result, to)));
    }
}

impl LinearOperator<f64> for Functions<'_, '_> {
    fn domain_len(&self) -> usize {
        self.domain
    }

    fn range_len(&self) -> usize {
        self.range
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.call(&self.apply, x, y);
    }

    fn adjoint(&self, y: &[f64], x: &mut [f64]) {
        self.call(&self.adjoint, y, x);
    }
}

/// A smooth function by its gradient.
pub struct Gradient<'a, 'py> {
    pub gradient: Bound<'py, PyAny>,
    pub raised: &'a Raised,
}

impl Smooth<f64> for Gradient<'_, '_> {
    /// No solver asks.
    fn at(&self, _: &[f64]) -> f64 {
        f64::NAN
    }

    fn gradient(&self, x: &[f64], out: &mut [f64]) {
        let result = self.gradient.call1((PyArray1::from_slice(self.gradient.py(), x),));
        self.raised.keep(result.and_then(|result| put("gradient", &result, out)));
    }
}

/// A prox of ours, or a function of a field and a step.
#[derive(FromPyObject)]
pub enum Term<'py> {
    Ours(PyRef<'py, Prox>),
    Own(Py<PyAny>),
}

impl Term<'_> {
    /// For fields of this length.
    pub fn lent<'a>(&'a self, length: usize, raised: &'a Raised) -> PyResult<Lent<'a>> {
        match self {
            Self::Ours(prox) => {
                prox.check_length(length)?;
                Ok(Lent::Ours(prox.prox()))
            }
            Self::Own(prox) => Ok(Lent::Own(Called { prox, raised })),
        }
    }
}

/// A [`Term`] while a solver works with it.
pub enum Lent<'a> {
    Ours(&'a dyn prox::Prox<f64>),
    Own(Called<'a>),
}

impl Lent<'_> {
    pub fn prox(&self) -> &dyn prox::Prox<f64> {
        match self {
            Self::Ours(prox) => *prox,
            Self::Own(called) => called,
        }
    }
}

/// The prox by a function. It has no value, for which no splitting algorithm asks.
pub struct Called<'a> {
    prox: &'a Py<PyAny>,
    raised: &'a Raised,
}

impl prox::Prox<f64> for Called<'_> {
    fn scale(&mut self, _: f64) {}

    fn value(&self, _: &[f64]) -> f64 {
        f64::NAN
    }

    fn conjugate_value(&self, _: &[f64]) -> f64 {
        f64::NAN
    }

    fn prox_in_place(&self, tau: f64, v: &mut [f64]) {
        Python::attach(|py| {
            let result = self.prox.bind(py).call1((PyArray1::from_slice(py, v), tau));
            self.raised.keep(result.and_then(|result| put("prox", &result, v)));
        });
    }

    fn pullback(&self, _: f64, _: &[f64], _: &[f64], out: &mut [f64]) {
        out.fill(f64::NAN);
    }
}
