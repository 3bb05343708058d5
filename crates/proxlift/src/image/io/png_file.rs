//! PNG, through the `png` crate. It is written row by row: the encoders that take a whole picture keep a second one in
//! memory.

use super::common::{Header, Source, cut_short};
use super::samples::{Sample, Samples};
use super::{Allowance, Channels, Decoded, Depth, Metadata, Raster};
use ::png::{
    BitDepth, ColorType, Compression, Decoder, DecodingError, Encoder, Filter, Info, Limits, Transformations,
};
use std::{borrow::Cow, io::Write};

const CHUNK: usize = 64 << 10;

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let bytes = usize::try_from(allowance.limits.max_bytes).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new_with_limits(reader, Limits { bytes });
    decoder.set_ignore_text_chunk(true);
    // Palettes become colours, and fewer than 8 bits become 8; 16 bits stay.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(why)?;
    let (colours, bits) = reader.output_color_type();
    let depth = match bits {
        BitDepth::Eight => Depth::Eight,
        BitDepth::Sixteen => Depth::Sixteen,
        other => return Err(format!("PNG with {other:?}-bit samples cannot be read; convert it to 8 bits")),
    };
    let info = reader.info();
    let metadata = Metadata {
        icc: info.icc_profile.as_ref().map(|icc| icc.to_vec()),
        exif: info.exif_metadata.as_ref().map(|exif| exif.to_vec()),
        ..Metadata::default()
    };
    let (width, height) = info.size();
    Header { width, height, samples: colours.samples(), depth, metadata }.raster(allowance, |bytes| {
        reader.next_frame(bytes).map_err(why)?;
        if depth == Depth::Sixteen {
            // The high byte comes first.
            let samples = bytes.as_chunks_mut::<2>().0;
            samples.iter_mut().for_each(|sample| *sample = u16::from_be_bytes(*sample).to_ne_bytes());
        }
        Ok(())
    })
}

fn why(error: DecodingError) -> String {
    match error {
        DecodingError::IoError(e) => cut_short(&e),
        other => format!("the PNG cannot be decoded: {other}"),
    }
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Write) -> Decoded<()> {
    let colour = match (raster.kind(), raster.has_alpha()) {
        (Channels::Grey, false) => ColorType::Grayscale,
        (Channels::Grey, true) => ColorType::GrayscaleAlpha,
        (Channels::Rgb, false) => ColorType::Rgb,
        (Channels::Rgb, true) => ColorType::Rgba,
    };
    let mut info = Info::with_size(raster.width() as u32, raster.height() as u32);
    info.icc_profile = raster.metadata.icc.as_deref().map(Cow::Borrowed);
    info.exif_metadata = raster.metadata.exif.as_deref().map(Cow::Borrowed);
    let mut encoder = Encoder::with_info(file, info).map_err(|e| e.to_string())?;
    encoder.set_color(colour);
    let eight = matches!(raster.samples(), Samples::Eight(_));
    encoder.set_depth(if eight { BitDepth::Eight } else { BitDepth::Sixteen });
    encoder.set_compression(Compression::Fast);
    encoder.set_filter(Filter::Adaptive);
    let mut writer = encoder.write_header().map_err(|e| e.to_string())?;
    let mut stream = writer.stream_writer_with_size(CHUNK).map_err(|e| e.to_string())?;
    let row = raster.width() * raster.samples_per_pixel();
    let mut write = |bytes: &[u8]| stream.write_all(bytes).map_err(|e| e.to_string());
    match raster.samples() {
        Samples::Eight(s) => s.chunks_exact(row).try_for_each(&mut write)?,
        Samples::Sixteen(s) => rows(s, row, |v| v, &mut write)?,
        Samples::Float(s) => rows(s, row, u16::of, &mut write)?,
    }
    stream.finish().map_err(|e| e.to_string())?;
    writer.finish().map_err(|e| e.to_string())
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
