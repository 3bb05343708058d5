//! How much memory there is, asked before work starts that would take more.
//!
//! The least counts of what the machine has free, what its container may still take (control groups of both versions), what
//! the shell allows (`ulimit -v`), and what the user allows ([`limit_to`]).

use crate::Result;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the user allows.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Allows this process so many bytes in all.
pub fn limit_to(bytes: u64) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Bytes that can still be taken, where the system tells.
pub fn available() -> Option<u64> {
    let limit = LIMIT.load(Ordering::Relaxed);
    let given = (limit < u64::MAX)
        .then(|| limit.saturating_sub(kilobytes("/proc/self/status", "VmRSS:").unwrap_or(0)));
    [given, kilobytes("/proc/meminfo", "MemAvailable:"), of_shell(), of_container()]
        .into_iter()
        .flatten()
        .min()
}

/// Refuses work that needs more than there is; `what` it is stands first in the sentence.
pub fn check(what: &str, needed: u64) -> Result<()> {
    let Some(available) = available() else { return Ok(()) };
    refuse!(needed > available =>
        "{what} needs about {} of memory, but there are {}", told(needed), told(available));
    Ok(())
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

/// The least that this process's control group, or one of those above it, has left.
fn of_container() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let left = groups.lines().filter_map(|line| {
        let (root, names, path) = match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            ["0", "", path] => ("/sys/fs/cgroup", ["memory.max", "memory.current"], path),
            [_, kinds, path] if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes"], path)
            }
            _ => return None,
        };
        // Inside a container, the path is that of the host: its root is then the container's own.
        let path = path.trim_start_matches('/');
        Path::new(path).ancestors().filter_map(|group| left_in(&Path::new(root).join(group), names)).min()
    });
    left.min()
}

fn left_in(group: &Path, [most, taken]: [&str; 2]) -> Option<u64> {
    let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let most = number(most)?;
    // Pages of files count as taken, but are given back when they are needed.
    let cached = std::fs::read_to_string(group.join("memory.stat")).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("inactive_file "))?;
        line.trim().parse::<u64>().ok()
    });
    Some(most.saturating_sub(number(taken)?.saturating_sub(cached.unwrap_or(0))))
}
