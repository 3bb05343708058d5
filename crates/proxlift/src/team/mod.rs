//! Processes that train one network together, each with its own share of every batch.
//!
//! ```text
//! Team    what carries bytes between the members: nothing (a process alone), or MPI (crate proxlift-mpi)
//! Ranks   a batch spread over a team: who has which sample, sums and lists in the order of the batch
//! ```
//!
//! Training asks [`Ranks`] for whatever concerns all samples of a batch, and does not know how many members there are. Sums
//! over samples are taken in the order of the batch, in double precision, whoever has the samples: so no bit of a training
//! depends on the team.

mod agreement;
mod ordered;
mod places;
mod ranks;

use crate::Result;
pub use agreement::{Ending, Message};
pub use ranks::Ranks;

/// What carries bytes between the members of a team. All members make the same calls in the same order; a call returns when
/// the others have made theirs. Where a member is lost, the team ends: no call returns an error.
pub trait Team: Send + Sync {
    /// Which member this is, from 0.
    fn rank(&self) -> usize;

    /// How many members there are.
    fn size(&self) -> usize;

    /// Sends to every member its part of `own`, `to[r]` bytes for member `r`, part after part, and receives what they send to
    /// this one, `from[r]` bytes of member `r`, into `theirs`.
    fn exchange(&self, own: &[u8], to: &[usize], theirs: &mut [u8], from: &[usize]);

    /// Everybody's bytes, one member after the other, `from[r]` of member `r`, into `all`.
    fn gather(&self, own: &[u8], all: &mut [u8], from: &[usize]);

    /// Waits until all members are here, and leaves the processor to them meanwhile.
    fn rest(&self);

    /// Does `jobs` pieces of work that have nothing to do with each other; every member takes the next that is left. A member
    /// returns at its first error, whatever the others do.
    fn queue(&self, jobs: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()>;
}

/// A process of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Team for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&self, own: &[u8], _: &[usize], theirs: &mut [u8], _: &[usize]) {
        theirs.copy_from_slice(own);
    }

    fn gather(&self, own: &[u8], all: &mut [u8], _: &[usize]) {
        all.copy_from_slice(own);
    }

    fn rest(&self) {}

    fn queue(&self, jobs: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        (0..jobs).try_for_each(work)
    }
}
