//! Tasks on several threads, or processes.

use crate::train::interrupt;
use proxlift::{Error, Result, team::Ranks};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does all tasks in order, so many at a time. After a failure no other is begun, and the first one is returned.
pub fn side_by_side<T: Sync>(
    tasks: &[T],
    at_a_time: usize,
    work: impl Fn(&T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(task).inspect_err(|_| next.store(tasks.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time.min(tasks.len())).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })
}

/// Does all tasks in order, one at a time by each process; whoever is free takes the next. What is done is kept by the tasks
/// themselves, so that a command that was ended goes on from there.
pub fn over_processes<T: Sync>(
    tasks: &[T],
    ranks: &Ranks,
    work: impl Fn(&T) -> anyhow::Result<()> + Sync,
) -> Result<()> {
    interrupt::leave_as_a_team("the same command goes on with it");
    let one = |i: usize| {
        work(&tasks[i]).map_err(|e| e.downcast().unwrap_or_else(|e| Error::invalid(format!("{e:#}"))))
    };
    ranks.queue(tasks.len(), &one)?;
    ranks.agree(Ok(()))
}
