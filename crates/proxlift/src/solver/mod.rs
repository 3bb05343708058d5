//! Solvers of the variational problem the networks are unrolled from,
//!
//! ```text
//! x^ = argmin_x  1/2 ||x - z||^2 + g(L x)          (eq:denoise-objective)
//! ```
//!
//! run to convergence: the classical baselines, and the reference an unrolled network is compared with.

mod dual;
mod params;
mod tv;

pub use dual::{DualForwardBackward, Watch};
pub use params::{DualInfo, DualParams, DualStop, Inertia, StopRule};
pub use tv::{TotalVariation, TvParams, total_variation, watched_total_variation};
