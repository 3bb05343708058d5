//! Solvers of the variational problem the networks are unrolled from,
//!
//! ```text
//! x^ = argmin_x  1/2 ||x - z||^2 + g(L x)          (eq:denoise-objective)
//! ```
//!
//! run to convergence: the classical baselines, and the reference an unrolled network is compared with. And the splitting
//! algorithms that inverse problems need, each with what it minimises, its iteration and the steps it converges for:
//!
//! | | minimises | needs |
//! |---|---|---|
//! | [`forward_backward`] | `f(x) + g(x)` | the gradient of `f`, the prox of `g` |
//! | [`douglas_rachford`], [`admm`] | `f(x) + g(x)` | both proxes |
//! | [`multipliers`] | the same | both proxes, or something like them, for steps that change |
//! | [`condat_vu`] | `f(x) + g(x) + h(L x)` | the gradient of `f`, the proxes of `g` and `h` |
//! | [`half_quadratic`] | `f(x) + g(z) + 1/(2 tau) ||x - z||^2` | both proxes, or something like them |

mod admm;
mod condat_vu;
mod douglas_rachford;
mod dual;
mod forward_backward;
mod iteration;
mod params;
mod tv;

pub use admm::{Turn, admm, half_quadratic, multipliers};
pub use condat_vu::{PrimalDualSteps, condat_vu};
pub use douglas_rachford::douglas_rachford;
pub use dual::{DualForwardBackward, Watch};
pub use forward_backward::forward_backward;
pub use iteration::{Course, Ended, Flat, Iterate, Smooth, Until, Watcher, safe_norm};
pub use params::{DualInfo, DualParams, DualStop, Inertia, StopRule};
pub use tv::{TotalVariation, TvParams, total_variation, watched_total_variation};
