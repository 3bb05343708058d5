//! Solvers, with operators and proxes of ours or of the caller.

use crate::calls::{Functions, Gradient, Raised, Term};
use crate::prox::Prox;
use numpy::{PyArray1, PyReadonlyArray1};
use proxlift::operator::{ConjugateGradients, Resolvent};
use proxlift::prox;
use proxlift::solver::{
    self, Course, DualForwardBackward, DualInfo, DualParams, DualStop, Ended, Flat, Inertia, Iterate,
    PrimalDualSteps, StopRule, Until, Watcher,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
    conjugate.check_length(start.len())?;
    let inertia = named(inertia)?;
    let stop = match tolerance {
        Some(tolerance) => StopRule::Gap { tolerance, max_iterations: iterations, check_every: 10 },
        None => StopRule::Iterations(iterations),
    };
    let raised = &Raised::default();
    let op = Functions { py, apply, adjoint, domain: z.len(), range: start.len(), raised };
    let mut solver = DualForwardBackward::new(&op);
    solver.u_mut().copy_from_slice(start);
    let params = DualParams { tau, inertia, stop };
    let solved = solver.solve_watched(&op, conjugate.prox(), z, &params, &mut |_| raised.watch(py));
    let DualInfo { iterations, primal, gap, stop } = raised.or(solved)?;
    let (x, u) = (PyArray1::from_slice(py, solver.x()), PyArray1::from_slice(py, solver.u()));
    Ok((x, u, iterations, primal, gap, stop != DualStop::IterationLimit))
}

fn named(inertia: &str) -> PyResult<Inertia> {
    match inertia {
        "none" => Ok(Inertia::None),
        "nesterov" => Ok(Inertia::Nesterov),
        "chambolle-dossal" => Ok(Inertia::ChambolleDossal { a: 4.0 }),
        other => {
            let reason = format!("inertia is {other}, but it must be none, nesterov or chambolle-dossal");
            Err(PyValueError::new_err(reason))
        }
    }
}

type Field<'py> = PyReadonlyArray1<'py, f64>;

/// `x`, iterations, the last change, and whether it was below the tolerance.
type Split<'py> = (Bound<'py, PyArray1<f64>>, usize, f64, bool);

fn split<'py>(py: Python<'py>, x: &[f64], course: Course) -> Split<'py> {
    (PyArray1::from_slice(py, x), course.iterations, course.residual, course.ended == Ended::Settled)
}

/// Minimises `f(x) + g(x)`, with `f` given by its gradient.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn forward_backward<'py>(
    py: Python<'py>,
    gradient: Bound<'py, PyAny>,
    g: Term<'py>,
    x: Field<'py>,
    lipschitz: f64,
    inertia: &str,
    tolerance: f64,
    iterations: usize,
) -> PyResult<Split<'py>> {
    let (mut x, raised) = (x.as_slice()?.to_vec(), &Raised::default());
    let (f, g) = (Gradient { gradient, raised }, g.lent(x.len(), raised)?);
    let until = Until { tolerance, most: iterations };
    let watch = &mut |_: &Iterate<'_, f64>| raised.watch(py);
    let course = solver::forward_backward(&f, g.prox(), &mut x, (lipschitz, named(inertia)?), &until, watch);
    Ok(split(py, &x, raised.or(course)?))
}

/// Minimises `f(x) + g(x)`.
#[pyfunction]
pub fn douglas_rachford<'py>(
    py: Python<'py>,
    f: Term<'py>,
    g: Term<'py>,
    x: Field<'py>,
    tau: f64,
    tolerance: f64,
    iterations: usize,
) -> PyResult<Split<'py>> {
    by_proxes(py, (f, g), x, (tau, tolerance, iterations), |f, g, x, tau, until, watch| {
        solver::douglas_rachford(f, g, x, tau, until, watch)
    })
}

/// Minimises `f(x) + g(x)`.
#[pyfunction]
pub fn admm<'py>(
    py: Python<'py>,
    f: Term<'py>,
    g: Term<'py>,
    x: Field<'py>,
    rho: f64,
    tolerance: f64,
    iterations: usize,
) -> PyResult<Split<'py>> {
    by_proxes(py, (f, g), x, (rho, tolerance, iterations), |f, g, x, rho, until, watch| {
        solver::admm(f, g, x, rho, until, watch)
    })
}

/// Both of these: from two proxes and a number that says how long their steps are.
fn by_proxes<'py>(
    py: Python<'py>,
    (f, g): (Term<'py>, Term<'py>),
    x: Field<'py>,
    (step, tolerance, most): (f64, f64, usize),
    solve: SolvesByProxes,
) -> PyResult<Split<'py>> {
    let (mut x, raised) = (x.as_slice()?.to_vec(), &Raised::default());
    let (f, g) = (f.lent(x.len(), raised)?, g.lent(x.len(), raised)?);
    let watch = &mut |_: &Iterate<'_, f64>| raised.watch(py);
    let course = solve(f.prox(), g.prox(), &mut x, step, &Until { tolerance, most }, watch);
    Ok(split(py, &x, raised.or(course)?))
}

type SolvesByProxes = fn(
    &dyn prox::Prox<f64>,
    &dyn prox::Prox<f64>,
    &mut Vec<f64>,
    f64,
    &Until,
    &mut Watcher<'_, f64>,
) -> proxlift::Result<Course>;

/// Minimises `f(x) + g(x) + h(L x)`, with `f` given by its gradient or zero; also returns `u`. Steps follow from the Lipschitz constant of the
/// gradient, the norm of `L`, and the balance of the two steps.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn condat_vu<'py>(
    py: Python<'py>,
    gradient: Option<Bound<'py, PyAny>>,
    g: Term<'py>,
    h: Term<'py>,
    apply: Bound<'py, PyAny>,
    adjoint: Bound<'py, PyAny>,
    x: Field<'py>,
    u: Field<'py>,
    norms: (f64, f64, f64),
    tolerance: f64,
    iterations: usize,
) -> PyResult<(Split<'py>, Bound<'py, PyArray1<f64>>)> {
    let (mut x, mut u, raised) = (x.as_slice()?.to_vec(), u.as_slice()?.to_vec(), &Raised::default());
    let op = Functions { py, apply, adjoint, domain: x.len(), range: u.len(), raised };
    let (g, h) = (g.lent(x.len(), raised)?, h.lent(u.len(), raised)?);
    let (lipschitz, norm, balance) = norms;
    let steps = PrimalDualSteps::for_norms(lipschitz, norm, balance);
    let until = Until { tolerance, most: iterations };
    let watch = &mut |_: &Iterate<'_, f64>| raised.watch(py);
    let both = (&mut x, &mut u);
    let course = match gradient {
        Some(gradient) => {
            let f = Gradient { gradient, raised };
            solver::condat_vu((&f, g.prox(), h.prox()), &op, both, steps, &until, watch)
        }
        None => solver::condat_vu((&Flat, g.prox(), h.prox()), &op, both, steps, &until, watch),
    };
    let course = raised.or(course)?;
    Ok((split(py, &x, course), PyArray1::from_slice(py, &u)))
}

/// `(I + tau A* A)^-1 b` by conjugate gradients, from `x`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn resolve<'py>(
    py: Python<'py>,
    apply: Bound<'py, PyAny>,
    adjoint: Bound<'py, PyAny>,
    range: usize,
    tau: f64,
    b: Field<'py>,
    x: Field<'py>,
    tolerance: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (b, mut x, raised) = (b.as_slice()?, x.as_slice()?.to_vec(), &Raised::default());
    if b.len() != x.len() {
        return Err(PyValueError::new_err("the fields have different lengths"));
    }
    let op = Functions { py, apply, adjoint, domain: x.len(), range, raised };
    let mut solver = ConjugateGradients::new::<f64>(&op);
    (solver.tolerance, solver.warm) = (tolerance, true);
    solver.resolve(tau, b, &mut x);
    raised.or(Ok(PyArray1::from_vec(py, x)))
}
