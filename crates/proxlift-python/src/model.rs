//! Models: their arrays, and their files.

use crate::error::to_python;
use numpy::ndarray::{Array3, Array5, ArrayView4, ArrayView5};
use numpy::{
    IntoPyArray, PyArray1, PyArray3, PyArray5, PyReadonlyArray1, PyReadonlyArray3, PyReadonlyArray5,
};
use proxlift::analysis::filter_sheet;
use proxlift::dataset::PatchNoise;
use proxlift::image::{Channels, io};
use proxlift::model;
use proxlift::named::from_name;
use proxlift::network::{Activation, Network};
use proxlift::operator::Filters;
use proxlift::prox::PiecewiseLinear;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// A network with what its users must know.
#[pyclass(frozen, module = "proxlift._proxlift")]
pub struct Model {
    inner: Arc<model::Model>,
}

impl Model {
    pub fn shared(&self) -> Arc<model::Model> {
        self.inner.clone()
    }

    pub fn of(model: model::Model) -> Self {
        Self { inner: Arc::new(model) }
    }

    fn network(&self) -> &Network<f32> {
        &self.inner.network
    }

    fn filters<'py>(&self, py: Python<'py>, all: &[Filters<f32>]) -> PyResult<Bound<'py, PyArray5<f32>>> {
        let sizes = self.network().architecture();
        let data = all.iter().flat_map(|theta| theta.weights().iter().copied()).collect();
        let shape = (all.len(), sizes.features, sizes.channels, sizes.kernel, sizes.kernel);
        let array = Array5::from_shape_vec(shape, data).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(array.into_pyarray(py))
    }

    fn functions(&self) -> PyResult<Vec<&PiecewiseLinear<f32>>> {
        let all: Option<Vec<_>> = self.network().activation.iter().map(Activation::piecewise).collect();
        all.ok_or_else(|| {
            PyValueError::new_err(
                "the activations of this network are not piecewise linear, so they have no knots",
            )
        })
    }
}

#[pymethods]
impl Model {
    /// A built-in model by its name, or a model file.
    #[staticmethod]
    fn load(name: PathBuf, channels: usize) -> PyResult<Self> {
        let channels = Channels::from_count(channels)
            .ok_or_else(|| PyValueError::new_err("channels must be 1 (grey) or 3 (colour)"))?;
        let model = match name.to_str() {
            Some(name) => model::Model::open(name, channels),
            None => model::Model::load(&name),
        };
        model.map(Self::of).map_err(to_python)
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        model::Model::from_bytes(bytes).map(Self::of).map_err(to_python)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.inner.to_bytes().map_err(to_python)?))
    }

    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.inner.save(path).map_err(to_python)
    }

    /// A model from its arrays; what is not an array is in `fields`.
    #[staticmethod]
    #[pyo3(signature = (theta, tau, knots, slopes, *, synthesis, unrolling, bounded, border, step_scale, sigma, noise, provenance))]
    #[allow(clippy::too_many_arguments)]
    fn from_arrays(
        theta: PyReadonlyArray5<'_, f32>,
        tau: PyReadonlyArray1<'_, f32>,
        knots: PyReadonlyArray3<'_, f32>,
        slopes: PyReadonlyArray3<'_, f32>,
        synthesis: Option<PyReadonlyArray5<'_, f32>>,
        unrolling: &str,
        bounded: bool,
        border: usize,
        step_scale: f32,
        sigma: f64,
        noise: &str,
        provenance: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let (theta, knots, slopes) = (theta.as_array(), knots.as_array(), slopes.as_array());
        let (.., kernel, other) = theta.dim();
        let fits = kernel == other && slopes.dim() == (knots.dim().0, knots.dim().1, knots.dim().2 + 1);
        if !fits {
            let reason =
                "theta must be (K + 1, J, C, k, k), knots (K - 1, J, M) and slopes (K - 1, J, M + 1)";
            return Err(PyValueError::new_err(reason));
        }
        let filters = |all: ArrayView5<'_, f32>| {
            let each = |w: ArrayView4<'_, f32>| {
                let (features, channels, kernel, _) = w.dim();
                Filters::new(features, channels, kernel, w.iter().copied().collect())
            };
            all.outer_iter().map(each).collect::<proxlift::Result<Vec<_>>>()
        };
        let functions = knots.outer_iter().zip(slopes.outer_iter()).map(|(knots, slopes)| {
            let pieces = knots.dim().1;
            let functions = PiecewiseLinear::new(
                pieces,
                knots.iter().copied().collect(),
                slopes.iter().copied().collect(),
            );
            functions.map(Activation::from)
        });
        let build = || {
            let functions = functions.collect::<proxlift::Result<Vec<_>>>()?;
            let mut network = Network::with_activations(
                filters(theta)?,
                tau.as_array().iter().copied().collect(),
                functions,
            )?;
            network.synthesis = synthesis.map_or(Ok(Vec::new()), |all| filters(all.as_array()))?;
            network.unrolling = from_name(unrolling)?;
            (network.bounded, network.border, network.step_scale) = (bounded, border, step_scale);
            network.validate()?;
            proxlift::image::noise::check_sigma(sigma)?;
            let noise = from_name::<PatchNoise>(noise)?;
            Ok(model::Model { network, sigma, noise, provenance })
        };
        build().map(Self::of).map_err(to_python)
    }

    #[getter]
    fn theta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray5<f32>>> {
        self.filters(py, &self.network().theta)
    }

    /// None where it is the adjoint.
    #[getter]
    fn synthesis<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray5<f32>>>> {
        let synthesis = &self.network().synthesis;
        (!synthesis.is_empty()).then(|| self.filters(py, synthesis)).transpose()
    }

    #[getter]
    fn tau<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.network().tau)
    }

    #[getter]
    fn knots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let functions = self.functions()?;
        let shape = (functions.len(), functions[0].features(), functions[0].pieces());
        let data = functions.iter().flat_map(|f| f.knots().iter().copied()).collect();
        let array = Array3::from_shape_vec(shape, data).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(array.into_pyarray(py))
    }

    #[getter]
    fn slopes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let functions = self.functions()?;
        let shape = (functions.len(), functions[0].features(), functions[0].pieces() + 1);
        let data = functions.iter().flat_map(|f| f.slopes().iter().copied()).collect();
        let array = Array3::from_shape_vec(shape, data).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(array.into_pyarray(py))
    }

    /// `(K, J, k, C)`.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, usize) {
        let sizes = self.network().architecture();
        (sizes.depth, sizes.features, sizes.kernel, sizes.colours())
    }

    #[getter]
    fn stride(&self) -> usize {
        self.network().architecture().stride()
    }

    #[getter]
    fn parameters(&self) -> usize {
        self.network().parameters()
    }

    #[getter]
    fn receptive_radius(&self) -> usize {
        self.network().architecture().receptive_radius()
    }

    #[getter]
    fn sigma(&self) -> f64 {
        self.inner.sigma
    }

    #[getter]
    fn noise(&self) -> String {
        self.inner.noise.to_string()
    }

    #[getter]
    fn unrolling(&self) -> String {
        self.network().unrolling.to_string()
    }

    #[getter]
    fn bounded(&self) -> bool {
        self.network().bounded
    }

    #[getter]
    fn border(&self) -> usize {
        self.network().border
    }

    #[getter]
    fn step_scale(&self) -> f32 {
        self.network().step_scale
    }

    #[getter]
    fn provenance(&self) -> BTreeMap<String, String> {
        self.inner.provenance.clone()
    }

    /// `alpha_k, beta_k, gamma_k` for `k = 1..K`.
    #[getter]
    fn memory(&self) -> Vec<(f64, f64, f64)> {
        let network = self.network().cast::<f64>();
        let of = |k| {
            let memory = network.layer_memory(k);
            (memory.inertia, memory.memory, memory.extrapolation)
        };
        (1..network.theta.len()).map(of).collect()
    }

    /// Writes an ONNX file.
    fn save_onnx(&self, path: PathBuf) -> PyResult<()> {
        let write = |bytes: Vec<u8>| {
            io::write_atomically(&path, |file| file.write_all(&bytes).map_err(proxlift::Error::io(&path)))
        };
        self.inner.to_onnx().and_then(write).map_err(to_python)
    }

    /// A picture of all filters.
    fn filters_png<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let sheet = filter_sheet(self.network())
            .and_then(|sheet| io::encode(&io::Picture::new(sheet, io::Depth::Eight), io::Format::Png));
        Ok(PyBytes::new(py, &sheet.map_err(to_python)?))
    }

    /// In a line for people.
    fn describe(&self) -> String {
        self.network().to_string()
    }
}
