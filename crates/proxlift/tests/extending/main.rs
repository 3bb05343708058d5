//! The examples of `docs/extending.md`: each adds something to the library from outside, and is held to its laws.
#![allow(missing_docs)]

mod engine;
mod prox;
mod trainer;
