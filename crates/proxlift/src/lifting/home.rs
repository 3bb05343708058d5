//! Work that comes back to the thread that did it the last time.
//!
//! A step of a network takes less than a millisecond, and what it reads and writes fits the caches of the cores. From the cache of
//! another core it comes several times slower, most of all when the two share none; so threads have shares of the work that
//! stay the same from step to step, and help others only when their own is done.

use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often a thread that finds no more tasks looks whether all are done: at first in a row, then after letting others run, and
/// then no more. Waking one that has fallen asleep takes longer than what it usually waits for.
const LOOKS: [usize; 2] = [100, 400];

/// The tasks of a thread, in cache lines of their own.
#[repr(align(128))]
struct Share<T>(Mutex<VecDeque<T>>);

impl<T> Share<T> {
    /// The next task for its own thread; for others the last, so that the same ones move.
    fn take(&self, own: bool) -> Option<T> {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if own { tasks.pop_front() } else { tasks.pop_back() }
    }
}

/// Calls `f` with all tasks, on the threads of the current pool. The share of a thread is the same in every call with tasks of the
/// same sizes, and as large as that of any other.
pub(super) fn at_home<T: Send>(tasks: Vec<T>, size: impl Fn(&T) -> usize, f: impl Fn(T) + Sync) {
    let threads = rayon::current_num_threads().min(tasks.len());
    if threads <= 1 {
        return tasks.into_iter().for_each(f);
    }
    let (left, whole) = (AtomicUsize::new(tasks.len()), tasks.iter().map(&size).sum::<usize>().max(1));
    let mut shares: Vec<_> = (0..threads).map(|_| Share(Mutex::new(VecDeque::new()))).collect();
    let mut before = 0;
    for task in tasks {
        // Where its middle is.
        let (size, share) = (size(&task), (2 * before + size(&task)) * threads / (2 * whole));
        shares[share.min(threads - 1)].0.get_mut().unwrap_or_else(PoisonError::into_inner).push_back(task);
        before += size;
    }
    (0..threads).into_par_iter().with_max_len(1).for_each(|_| {
        let home = rayon::current_thread_index().unwrap_or(0) % threads;
        for share in (home..threads).chain(0..home) {
            while let Some(task) = shares[share].take(share == home) {
                f(task);
                left.fetch_sub(1, Ordering::Release);
            }
        }
        for look in 0..LOOKS[1] {
            if left.load(Ordering::Acquire) == 0 {
                break;
            }
            if look < LOOKS[0] { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    });
}

#[cfg(test)]
#[path = "../../tests/unit/home.rs"]
mod tests;
