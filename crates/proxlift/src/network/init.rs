//! Glorot initialisation and the steps `tau_k`.
