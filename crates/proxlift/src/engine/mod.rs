//! (engine)
