//! A team over MPI.

use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use proxlift::team::Team;
use std::sync::{Mutex, PoisonError};

/// All processes that `mpirun` started.
pub struct Messages {
    rank: usize,
    size: usize,
    /// One call at a time, as MPI was told.
    turn: Mutex<()>,
}

impl Messages {
    /// The processes of `world`.
    pub fn new(world: &SimpleCommunicator) -> Self {
        Self { rank: world.rank() as usize, size: world.size() as usize, turn: Mutex::default() }
    }

    fn in_turn<R>(&self, call: impl FnOnce(SimpleCommunicator) -> R) -> R {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        call(SimpleCommunicator::world())
    }
}

/// The lengths of parts, and where they start, as MPI counts.
fn parts(lengths: &[usize]) -> (Vec<Count>, Vec<Count>) {
    let mut next = 0;
    let count = |&length: &usize| {
        let count = Count::try_from(length).expect("a message of less than 2 GiB");
        next += count;
        (count, next - count)
    };
    lengths.iter().map(count).unzip()
}

/// An empty slice of Rust need not point anywhere, and its address may be one that has a meaning to MPI.
fn somewhere(bytes: &[u8]) -> &[u8] {
    static NOTHING: [u8; 1] = [0];
    if bytes.is_empty() { &NOTHING[..0] } else { bytes }
}

impl Team for Messages {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&self, own: &[u8], to: &[usize], theirs: &mut [u8], from: &[usize]) {
        let ((to, to_starts), (from, from_starts)) = (parts(to), parts(from));
        let own = Partition::new(somewhere(own), to, to_starts);
        let mut nothing = [0];
        let theirs = if theirs.is_empty() { &mut nothing[..0] } else { theirs };
        let mut theirs = PartitionMut::new(theirs, from, from_starts);
        self.in_turn(|world| world.all_to_all_varcount_into(&own, &mut theirs));
    }

    fn gather(&self, own: &[u8], all: &mut [u8], from: &[usize]) {
        if all.is_empty() {
            // All know that nobody has anything.
            return;
        }
        let (from, starts) = parts(from);
        let mut all = PartitionMut::new(all, from, starts);
        self.in_turn(|world| world.all_gather_varcount_into(somewhere(own), &mut all));
    }
}
