//! Degraded arrays in, restored arrays out; with our operators, or with the caller's.

use crate::array::{Input, Output, Page, Sample, each};
use crate::denoise::What;
use crate::error::to_python;
use crate::pool::{self, Ask, Cancel};
use numpy::ndarray::{ArrayView4, Axis};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use proxlift::denoiser::Pixels;
use proxlift::image::Channels;
use proxlift::named::from_name;
use proxlift::operator::LinearOperator;
use proxlift::restoration::{self, Border, Degradation, Kernel, Likelihood, Linear, Prior, Schedule, Step};
use proxlift::solver::Until;
use proxlift::{Image, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// A restorer with its settings, but for what was done to pictures.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct Restorer {
    prior: Prior,
    border: Border,
    /// Of counts; none for Gaussian noise.
    gain: Option<f64>,
    strength: f64,
    weight: Option<f64>,
    until: Until,
}

impl Restorer {
    /// For what was done to pictures, and the level of Gaussian noise, if that is known.
    fn of(&self, degradation: Degradation, sigma: Option<f64>) -> restoration::Restorer {
        let likelihood = match self.gain {
            Some(gain) => Likelihood::Poisson { gain },
            None => Likelihood::Gaussian { sigma },
        };
        let restorer = restoration::Restorer::new(degradation).prior(self.prior.clone()).border(self.border);
        let restorer = restorer.likelihood(likelihood).strength(self.strength).until(self.until);
        if let Some(weight) = self.weight { restorer.weight(weight) } else { restorer }
    }
}

/// A kernel by its name or file, or its numbers.
#[derive(FromPyObject)]
pub enum Blur<'py> {
    Name(String),
    Numbers(PyReadonlyArray2<'py, f64>),
}

impl Blur<'_> {
    fn kernel(&self) -> Result<Kernel> {
        match self {
            Self::Name(name) => name.parse(),
            Self::Numbers(numbers) => {
                let numbers = numbers.as_array();
                let (rows, columns) = numbers.dim();
                Kernel::new(rows, columns, numbers.iter().copied().collect())
            }
        }
    }
}

/// Noise level, residuals, objective, gap, iterations, and whether it came to rest.
type Found = (f64, Vec<f64>, Option<f64>, Option<f64>, usize, bool);

fn found(restored: restoration::Restored) -> (Image, Found) {
    let restoration::Restored { image, sigma, residuals, objective, gap, iterations, settled, .. } = restored;
    (image, (sigma, residuals, objective, gap, iterations, settled))
}

/// What the caller's thread is asked.
enum Question {
    /// To tell somebody how far the work is: iterations, of how many, the residual.
    Heard(usize, usize, f64),
    /// `A x`, or for `true` `A* y`.
    Applied(bool, Vec<f64>),
}

#[pymethods]
impl Restorer {
    #[new]
    #[pyo3(signature = (prior, *, border="unknown", gain=None, strength=1.0, weight=None, tolerance=5e-3, iterations=2000))]
    fn new(
        prior: What<'_>,
        border: &str,
        gain: Option<f64>,
        strength: f64,
        weight: Option<f64>,
        tolerance: f64,
        iterations: usize,
    ) -> PyResult<Self> {
        let prior = match &prior {
            What::Own(model) => Ok(proxlift::Denoiser::from(model.shared()).into()),
            What::Name(name) => name.parse(),
        };
        let (prior, border) = (prior.map_err(to_python)?, from_name(border).map_err(to_python)?);
        let until = Until { tolerance, most: iterations };
        Ok(Self { prior, border, gain, strength, weight, until })
    }

    /// Restores `[picture][channel][row][column]` into `output`. `hear` is told iterations, of how many, and the residual.
    #[pyo3(signature = (input, output, *, blur=None, missing=None, upscale=None, demosaic=None, sigma=None, hear=None))]
    #[allow(clippy::too_many_arguments)]
    fn restore(
        &self,
        py: Python<'_>,
        input: Input<'_>,
        mut output: Output<'_>,
        blur: Option<Blur<'_>>,
        missing: Option<PyReadonlyArray2<'_, bool>>,
        upscale: Option<usize>,
        demosaic: Option<String>,
        sigma: Option<Vec<f64>>,
        hear: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Found>> {
        let kernel = blur.map(|blur| blur.kernel()).transpose().map_err(to_python)?;
        let degradation = match (missing, demosaic, upscale, kernel) {
            (Some(missing), ..) => {
                let missing = missing.as_array();
                Degradation::Missing {
                    known: missing.iter().map(|missing| !missing).collect(),
                    size: missing.dim(),
                }
            }
            (None, Some(pattern), ..) => Degradation::Mosaic(pattern),
            (None, None, Some(factor), kernel) => {
                Degradation::Small { factor, kernel: kernel.unwrap_or_else(|| Kernel::cubic(factor)) }
            }
            (None, None, None, Some(kernel)) => Degradation::Blur(kernel),
            (None, None, None, None) => return Err(PyValueError::new_err("nothing was done to the picture")),
        };
        let factor = degradation.factor();
        let shape = output.shape();
        let mut pages = output.pages();
        each!(&input, array => {
            let (pictures, channels, height, width) = array.dim();
            if shape != [pictures, channels, factor * height, factor * width] {
                return Err(PyValueError::new_err("the result has another shape than the restored pictures"));
            }
            if sigma.as_ref().is_some_and(|sigma| sigma.len() != pictures) {
                return Err(PyValueError::new_err("there is not one noise level for each picture"));
            }
            let work = |ask: Ask<'_, Question>, cancel: &Cancel| {
                let one = |i: usize| {
                    let restorer = self.of(degradation.clone(), sigma.as_ref().map(|sigma| sigma[i]));
                    let told = |step: &Step| Step { done: i * step.of + step.done, of: pictures * step.of, ..*step };
                    let watch = &mut |step: &Step| watch(&told(step), hear.is_some().then_some(ask), cancel);
                    let (image, numbers) = found(restorer.restore_watched(&picture(array, i), watch)?);
                    pages[i].put((0, 0), &image);
                    Ok(numbers)
                };
                (0..pictures).map(one).collect()
            };
            pool::run_with(py, work, |py, question| answered(py, question, hear.as_ref()))
        })
    }

    /// Restores a picture from data that came of the caller's operator: of this shape, `[channel][row][column]`, from `start` or
    /// from `A* y`. The schedule is of plug-and-play: iterations, first and last level, weight, and whether it remembers.
    #[pyo3(signature = (y, apply, adjoint, shape, *, start=None, sigma=None, schedule=None, hear=None))]
    #[allow(clippy::too_many_arguments)]
    fn restore_data<'py>(
        &self,
        py: Python<'py>,
        y: PyReadonlyArray1<'py, f32>,
        apply: Py<PyAny>,
        adjoint: Py<PyAny>,
        shape: (usize, usize, usize),
        start: Option<PyReadonlyArray3<'py, f32>>,
        sigma: Option<f64>,
        schedule: Option<(usize, f64, f64, f64, bool)>,
        hear: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, Found)> {
        let y = y.as_slice()?.to_vec();
        let (channels, height, width) = shape;
        let channels = Channels::from_count(channels).ok_or_else(|| {
            PyValueError::new_err(format!("the image has {channels} channels, but it must have 1 or 3"))
        })?;
        let image = |start: PyReadonlyArray3<'_, f32>| {
            let start = start.as_array();
            let (channels, height, width) = start.dim();
            Image::new(channels, height, width, start.iter().copied().collect())
        };
        let start = start.map(image).transpose().map_err(to_python)?;
        let (domain, range) = (channels.count() * height * width, y.len());
        let result = Arc::new(Mutex::new(Vec::new()));
        let answer = |py: Python<'_>, question: Question| match question {
            Question::Applied(back, from) => {
                let f = if back { &adjoint } else { &apply };
                let there = f.call1(py, (PyArray1::from_vec(py, from),))?;
                let there: PyReadonlyArray1<'_, f64> = there.extract(py)?;
                let (given, needed) = (there.len()?, if back { domain } else { range });
                if given != needed {
                    let reason = format!("the operator gave {given} numbers where {needed} were expected");
                    return Err(PyValueError::new_err(reason));
                }
                if let Ok(mut result) = result.lock() {
                    result.clear();
                    result.extend_from_slice(there.as_slice()?);
                }
                Ok(true)
            }
            told => answered(py, told, hear.as_ref()),
        };
        let work = |ask: Ask<'_, Question>, cancel: &Cancel| {
            let operator = Asked { ask: ask.clone(), result: result.clone(), domain, range };
            let linear = Linear::new(operator, channels, (height, width))?;
            let mut restorer = self.of(Degradation::Operator(linear), sigma);
            if let Some((steps, first, last, lambda, remembers)) = schedule {
                restorer = restorer.schedule(Schedule { steps, first, last, lambda, remembers });
            }
            let watch = &mut |step: &Step| watch(step, hear.is_some().then_some(ask), cancel);
            Ok(found(restorer.restore_data(y, start.as_ref(), watch)?))
        };
        let (image, numbers) = pool::run_with(py, work, answer)?;
        Ok((PyArray1::from_slice(py, image.data()), numbers))
    }
}

fn picture<T: Sample>(array: ArrayView4<'_, T>, i: usize) -> Image {
    let (_, _, height, width) = array.dim();
    Page(array.index_axis(Axis(0), i)).crop(0..height, 0..width)
}

/// Tells whoever wants to hear it how far the work is, and ends it where somebody wants that.
fn watch(step: &Step, ask: Option<Ask<'_, Question>>, cancel: &Cancel) -> ControlFlow<()> {
    let heard = ask.map_or(Ok(true), |ask| ask(Question::Heard(step.done, step.of, step.residual)));
    match heard.is_ok() && !cancel.load(Ordering::Relaxed) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

fn answered(py: Python<'_>, question: Question, hear: Option<&Py<PyAny>>) -> PyResult<bool> {
    if let (Question::Heard(done, of, residual), Some(hear)) = (question, hear) {
        hear.call1(py, (done, of, residual))?;
    }
    Ok(true)
}

/// The caller's operator. After an exception it gives zeros, until the work has ended.
struct Asked {
    ask: Arc<dyn Fn(Question) -> Result<bool> + Send + Sync>,
    /// The last answer.
    result: Arc<Mutex<Vec<f64>>>,
    domain: usize,
    range: usize,
}

impl Asked {
    fn through(&self, back: bool, from: &[f64], to: &mut [f64]) {
        let answer = (self.ask)(Question::Applied(back, from.to_vec()));
        match (answer, self.result.lock()) {
            (Ok(_), Ok(result)) if result.len() == to.len() => to.copy_from_slice(&result),
            _ => to.fill(0.0),
        }
    }
}

impl LinearOperator<f64> for Asked {
    fn domain_len(&self) -> usize {
        self.domain
    }

    fn range_len(&self) -> usize {
        self.range
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.through(false, x, y);
    }

    fn adjoint(&self, y: &[f64], x: &mut [f64]) {
        self.through(true, y, x);
    }
}
