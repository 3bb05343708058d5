//! Files on the disk: read only where they are regular, written whole or not at all, and locked while they are in use.
//!
//! Every call that changes the disk goes through [`calls`], where tests make each of them fail in turn ([`faults`]).
//! `docs/reliability.md` in the repository says what is promised.

mod atomic;
mod calls;
#[doc(hidden)]
pub mod faults;
mod lock;
mod partial;
#[cfg(target_family = "wasm")]
mod provided;
mod regular;

pub(crate) use atomic::write_keeping;
pub use atomic::{append, copy, sync, write_atomically};
pub use lock::Lock;
pub use partial::{Partial, remove_partials, remove_partials_if_free};
#[cfg(target_family = "wasm")]
pub use provided::provide;
#[cfg(target_family = "wasm")]
pub(crate) use provided::provided;
pub use regular::{open, read, read_text};
