//! What the decoders share: a header that is checked, pixels that are filled in, a picture that stands upright.

use super::{Allowance, Channels, Decoded, Depth, Metadata, Raster, samples::Samples};
use std::io::{BufRead, Seek, Write};

/// Where pictures are decoded from, and where they are encoded to. Codecs take a reference, so that they are compiled
/// once.
pub(super) trait Source: BufRead + Seek {}
pub(super) trait Target: Write + Seek {}

impl<R: BufRead + Seek> Source for R {}
impl<W: Write + Seek> Target for W {}

pub(super) struct Header {
    pub width: u32,
    pub height: u32,
    /// Samples of a pixel, alpha included.
    pub samples: usize,
    pub depth: Depth,
    pub metadata: Metadata,
}

impl Header {
    /// The picture, of which `fill` decodes the samples into bytes as they lie in memory.
    pub(super) fn raster(
        mut self,
        allowance: Allowance,
        fill: impl FnOnce(&mut [u8]) -> Decoded<()>,
    ) -> Decoded<Raster> {
        allowance.check(self.width, self.height, self.samples as u64, self.depth.bytes())?;
        let turn = self.metadata.exif.as_deref_mut().and_then(take_orientation).unwrap_or(1);
        let size = (self.height as usize, self.width as usize);
        let mut samples = Samples::zeros(self.depth, self.samples * size.0 * size.1)?;
        fill(samples.bytes_mut())?;
        let channels = if self.samples > 2 { Channels::Rgb } else { Channels::Grey };
        let alpha = self.samples.is_multiple_of(2);
        Ok(Raster::new(channels, alpha, size, samples, self.metadata)?.upright(turn))
    }
}

/// The orientation in an EXIF block, which is reset to upright: it must not be applied twice.
fn take_orientation(exif: &mut [u8]) -> Option<u16> {
    const ORIENTATION: u16 = 0x112;
    const SHORT: u16 = 3;
    let big = match exif.first_chunk()? {
        b"II\x2a\0" => false,
        b"MM\0\x2a" => true,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *exif.get(at..)?.first_chunk()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    };
    let long = |at: usize| {
        let (first, second) = (u32::from(short(at)?), u32::from(short(at + 2)?));
        Some(if big { first << 16 | second } else { second << 16 | first })
    };
    let directory = long(4)? as usize;
    let entries = (0..usize::from(short(directory)?)).map(|i| directory + 2 + 12 * i);
    for entry in entries {
        if (short(entry)?, short(entry + 2)?, long(entry + 4)?) == (ORIENTATION, SHORT, 1) {
            let turn = short(entry + 8).filter(|turn| (1..=8).contains(turn))?;
            let upright = if big { 1_u16.to_be_bytes() } else { 1_u16.to_le_bytes() };
            exif[entry + 8..entry + 10].copy_from_slice(&upright);
            return Some(turn);
        }
    }
    None
}

/// Why reading failed, in words.
pub(super) fn cut_short(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the file is truncated".into(),
        _ => error.to_string(),
    }
}
