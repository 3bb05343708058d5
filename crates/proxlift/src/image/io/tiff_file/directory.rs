//! The first directory of a TIFF, looked at before the decoder does.

use super::super::Decoded;
use super::super::common::Source;
use std::io::SeekFrom;

/// The type of texts.
const TEXT: u64 = 2;

/// Refuses a text that is longer than the file: the decoder would ask for its memory, and print a line of its own.
pub(super) fn check_texts(source: &mut dyn Source) -> Decoded<()> {
    let length = source.seek(SeekFrom::End(0)).map_err(|e| e.to_string())?;
    let longest = longest_text(source).unwrap_or(0);
    source.rewind().map_err(|e| e.to_string())?;
    match longest > length {
        true => Err(format!("a text of the TIFF claims {longest} bytes, but the file has {length}")),
        false => Ok(()),
    }
}

/// The length of the longest; none where there is no directory, which is left to the decoder.
fn longest_text(source: &mut dyn Source) -> Option<u64> {
    source.rewind().ok()?;
    let start = bytes::<4>(source)?;
    let little = start[0] == b'I';
    let large = start[if little { 2 } else { 3 }] == 43;
    if large {
        bytes::<4>(source)?;
    }
    let width = if large { 8 } else { 4 };
    let at = number(source, width, little)?;
    source.seek(SeekFrom::Start(at)).ok()?;
    let entries = number(source, if large { 8 } else { 2 }, little)?;
    let mut longest = 0;
    for _ in 0..entries.min(1 << 16) {
        let (_, kind) = (number(source, 2, little)?, number(source, 2, little)?);
        let count = number(source, width, little)?;
        number(source, width, little)?;
        longest = longest.max(if kind == TEXT { count } else { 0 });
    }
    Some(longest)
}

fn bytes<const N: usize>(source: &mut dyn Source) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// A number of 2, 4 or 8 bytes.
fn number(source: &mut dyn Source, width: usize, little: bool) -> Option<u64> {
    let mut bytes = [0; 8];
    source.read_exact(&mut bytes[..width]).ok()?;
    if !little {
        bytes[..width].reverse();
    }
    Some(u64::from_le_bytes(bytes))
}
