//! Faults for tests: the n-th call to the disk fails.

use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a call does to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Makes a file.
    Create,
    /// Writes bytes.
    Write,
    /// Waits until bytes or names have reached the disk.
    Sync,
    /// Gives a file another name, or a second one.
    Rename,
    /// Removes a file.
    Remove,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full: nothing can be made or written.
    Full,
    /// Fewer bytes are written than were given, which is no error.
    Short,
    /// Bytes do not reach the disk.
    Unsynced,
    /// A file cannot be renamed.
    Unnamed,
    /// The right to write is lost.
    Denied,
    /// The program dies before the call: this and all later ones do nothing.
    Crash,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Short, Self::Unsynced, Self::Unnamed, Self::Denied, Self::Crash];
}

/// What is to go wrong, at which call.
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
static CALLS: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy)]
struct Plan {
    fault: Fault,
    at: usize,
    /// Whether a crash ends the process in earnest.
    aborts: bool,
}

/// Runs `f`, with `fault` at its `at`-th call from 0; also tells how many calls there were. One at a time.
pub fn with<R>(fault: Fault, at: usize, f: impl FnOnce() -> R) -> (R, usize) {
    run(Some(Plan { fault, at, aborts: false }), f)
}

/// Runs `f`, and tells how many calls to the disk it made.
pub fn count<R>(f: impl FnOnce() -> R) -> (R, usize) {
    run(None, f)
}

fn run<R>(plan: Option<Plan>, f: impl FnOnce() -> R) -> (R, usize) {
    *plan_slot() = plan;
    CALLS.store(0, Ordering::Relaxed);
    let result = f();
    *plan_slot() = None;
    (result, CALLS.load(Ordering::Relaxed))
}

fn plan_slot() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the plan of a test from its words, `crash 17` say; a crash then ends the process.
pub fn from_words(words: &str) -> Option<()> {
    let (fault, at) = words.split_once(' ')?;
    let fault = Fault::ALL.into_iter().find(|f| format!("{f:?}").eq_ignore_ascii_case(fault))?;
    *plan_slot() = Some(Plan { fault, at: at.parse().ok()?, aborts: true });
    Some(())
}

/// How many calls there were.
pub fn calls() -> usize {
    CALLS.load(Ordering::Relaxed)
}

/// Whether the program would be dead by now.
pub(super) fn is_dead() -> bool {
    matches!(*plan_slot(), Some(Plan { fault: Fault::Crash, at, .. }) if calls() > at)
}

/// To be asked before every call; of `bytes` to be written, how many will be.
pub(super) fn before(call: Call, bytes: usize) -> Result<usize> {
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    let Some(Plan { fault, at, aborts }) = *plan_slot() else { return Ok(bytes) };
    let made = matches!(call, Call::Create | Call::Write);
    match fault {
        Fault::Crash if number >= at && aborts => std::process::abort(),
        Fault::Crash if number >= at => Err(Error::other("the program died")),
        _ if number != at => Ok(bytes),
        Fault::Full if made => Err(ErrorKind::StorageFull.into()),
        Fault::Short if call == Call::Write => Ok(bytes.div_ceil(2)),
        Fault::Unsynced if call == Call::Sync => Err(Error::other("bytes did not reach the disk")),
        Fault::Unnamed if call == Call::Rename => Err(Error::other("the file cannot be renamed")),
        Fault::Denied if call != Call::Sync => Err(ErrorKind::PermissionDenied.into()),
        _ => Ok(bytes),
    }
}
