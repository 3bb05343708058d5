//! The compiled half of the Python package: it converts arrays and settings, and the library does the work. What users see,
//! with its documentation, is `python/proxlift`.

mod array;
mod calls;
mod denoise;
mod energy;
mod error;
mod model;
mod noise;
mod operator;
mod pool;
mod prox;
mod restoration;
mod scores;
mod solver;
mod training;

use pyo3::prelude::*;

/// The compiled half of the package `proxlift`.
#[pymodule]
mod _proxlift {
    #[pymodule_export]
    use super::denoise::{Denoiser, sample_rows, vjp};
    #[pymodule_export]
    use super::energy::Energy;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::noise::estimate;
    #[pymodule_export]
    use super::operator::{Convolution, FiniteDifferences};
    #[pymodule_export]
    use super::pool::{after_fork, before_fork, set_threads, threads};
    #[pymodule_export]
    use super::prox::Prox;
    #[pymodule_export]
    use super::restoration::Restorer;
    #[pymodule_export]
    use super::scores::ssim;
    #[pymodule_export]
    use super::solver::{
        admm, condat_vu, douglas_rachford, dual_forward_backward, forward_backward, resolve,
    };
    #[pymodule_export]
    use super::training::{settings, train};
    use proxlift::model::BuiltIn;
    use pyo3::prelude::*;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("BUILT_IN", BuiltIn::ALL.map(BuiltIn::name))?;
        super::pool::register(module)
    }
}
