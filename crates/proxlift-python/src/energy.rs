//! The lifted Bregman energy, in double precision.

use crate::error::to_python;
use crate::model::Model;
use crate::pool;
use numpy::ndarray::{Array3, Array4, Array5};
use numpy::{IntoPyArray, PyArray3, PyArray4, PyArray5, PyReadonlyArray4, PyReadonlyArray5};
use proxlift::Result;
use proxlift::engine::Reference;
use proxlift::field::Field;
use proxlift::network::Network;
use proxlift::operator::Filters;
use proxlift::training::Lifted;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A batch with its auxiliary variables.
#[pyclass(module = "proxlift._proxlift")]
pub struct Energy {
    network: Network<f64>,
    lifted: Lifted<f64>,
    mu: f64,
}

type Images<'py> = PyReadonlyArray4<'py, f64>;
type Gradient<'py> = (Bound<'py, PyArray3<f64>>, Bound<'py, PyArray3<f64>>);

fn wrong(e: numpy::ndarray::ShapeError) -> PyErr {
    PyValueError::new_err(e.to_string())
}

fn field(network: &Network<f64>, images: &Images<'_>) -> Result<Field<f64>> {
    let images = images.as_array();
    let (_, channels, height, width) = images.dim();
    let sizes = network.architecture();
    if channels != sizes.colours() {
        let reason =
            format!("the images have {channels} channels, but the network was made for {}", sizes.colours());
        return Err(proxlift::Error::invalid(reason));
    }
    sizes.batch(&images.iter().copied().collect::<Vec<_>>(), (height, width))
}

/// Images of a batch that the network sees the phases of.
fn images<'py>(
    py: Python<'py>,
    network: &Network<f64>,
    field: &Field<f64>,
) -> PyResult<Bound<'py, PyArray4<f64>>> {
    let (sizes, grid) = (network.architecture(), field.grid());
    let (height, width) = (grid.height() * sizes.stride(), grid.width() * sizes.stride());
    let shape = (field.samples(), sizes.colours(), height, width);
    Ok(Array4::from_shape_vec(shape, sizes.images(field)).map_err(wrong)?.into_pyarray(py))
}

fn array<'py>(py: Python<'py>, field: &Field<f64>) -> PyResult<Bound<'py, PyArray4<f64>>> {
    let shape = (field.samples(), field.channels(), field.grid().height(), field.grid().width());
    Ok(Array4::from_shape_vec(shape, field.to_planar()).map_err(wrong)?.into_pyarray(py))
}

impl Energy {
    fn check_layer(&self, k: usize) -> PyResult<()> {
        match k {
            0 => Err(PyValueError::new_err("u_0 is L_0 z and cannot be set: give a layer from 1 on")),
            k if k >= self.lifted.depth() => {
                let reason = format!("there is no u_{k}: layers are 1 to {}", self.lifted.depth() - 1);
                Err(PyValueError::new_err(reason))
            }
            _ => Ok(()),
        }
    }

    fn refresh(&mut self, py: Python<'_>) -> PyResult<()> {
        let Self { network, lifted, .. } = self;
        pool::run(py, |_| {
            lifted.refresh((&Reference, network));
            Ok(())
        })
    }
}

#[pymethods]
impl Energy {
    /// Anchored at the network's own forward pass; thresholds are multiplied by `scale`.
    #[new]
    fn new(
        py: Python<'_>,
        model: PyRef<'_, Model>,
        z: Images<'_>,
        x: Images<'_>,
        mu: f64,
        scale: f64,
    ) -> PyResult<Self> {
        if !(mu.is_finite() && mu > 0.0) {
            return Err(PyValueError::new_err(format!("mu is {mu}, but it must be positive")));
        }
        let mut network = model.shared().network.cast::<f64>();
        network.scale_thresholds(scale);
        let build = || Lifted::new(&network, field(&network, &z)?, field(&network, &x)?);
        let lifted = build().map_err(to_python)?;
        let mut energy = Self { network, lifted, mu };
        energy.anchor(py)?;
        Ok(energy)
    }

    fn anchor(&mut self, py: Python<'_>) -> PyResult<()> {
        let Self { network, lifted, .. } = self;
        pool::run(py, |_| {
            lifted.anchor((&Reference, network));
            Ok(())
        })
    }

    fn u<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyArray4<f64>>> {
        let u = self.lifted.u.get(k).ok_or_else(|| PyValueError::new_err(format!("there is no u_{k}")))?;
        array(py, u)
    }

    fn set_u(&mut self, py: Python<'_>, k: usize, u: Images<'_>) -> PyResult<()> {
        self.check_layer(k)?;
        let now = &self.lifted.u[k];
        let shape = (now.samples(), now.channels(), now.grid().height(), now.grid().width());
        if u.as_array().dim() != shape {
            return Err(PyValueError::new_err(format!("u_{k} has the shape {shape:?}")));
        }
        let values: Vec<f64> = u.as_array().iter().copied().collect();
        self.lifted.u[k].load(&values).map_err(to_python)?;
        self.refresh(py)
    }

    fn set_theta(&mut self, py: Python<'_>, theta: PyReadonlyArray5<'_, f64>) -> PyResult<()> {
        let theta = theta.as_array();
        let sizes = self.network.architecture();
        let shape = (sizes.depth + 1, sizes.features, sizes.channels, sizes.kernel, sizes.kernel);
        if theta.dim() != shape {
            return Err(PyValueError::new_err(format!("theta has the shape {shape:?}")));
        }
        for (filters, new) in self.network.theta.iter_mut().zip(theta.outer_iter()) {
            filters.weights_mut().iter_mut().zip(new.iter()).for_each(|(w, new)| *w = *new);
        }
        self.refresh(py)
    }

    fn theta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray5<f64>>> {
        filters(py, &self.network.theta)
    }

    fn estimate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray4<f64>>> {
        let mut estimate = self.lifted.r[self.lifted.depth()].clone();
        estimate.map(|r| -r);
        images(py, &self.network, &estimate)
    }

    /// The penalties of layers `1..K-1` and then the loss, each of every sample.
    fn blocks(&self, py: Python<'_>) -> PyResult<Vec<Vec<f64>>> {
        let Self { network, lifted, mu } = self;
        pool::run(py, |_| {
            let energy = lifted.energy((&Reference, network), *mu);
            Ok(energy.penalties.into_iter().chain([energy.data]).collect())
        })
    }

    /// By `theta_0..theta_K`, then by every synthesis of its own.
    fn theta_gradients<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray5<f64>>> {
        let Self { network, lifted, mu } = self;
        let gradients = pool::run(py, |_| {
            let mut gradients: Vec<_> = network.filters().cloned().collect();
            lifted.theta_gradients((&Reference, network), *mu, &mut gradients);
            Ok(gradients)
        })?;
        filters(py, &gradients)
    }

    /// By `u_1..u_{K-1}`.
    fn u_gradients<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArray4<f64>>>> {
        let Self { network, lifted, mu } = self;
        let gradients = pool::run(py, |_| {
            let mut gradients: Vec<Field<f64>> = lifted.u.iter().map(Field::zeros_like).collect();
            lifted.u_gradients((&Reference, network), *mu, &mut gradients);
            Ok(gradients)
        })?;
        gradients[1..].iter().map(|gradient| array(py, gradient)).collect()
    }

    /// By knots and slopes.
    fn activation_gradients<'py>(&self, py: Python<'py>) -> PyResult<Gradient<'py>> {
        let layers = 1..self.lifted.depth();
        if self.network.activation.iter().any(|s| s.piecewise().is_none()) {
            return Err(PyValueError::new_err("the activations of this network are not piecewise linear"));
        }
        let (features, pieces) = (self.network.architecture().features, self.network.pieces());
        let all: Vec<_> = layers.map(|k| self.lifted.activation_gradient(&self.network, k)).collect();
        let knots = all.iter().flat_map(|gradient| gradient.knots.iter().copied()).collect();
        let slopes = all.iter().flat_map(|gradient| gradient.slopes.iter().copied()).collect();
        let knots = Array3::from_shape_vec((all.len(), features, pieces), knots).map_err(wrong)?;
        let slopes = Array3::from_shape_vec((all.len(), features, pieces + 1), slopes).map_err(wrong)?;
        Ok((knots.into_pyarray(py), slopes.into_pyarray(py)))
    }
}

fn filters<'py>(py: Python<'py>, theta: &[Filters<f64>]) -> PyResult<Bound<'py, PyArray5<f64>>> {
    let (first, data) = (&theta[0], theta.iter().flat_map(|f| f.weights().iter().copied()).collect());
    let shape = (theta.len(), first.features(), first.channels(), first.size(), first.size());
    Ok(Array5::from_shape_vec(shape, data).map_err(wrong)?.into_pyarray(py))
}
