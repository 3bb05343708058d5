//! (evaluation)
