//! What can be said of a trained network: how much it amplifies a change, at an image and at worst, and how its filters
//! and potentials look.

mod filter_sheet;
mod jacobian;
mod lipschitz;
mod potential_sheet;
mod tied;

pub use filter_sheet::filter_sheet;
pub use jacobian::Jacobian;
pub use lipschitz::LipschitzBound;
pub(crate) use lipschitz::norm_of_one;
pub use potential_sheet::potential_sheet;
