//! What can be said of a trained network: how much it amplifies a change, at an image and at worst.

mod jacobian;
mod lipschitz;

pub use jacobian::Jacobian;
pub use lipschitz::LipschitzBound;
