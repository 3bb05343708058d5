//! Which of several processes are still there when they are being ended, so that one of them tells of it.

use proxlift::team::Ranks;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// This process among all: its rank, then machine and process id of each.
static ALL: OnceLock<(usize, Vec<(String, u32)>)> = OnceLock::new();

/// Whether this process has told what happened.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Makes the processes known to each other.
pub fn meet(ranks: &Ranks) {
    let own = format!("{}\n{}", machine(), std::process::id());
    let parse = |bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (machine, id) = text.rsplit_once('\n').unwrap_or_default();
        (machine.to_string(), id.parse().unwrap_or_default())
    };
    let all = ranks.bytes_of_all(own.as_bytes()).into_iter().map(parse).collect();
    let _ = ALL.set((ranks.rank(), all));
}

/// What tells machines apart, and containers on one of them.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", name.trim(), space.display())
}

/// This process has told what happened, and is about to end the others: the signal that ends all is none to tell of.
pub fn has_told() {
    TOLD.store(true, Ordering::SeqCst);
}

/// Whether this process tells what happened: the first one, or the next on its machine if that is gone. Where the first one is
/// alone on its machine, nobody can see whether it is gone, and the next one tells too.
pub fn is_speaker() -> bool {
    if TOLD.load(Ordering::SeqCst) {
        return false;
    }
    let Some((rank, all)) = ALL.get() else { return true };
    let beside = |a: usize, b: usize| all[a].0 == all[b].0;
    let before = 0..*rank;
    if beside(*rank, 0) {
        before.filter(|&other| beside(other, 0)).all(|other| !is_there(all[other].1))
    } else {
        *rank == 1 && !(1..all.len()).any(|other| beside(other, 0))
    }
}

#[cfg(unix)]
fn is_there(id: u32) -> bool {
    // SAFETY: signal 0 is none; it is only asked whether one could be sent.
    unsafe { libc::kill(id as libc::pid_t, 0) == 0 }
}

#[cfg(not(unix))]
fn is_there(_: u32) -> bool {
    true
}
