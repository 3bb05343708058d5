//! What the report must say of where it was made.

use std::time::Instant;

/// The commit that the program was built from.
pub const COMMIT: &str = match option_env!("PROXLIFT_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// The processor's name, or else its kind.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    named.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

/// Seconds of processor time that this thread has had, where the system tells (Linux): other programs on the same cores
/// do not lengthen them.
pub fn thread_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0.0).then_some(nanoseconds * 1e-9)
}

/// Seconds of the thread that started it: processor time where the system tells, else wall time.
pub struct Stopwatch {
    thread: Option<f64>,
    wall: Instant,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { thread: thread_seconds(), wall: Instant::now() }
    }

    pub fn seconds(&self) -> f64 {
        let spent = self.thread.zip(thread_seconds()).map(|(from, to)| to - from);
        spent.unwrap_or_else(|| self.wall.elapsed().as_secs_f64())
    }
}

pub fn clock() -> &'static str {
    if thread_seconds().is_some() { "processor time" } else { "wall time" }
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
