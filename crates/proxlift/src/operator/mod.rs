//! Linear operators with their exact adjoints.

mod filters;

pub use filters::Filters;
