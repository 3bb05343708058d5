//! What the report must say of where it was made.

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

/// The cores that the program may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
