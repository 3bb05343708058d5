//! (network)
