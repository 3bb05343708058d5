//! (dataset)
