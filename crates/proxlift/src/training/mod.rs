//! (training)
