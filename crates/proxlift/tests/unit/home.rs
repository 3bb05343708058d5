//! Every task is done once, whoever does it.

use super::at_home;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often each of tasks with these sizes is done.
fn done(sizes: &[usize]) -> Vec<usize> {
    let counts: Vec<_> = sizes.iter().map(|_| AtomicUsize::new(0)).collect();
    let count = |i: usize| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    };
    at_home((0..sizes.len()).collect(), |&i| sizes[i], count);
    counts.into_iter().map(AtomicUsize::into_inner).collect()
}

fn with_threads<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

#[test]
fn every_task_is_done_once() {
    for threads in [1, 2, 3, 8] {
        with_threads(threads, || {
            for sizes in
                [vec![], vec![5], vec![0, 0, 0], vec![1000, 1, 1, 1], vec![1, 1, 1, 1000], vec![3; 89]]
            {
                assert_eq!(done(&sizes), vec![1; sizes.len()], "{sizes:?}, {threads} threads");
            }
        });
    }
}

#[test]
fn nobody_waits_for_threads_that_do_something_else() {
    with_threads(2, || {
        (0..64).into_par_iter().with_max_len(1).for_each(|i| assert_eq!(done(&vec![1; i]), vec![1; i]));
    });
}

#[test]
fn a_panic_is_passed_on() {
    let panics = || at_home(vec![0, 1, 2, 3], |_| 1, |i| assert!(i != 2, "task {i}"));
    let result = with_threads(2, || std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)));
    assert!(result.is_err());
}
