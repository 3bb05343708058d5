//! (prox)
