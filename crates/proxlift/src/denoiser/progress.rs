//! How far the work is, for those who wait.

use crate::{Error, Result};
use std::ops::ControlFlow;

/// Told how many tiles are done, and of how many; ends the work if it breaks.
pub type Progress<'a> = dyn FnMut(usize, usize) -> ControlFlow<()> + 'a;

pub(super) fn step(progress: &mut Progress<'_>, done: usize, all: usize) -> Result<()> {
    match progress(done, all) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}
