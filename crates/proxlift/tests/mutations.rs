//! Damaged files of every kind that the library reads: a fixed number of mutations of files that it wrote, the same every time;
//! or as many as are wanted, with `fuzz/run`. No panic, no abort, no case over a second or a gigabyte.
#![allow(missing_docs)]

#[path = "../../../fuzz/targets.rs"]
mod targets;

use targets::{ALL, mutate};

#[global_allocator]
static COUNTING: mutate::Counting = mutate::Counting;

/// Mutations of all targets together, in a test run of every day.
const USUAL: u64 = 200_000;

#[test]
fn no_mutation_of_any_file_panics_or_takes_long() {
    mutate::attack_all("library", &ALL, USUAL);
}

#[test]
fn seeds_are_read() {
    mutate::seeds_are_read(&ALL);
    assert!(ALL.iter().all(|target| targets::named(target.name).is_some()));
}
