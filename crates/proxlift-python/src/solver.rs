//! The dual solver, with an operator of ours or of the caller.

use crate::error::to_python;
use crate::prox::Prox;
use numpy::{PyArray1, PyReadonlyArray1};
use proxlift::operator::LinearOperator;
use proxlift::solver::{DualForwardBackward, DualInfo, DualParams, DualStop, Inertia, StopRule};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::ops::ControlFlow;

/// Two functions of flat arrays. The first exception is kept, and ends the work.
struct Functions<'py> {
    py: Python<'py>,
    apply: Bound<'py, PyAny>,
    adjoint: Bound<'py, PyAny>,
    domain: usize,
    range: usize,
    raised: RefCell<Option<PyErr>>,
}

impl Functions<'_> {
    fn call(&self, f: &Bound<'_, PyAny>, from: &[f64], to: &mut [f64]) -> PyResult<()> {
        let result = f.call1((PyArray1::from_slice(self.py, from),))?;
        let result: PyReadonlyArray1<'_, f64> = result.extract()?;
        let values = result.as_slice()?;
        if values.len() != to.len() {
            let reason =
                format!("the operator gave {} numbers where {} were expected", values.len(), to.len());
            return Err(PyValueError::new_err(reason));
        }
        to.copy_from_slice(values);
        Ok(())
    }

    fn keep(&self, result: PyResult<()>) {
        if let Err(exception) = result {
            self.raised.borrow_mut().get_or_insert(exception);
        }
    }
}

impl LinearOperator<f64> for Functions<'_> {
    fn domain_len(&self) -> usize {
        self.domain
    }

    fn range_len(&self) -> usize {
        self.range
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.keep(self.call(&self.apply, x, y));
    }

    fn adjoint(&self, y: &[f64], x: &mut [f64]) {
        self.keep(self.call(&self.adjoint, y, x));
    }
}

/// `x`, `u`, iterations, objective, gap, and whether the tolerance was reached.
type Solved<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, usize, f64, f64, bool);

/// Minimises `1/2 ||x - z||^2 + g(L x)`, with `g` given by its conjugate.
#[pyfunction]
#[pyo3(signature = (z, apply, adjoint, conjugate, start, tau, inertia, tolerance, iterations))]
#[allow(clippy::too_many_arguments)]
pub fn dual_forward_backward<'py>(
    py: Python<'py>,
    z: PyReadonlyArray1<'py, f64>,
    apply: Bound<'py, PyAny>,
    adjoint: Bound<'py, PyAny>,
    conjugate: PyRef<'py, Prox>,
    start: PyReadonlyArray1<'py, f64>,
    tau: f64,
    inertia: &str,
    tolerance: Option<f64>,
    iterations: usize,
) -> PyResult<Solved<'py>> {
    let (z, start) = (z.as_slice()?, start.as_slice()?);
    let inertia = match inertia {
        "none" => Inertia::None,
        "nesterov" => Inertia::Nesterov,
        "chambolle-dossal" => Inertia::ChambolleDossal { a: 4.0 },
        other => {
            let reason = format!("inertia is {other}, but it must be none, nesterov or chambolle-dossal");
            return Err(PyValueError::new_err(reason));
        }
    };
    let stop = match tolerance {
        Some(tolerance) => StopRule::Gap { tolerance, max_iterations: iterations, check_every: 10 },
        None => StopRule::Iterations(iterations),
    };
    let raised = RefCell::new(None);
    let op = Functions { py, apply, adjoint, domain: z.len(), range: start.len(), raised };
    let mut solver = DualForwardBackward::new(&op);
    solver.u_mut().copy_from_slice(start);
    let watch = &mut |_| match (op.raised.borrow().is_some(), py.check_signals()) {
        (false, Ok(())) => ControlFlow::Continue(()),
        (_, signal) => {
            op.keep(signal);
            ControlFlow::Break(())
        }
    };
    let solved = solver.solve_watched(&op, conjugate.prox(), z, &DualParams { tau, inertia, stop }, watch);
    if let Some(exception) = op.raised.borrow_mut().take() {
        return Err(exception);
    }
    let DualInfo { iterations, primal, gap, stop } = solved.map_err(to_python)?;
    let (x, u) = (PyArray1::from_slice(py, solver.x()), PyArray1::from_slice(py, solver.u()));
    Ok((x, u, iterations, primal, gap, stop != DualStop::IterationLimit))
}
