//! What the decoders share: a header that is checked, pixels that are filled in, a picture that stands upright.

use super::exif::take_orientation;
use super::{Allowance, Channels, Decoded, Depth, Metadata, Raster, samples::Samples};
use std::borrow::Cow;
use std::io::{BufRead, Seek, Write};

/// Where pictures are decoded from, and where they are encoded to. Codecs take a reference, so that they are compiled
/// once.
pub(super) trait Source: BufRead + Seek {}
pub(super) trait Target: Write + Seek {}

impl<R: BufRead + Seek> Source for R {}
impl<W: Write + Seek> Target for W {}

/// Gives the page of a number, when it is to be written.
pub(super) type Next<'a> = dyn FnMut(usize) -> Decoded<Cow<'a, Raster>> + 'a;

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

/// Why reading failed, in words.
pub(super) fn cut_short(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the file is truncated".into(),
        _ => error.to_string(),
    }
}
