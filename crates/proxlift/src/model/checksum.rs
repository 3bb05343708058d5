//! The checksum of models and checkpoints: CRC-32 over the whole file, in its header, where other programs that read
//! safetensors find one more text.
//!
//! It is written over eight zeros and verified as if they still stood there. Files without it are of version 0.4 or
//! before; in them no name but the known ones may stand, so that no damage to the name of the checksum hides it.

use crate::Result;
use crc32fast::Hasher;

/// The name of the checksum among the metadata.
pub(super) const NAME: &str = "checksum";
/// What is written first.
pub(super) const BLANK: &str = "crc32:00000000";
const ZEROS: &[u8] = b"00000000";
/// As it stands in a header. In a text of the metadata the quotes would be escaped.
const BEFORE: &[u8] = br#""checksum":"crc32:"#;

/// Where the digits begin.
fn place(header: &[u8]) -> Option<usize> {
    let start = header.windows(BEFORE.len()).position(|part| part == BEFORE)? + BEFORE.len();
    (start + ZEROS.len() <= header.len()).then_some(start)
}

/// Writes the checksum into `start`, the length and the header of a file whose data `hash` adds.
pub(super) fn seal(start: &mut [u8], hash: impl FnOnce(&mut Hasher)) {
    let mut hasher = Hasher::new();
    hasher.update(start);
    hash(&mut hasher);
    if let Some(at) = place(start) {
        start[at..at + ZEROS.len()].copy_from_slice(format!("{:08x}", hasher.finalize()).as_bytes());
    }
}

/// Checks a file whose header, of length `header`, names a checksum.
pub(super) fn verify(bytes: &[u8], header: usize) -> Result<()> {
    let sound = place(&bytes[..8 + header]).is_some_and(|at| {
        let end = at + ZEROS.len();
        let mut hasher = Hasher::new();
        [&bytes[..at], ZEROS, &bytes[end..]].iter().for_each(|part| hasher.update(part));
        bytes[at..end] == *format!("{:08x}", hasher.finalize()).as_bytes()
    });
    refuse!(!sound => "the file is damaged: its checksum is wrong");
    Ok(())
}
