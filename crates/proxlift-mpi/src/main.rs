//! `mpirun -n N proxlift-mpi train ...`: the training of `proxlift train` by N processes, to the same bits.

mod messages;

use messages::Messages;
use mpi::Threading;
use mpi::topology::SimpleCommunicator;
use mpi::traits::Communicator;
use proxlift::team::Ranks;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    // Messages are sent by one thread at a time, which need not be the first.
    let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized) else {
        eprintln!("error: MPI was started already");
        return ExitCode::FAILURE;
    };
    if threading < Threading::Serialized {
        eprintln!(
            "error: this MPI cannot be used by programs with threads: install one that can, such as Open MPI"
        );
        return ExitCode::FAILURE;
    }
    let ranks = Arc::new(Ranks::new(Arc::new(Messages::new(&universe.world()))));
    proxlift_cli::main_together(&ranks, |code| SimpleCommunicator::world().abort(code))
}
