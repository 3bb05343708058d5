//! PNG is written row by row: the encoders that take a whole picture keep a second one in memory.

use std::borrow::Cow;
use std::io::Write;

use ::png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter, Info};

use super::samples::{Sample, Samples};
use super::{Channels, Decoded, Raster};

/// Bytes of a data chunk.
const CHUNK: usize = 64 << 10;

pub(super) fn encode(raster: &Raster, file: impl Write) -> Decoded<()> {
    let colour = match (raster.kind(), raster.has_alpha()) {
        (Channels::Grey, false) => ColorType::Grayscale,
        (Channels::Grey, true) => ColorType::GrayscaleAlpha,
        (Channels::Rgb, false) => ColorType::Rgb,
        (Channels::Rgb, true) => ColorType::Rgba,
    };
    let mut info = Info::with_size(raster.width() as u32, raster.height() as u32);
    info.icc_profile = raster.metadata.icc.as_deref().map(Cow::Borrowed);
    info.exif_metadata = raster.metadata.exif.as_deref().map(Cow::Borrowed);
    let mut encoder = Encoder::with_info(file, info).map_err(why)?;
    encoder.set_color(colour);
    let eight = matches!(raster.samples(), Samples::Eight(_));
    encoder.set_depth(if eight { BitDepth::Eight } else { BitDepth::Sixteen });
    encoder.set_compression(Compression::Fast);
    encoder.set_filter(Filter::Adaptive);
    let mut writer = encoder.write_header().map_err(why)?;
    let mut stream = writer.stream_writer_with_size(CHUNK).map_err(why)?;
    let row = raster.width() * raster.samples_per_pixel();
    let mut write = |bytes: &[u8]| stream.write_all(bytes).map_err(|e| e.to_string());
    match raster.samples() {
        Samples::Eight(s) => s.chunks_exact(row).try_for_each(&mut write)?,
        Samples::Sixteen(s) => rows(s, row, |v| v, &mut write)?,
        Samples::Float(s) => rows(s, row, u16::of, &mut write)?,
    }
    stream.finish().map_err(why)?;
    writer.finish().map_err(why)
}

/// Writes rows of `row` samples as 16-bit numbers, high byte first.
fn rows<T: Copy>(
    samples: &[T],
    row: usize,
    sixteen: impl Fn(T) -> u16,
    write: &mut impl FnMut(&[u8]) -> Decoded<()>,
) -> Decoded<()> {
    let mut bytes = Vec::with_capacity(2 * row);
    for samples in samples.chunks_exact(row) {
        bytes.clear();
        bytes.extend(samples.iter().flat_map(|&v| sixteen(v).to_be_bytes()));
        write(&bytes)?;
    }
    Ok(())
}

fn why(error: EncodingError) -> String {
    error.to_string()
}
