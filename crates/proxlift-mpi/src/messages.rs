//! A team over MPI.

use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use proxlift::{Result, team::Team};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The messages of a queue: somebody asks for work, and is given the number of a piece.
const ASKED: mpi::Tag = 1;
const GIVEN: mpi::Tag = 2;

/// Between two looks whether somebody asks: the processor is for the work.
const PAUSE: Duration = Duration::from_millis(2);

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

    /// Gives the next piece of work to whoever asks, and does some in a thread of its own.
    fn serve(&self, jobs: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        let next = AtomicUsize::new(0);
        let own = || {
            loop {
                let job = next.fetch_add(1, Ordering::Relaxed);
                if job >= jobs {
                    return Ok(());
                }
                work(job)?;
            }
        };
        std::thread::scope(|scope| {
            let worker = scope.spawn(own);
            let mut asking = self.size - 1;
            while asking > 0 {
                let asked = self.in_turn(|world| {
                    let status = world.any_process().immediate_probe_with_tag(ASKED)?;
                    let other = world.process_at_rank(status.source_rank());
                    other.receive_with_tag::<u8>(ASKED);
                    let job = next.fetch_add(1, Ordering::Relaxed).min(jobs);
                    other.send_with_tag(&(job as u64), GIVEN);
                    Some(job)
                });
                asking -= usize::from(asked == Some(jobs));
                if asked.is_none() {
                    if worker.is_finished() && next.load(Ordering::Relaxed) < jobs {
                        // Only an error ends it before the work does.
                        break;
                    }
                    std::thread::sleep(PAUSE);
                }
            }
            worker.join().expect("work that does not panic")
        })
    }

    fn ask(&self, jobs: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        loop {
            let job = self.in_turn(|world| {
                world.process_at_rank(0).send_with_tag(&0_u8, ASKED);
                world.process_at_rank(0).receive_with_tag::<u64>(GIVEN).0 as usize
            });
            if job >= jobs {
                return Ok(());
            }
            work(job)?;
        }
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

    fn queue(&self, jobs: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        if self.rank == 0 { self.serve(jobs, work) } else { self.ask(jobs, work) }
    }

    fn rest(&self) {
        let mut arrived = Some(self.in_turn(|world| world.immediate_barrier()));
        while let Some(request) = arrived.take() {
            arrived = request.test().err();
            if arrived.is_some() {
                std::thread::sleep(PAUSE);
            }
        }
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
