//! How much memory there is, asked before work starts that would take more.
//!
//! The least counts of what the machine has free, what its container may still take (control groups of both versions), what
//! the shell allows (`ulimit -v`), and what the user allows ([`limit_to`]). Should the system still have none left when a
//! large vector is asked for, the work unwinds to where it was begun ([`or_error`]) and ends with an error: no abort.

use crate::Result;
use bytemuck::Zeroable;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the user allows.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// To ask the system takes as long as to read a small picture, which needs less than this.
const SMALL: u64 = 1 << 21;

/// Allows this process so many bytes in all.
pub fn limit_to(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Bytes that can still be taken, where the system tells.
pub fn available() -> Option<u64> {
    let limit = LIMIT.load(Ordering::Relaxed);
    let given = (limit < u64::MAX)
        .then(|| limit.saturating_sub(kilobytes("/proc/self/status", "VmRSS:").unwrap_or(0)));
    [given, kilobytes("/proc/meminfo", "MemAvailable:"), of_shell(), of_container(Path::new("/"))]
        .into_iter()
        .flatten()
        .min()
}

/// Refuses work that needs more than there is; `what` it is stands first in the sentence.
pub fn check(what: &str, needed: u64) -> Result<()> {
    if needed < SMALL && LIMIT.load(Ordering::Relaxed) == u64::MAX {
        return Ok(());
    }
    let Some(available) = available() else { return Ok(()) };
    refuse!(needed > available =>
        "{what} needs about {} of memory, but there are {}", told(needed), told(available));
    Ok(())
}

/// What unwinds when there is no memory for so many bytes.
struct Exhausted(usize);

thread_local! {
    static TRIED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread asks for memory that it can do without: for allocators that end the program where there is none.
pub fn is_tried() -> bool {
    TRIED.get()
}

fn tried<R>(ask: impl FnOnce() -> R) -> R {
    TRIED.set(true);
    let result = ask();
    TRIED.set(false);
    result
}

/// So many zeros, if there is memory for them.
pub(crate) fn try_zeros<T: Zeroable>(len: usize) -> Option<Vec<T>> {
    tried(|| bytemuck::allocation::try_zeroed_vec(len).ok())
}

/// An empty vector with room for so many, if there is memory for them.
pub(crate) fn try_room<T>(len: usize) -> Option<Vec<T>> {
    let mut vector = Vec::new();
    tried(|| vector.try_reserve_exact(len)).ok().map(|()| vector)
}

/// So many zeros; unwinds to [`or_error`] where there is no memory for them.
pub(crate) fn zeros<T: Zeroable>(len: usize) -> Vec<T> {
    try_zeros(len).unwrap_or_else(|| exhausted::<T>(len))
}

/// An empty vector with room for so many; unwinds to [`or_error`] where there is no memory for them.
pub(crate) fn room<T>(len: usize) -> Vec<T> {
    try_room(len).unwrap_or_else(|| exhausted::<T>(len))
}

/// Unwinds without the hook of panics, which would print: this is none.
fn exhausted<T>(len: usize) -> ! {
    resume_unwind(Box::new(Exhausted(len.saturating_mul(size_of::<T>()))))
}

/// Does work that asks for large vectors; that there is no memory for one is an error.
pub fn or_error<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    // What the work left half done is not looked at again: vectors that are kept for later work are whole.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| match payload.downcast::<Exhausted>() {
        Ok(exhausted) => Err(invalid!(
            "the system has no memory left for {} more: free some, or give smaller tiles, batches or pictures",
            told(exhausted.0 as u64)
        )),
        Err(panic) => resume_unwind(panic),
    })
}

fn told(bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    if megabytes < 10.0 {
        format!("{megabytes:.1} MB")
    } else if megabytes < 1000.0 {
        format!("{megabytes:.0} MB")
    } else {
        format!("{:.1} GB", megabytes / 1000.0)
    }
}

/// The number behind `name` in a file of the kernel, in bytes.
fn kilobytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

fn of_shell() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(most.saturating_sub(kilobytes("/proc/self/status", "VmSize:")?))
}

/// The least that this process's control group, or one of those above it, has left; `root` is that of the file system.
fn of_container(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let left = groups.lines().filter_map(|line| {
        let (kind, names, path) = match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            ["0", "", path] => ("sys/fs/cgroup", ["memory.max", "memory.current"], path),
            [_, kinds, path] if kinds.split(',').any(|kind| kind == "memory") => {
                ("sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"], path)
            }
            _ => return None,
        };
        // Inside a container, the path is that of the host: its root is then the container's own.
        let path = path.trim_start_matches('/');
        Path::new(path).ancestors().filter_map(|group| left_in(&root.join(kind).join(group), names)).min()
    });
    left.min()
}

fn left_in(group: &Path, [most, taken]: [&str; 2]) -> Option<u64> {
    let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let most = number(most)?;
    // Pages of files count as taken, but are given back when they are needed.
    let cached = std::fs::read_to_string(group.join("memory.stat")).ok().and_then(|text| {
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        // In version 1, the first of the two leaves out the groups below.
        line("total_inactive_file ").or_else(|| line("inactive_file "))
    });
    Some(most.saturating_sub(number(taken)?.saturating_sub(cached.unwrap_or(0))))
}

#[cfg(test)]
#[path = "../tests/unit/memory.rs"]
mod tests;
