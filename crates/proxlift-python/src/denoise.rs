//! Arrays in, arrays out.

use crate::array::{Input, Output, Page, PageMut, Sample, each};
use crate::model::Model;
use crate::pool::{self, Cancel};
use numpy::ndarray::{ArrayView3, ArrayView4, Axis};
use numpy::{PyArray4, PyReadonlyArray3, PyReadonlyArray4};
use proxlift::denoiser::{self, Counts, Pixels, Settled};
use proxlift::model::BuiltIn;
use proxlift::named::from_name;
use proxlift::{Image, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Pixels of a picture that keeps all threads busy.
const LARGE: usize = 1 << 20;

/// Numbers that are denoised in a fraction of a second.
const SMALL: usize = 1 << 17;

/// A denoiser with its settings.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct Denoiser {
    inner: proxlift::Denoiser,
    /// Whether pictures are denoised in all eight orientations.
    turned: bool,
}

#[derive(FromPyObject)]
pub enum What<'py> {
    Name(String),
    Own(PyRef<'py, Model>),
}

impl What<'_> {
    fn denoiser(&self) -> PyResult<proxlift::Denoiser> {
        match self {
            Self::Own(model) => Ok(model.shared().into()),
            Self::Name(name) => match BuiltIn::named(name) {
                Some(model) => Ok(model.into()),
                None if name == "total-variation" => Ok(proxlift::Denoiser::total_variation()),
                None => Err(PyValueError::new_err(format!("there is no built-in model {name}"))),
            },
        }
    }
}

/// The noise levels of a batch.
#[derive(FromPyObject)]
pub enum Levels<'py> {
    One(f64),
    Map(PyReadonlyArray3<'py, f32>),
    Each(Vec<f64>),
}

enum Known<'a> {
    Nothing,
    One(f64),
    Each(Vec<f64>),
    Map(ArrayView3<'a, f32>),
}

#[pymethods]
impl Denoiser {
    /// A built-in network by its name, one of your own, or, for `total-variation`, that with a weight or without.
    #[new]
    #[pyo3(signature = (model, *, noise=None, strength=1.0, clip=false, gain=None, offset=None, read_noise=None, weight=None, turned=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        model: What<'_>,
        noise: Option<&str>,
        strength: f64,
        clip: bool,
        gain: Option<f64>,
        offset: Option<f64>,
        read_noise: Option<f64>,
        weight: Option<f64>,
        turned: bool,
    ) -> PyResult<Self> {
        let mut inner = match (&model, weight) {
            (What::Name(_), Some(weight)) => proxlift::Denoiser::total_variation_with(weight),
            _ => model.denoiser()?,
        };
        inner = inner.strength(strength).clipped(clip);
        if let Some(noise) = noise {
            inner = inner.noise(from_name(noise).map_err(crate::error::to_python)?);
        }
        if gain.is_some() || offset.is_some() || read_noise.is_some() {
            inner = inner.counts(Counts { gain, offset, read_noise });
        }
        inner.check().map_err(crate::error::to_python)?;
        Ok(Self { inner, turned })
    }

    /// What is settled about each picture before it is denoised, in numbers.
    fn settle(&self, py: Python<'_>, input: Input<'_>) -> PyResult<Vec<Numbers>> {
        let denoiser = &self.inner;
        each!(&input, array => pool::run(py, |_| {
            let one = |i: usize| denoiser.settle(&Page(array.index_axis(Axis(0), i)));
            (0..array.dim().0).map(|i| Ok(numbers(one(i)?))).collect()
        }))
    }

    /// Denoises `[picture][channel][row][column]` into `output`; if all is `settled` about the pictures, as parts of the
    /// whole. A map that is `part` of a larger one is blended even where it is constant. Returns the seconds that the engine
    /// took.
    #[pyo3(signature = (input, output, sigma=None, settled=None, part=false))]
    fn denoise(
        &self,
        py: Python<'_>,
        input: Input<'_>,
        mut output: Output<'_>,
        sigma: Option<Levels<'_>>,
        settled: Option<Numbers>,
        part: bool,
    ) -> PyResult<f64> {
        let denoiser = self.inner.clone().part_of_map(part).engine(pool::state()?.engine.clone());
        let denoiser = if self.turned { denoiser.turned() } else { denoiser };
        let shape = output.shape();
        let known = match &sigma {
            None => Known::Nothing,
            Some(Levels::One(sigma)) => Known::One(*sigma),
            Some(Levels::Each(each)) => Known::Each(each.clone()),
            Some(Levels::Map(map)) => Known::Map(map.as_array()),
        };
        let pages = output.pages();
        each!(&input, array => {
            if array.shape() != shape {
                return Err(PyValueError::new_err("the result has another shape than the pictures"));
            }
            let settled = settled.map(|(camera, sigma, transforms, ends)| Settled { camera, sigma, transforms, ends });
            let work = |cancel: &Cancel| work(&denoiser, array, settled.as_ref(), &known, pages, cancel);
            if array.len() <= SMALL { pool::run_small(py, work) } else { pool::run(py, work) }
        })
    }
}

/// [`Settled`] as a tuple, which travels between processes.
type Numbers = (bool, Option<f64>, Vec<[f64; 3]>, [f64; 2]);

fn numbers(Settled { camera, sigma, transforms, ends }: Settled) -> Numbers {
    (camera, sigma, transforms, ends)
}

/// The denoiser for picture `i`.
fn at(denoiser: &proxlift::Denoiser, known: &Known<'_>, i: usize) -> proxlift::Denoiser {
    match known {
        Known::One(sigma) => denoiser.clone().sigma(*sigma),
        Known::Each(each) => denoiser.clone().sigma(each[i]),
        Known::Nothing | Known::Map(_) => denoiser.clone(),
    }
}

fn work<T: Sample>(
    denoiser: &proxlift::Denoiser,
    input: ArrayView4<'_, T>,
    settled: Option<&Settled>,
    known: &Known<'_>,
    output: Vec<PageMut<'_>>,
    cancel: &Cancel,
) -> Result<f64> {
    let start = Instant::now();
    let one = |(i, mut output): (usize, PageMut<'_>)| {
        let page = Page(input.index_axis(Axis(0), i));
        let put = &mut |place: (usize, usize), tile: &Image| output.put(place, tile);
        let progress = &mut |_, _| match cancel.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        if let Known::Map(map) = known {
            let levels = Page(map.slice(numpy::ndarray::s![i..i + 1, .., ..]));
            return denoiser.denoise_with_map(&page, &levels, put, progress);
        }
        let denoiser = at(denoiser, known, i);
        match settled {
            Some(settled) => {
                page.check_finite()?;
                denoiser.prepare_settled(page.kind(), settled)?.denoise_pixels(&page, put, progress)
            }
            None => denoiser.denoise_pixels(&page, put, progress).map(drop),
        }
    };
    let (_, _, height, width) = input.dim();
    let mut pages = output.into_iter().enumerate();
    if denoiser.is_parallel() && height * width > LARGE {
        pages.try_for_each(one)?;
    } else {
        pages.collect::<Vec<_>>().into_par_iter().try_for_each(one)?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// The rows that the noise of a picture of this size is estimated from, as ranges.
#[pyfunction]
pub fn sample_rows(height: usize, width: usize) -> Vec<(usize, usize)> {
    denoiser::sample_rows(height, width).into_iter().map(|rows| (rows.start, rows.end)).collect()
}

/// Results and gradients.
type Both<'py> = (Bound<'py, PyArray4<f32>>, Bound<'py, PyArray4<f32>>);

/// The denoised batch, and what gradients of it are as gradients of the noisy one.
#[pyfunction]
pub fn vjp<'py>(
    py: Python<'py>,
    model: What<'py>,
    z: PyReadonlyArray4<'py, f32>,
    sigma: Option<Levels<'_>>,
    g: PyReadonlyArray4<'py, f32>,
) -> PyResult<Both<'py>> {
    let denoiser = model.denoiser()?.engine(pool::state()?.engine.clone());
    let (z, g) = (z.as_array(), g.as_array());
    let known = match sigma {
        None => Known::Nothing,
        Some(Levels::One(sigma)) => Known::One(sigma),
        Some(Levels::Each(each)) => Known::Each(each),
        Some(Levels::Map(_)) => return Err(PyValueError::new_err("a map of levels has no derivative here")),
    };
    let (n, c, h, w) = z.dim();
    if g.dim() != (n, c, h, w) {
        return Err(PyValueError::new_err("the gradient has another shape than the pictures"));
    }
    let results = pool::run(py, |cancel| {
        let one = |i: usize| {
            if cancel.load(Ordering::Relaxed) {
                return Err(proxlift::Error::Cancelled);
            }
            let image = |array: &ArrayView4<'_, f32>| {
                Image::new(c, h, w, array.index_axis(Axis(0), i).iter().copied().collect())
            };
            at(&denoiser, &known, i).pull_back(&image(&z)?, &image(&g)?)
        };
        (0..n).into_par_iter().map(one).collect::<Result<Vec<_>>>()
    })?;
    let gather = |part: fn(&(Image, Image)) -> &Image| {
        let data: Vec<f32> = results.iter().flat_map(|both| part(both).data().iter().copied()).collect();
        let array = numpy::ndarray::Array4::from_shape_vec((n, c, h, w), data);
        array
            .map(|array| PyArray4::from_owned_array(py, array))
            .map_err(|e| PyValueError::new_err(e.to_string()))
    };
    Ok((gather(|both| &both.0)?, gather(|both| &both.1)?))
}
