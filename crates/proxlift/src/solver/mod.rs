//! (solver)
