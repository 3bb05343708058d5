//! PNG, through the `png` crate. It is written row by row: the encoders that take a whole picture keep a second one in
//! memory.

use super::common::{Header, Source, cut_short};
use super::limits::METADATA;
use super::metadata::{Kept, Metadata, Native, PngKept, Resolution, Text, Unit};
use super::samples::{Sample, Samples};
use super::{Allowance, Channels, Decoded, Depth, Raster};
use ::png::text_metadata::{ITXtChunk, TEXtChunk};
use ::png::{
    BitDepth, ColorType, Compression, Decoder, DecodingError, Encoder, Filter, Info, Limits, PixelDimensions,
    Transformations, Unit as PngUnit,
};
use std::{borrow::Cow, io::Write};

const CHUNK: usize = 64 << 10;

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut decoder = Decoder::new_with_limits(reader, Limits { bytes: METADATA });
    // Beside the metadata, the decoder takes a few rows.
    let row = 8 * decoder.read_header_info().map_err(why)?.width as usize;
    decoder.set_limits(Limits { bytes: METADATA.saturating_add(4 * row) });
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
    if info.color_type == ColorType::Indexed {
        allowance.announce("the colours of its palette are written as RGB");
    } else if (info.bit_depth as u8) < 8 {
        allowance.announce(&format!("{}-bit samples are written as 8 bits", info.bit_depth as u8));
    }
    if info.animation_control.is_some() {
        allowance.first_frame()?;
    }
    let (width, height) = info.size();
    let header = Header { width, height, samples: colours.samples(), depth, metadata: metadata(info) };
    let mut raster = header.raster(allowance, |bytes| {
        reader.next_frame(bytes).map_err(why)?;
        if depth == Depth::Sixteen {
            // The high byte comes first.
            let samples = bytes.as_chunks_mut::<2>().0;
            samples.iter_mut().for_each(|sample| *sample = u16::from_be_bytes(*sample).to_ne_bytes());
        }
        Ok(())
    })?;
    // Texts may come behind the pixels, which are good whatever comes behind them.
    if reader.finish().is_ok() {
        let all = metadata(reader.info());
        (raster.metadata.texts, raster.metadata.xmp) = (all.texts, all.xmp);
    }
    Ok(raster)
}

/// The keyword of a text that is an XMP packet.
const XMP: &str = "XML:com.adobe.xmp";
/// The most that a compressed text may become.
const MOST_TEXT: usize = 4 << 20;

fn metadata(info: &Info) -> Metadata {
    let (mut texts, mut xmp) = (Vec::new(), None);
    for chunk in &info.uncompressed_latin1_text {
        texts.push(Text::new(&chunk.keyword, chunk.text.as_str()));
    }
    for chunk in &info.compressed_latin1_text {
        let mut chunk = chunk.clone();
        if chunk.decompress_text_with_limit(MOST_TEXT).is_ok() {
            texts.extend(chunk.get_text().map(|text| Text::new(&chunk.keyword, text)));
        }
    }
    for chunk in &info.utf8_text {
        let mut chunk = chunk.clone();
        if chunk.decompress_text_with_limit(MOST_TEXT).is_err() {
            continue;
        }
        match chunk.get_text() {
            Ok(text) if chunk.keyword == XMP => xmp = Some(text.into_bytes()),
            text => texts.extend(text.map(|text| Text::new(&chunk.keyword, text))),
        }
    }
    let resolution = info.pixel_dims.map(|dimensions| Resolution {
        x: (dimensions.xppu, 1),
        y: (dimensions.yppu, 1),
        unit: if dimensions.unit == PngUnit::Meter { Unit::Metre } else { Unit::None },
    });
    let kept = PngKept { gamma: info.gama_chunk, chromaticities: info.chrm_chunk, srgb: info.srgb };
    Metadata {
        icc: info.icc_profile.as_ref().map(|icc| icc.to_vec()),
        exif: info.exif_metadata.as_ref().map(|exif| exif.to_vec()),
        xmp,
        resolution,
        texts,
        settings: None,
        native: Native(if kept == PngKept::default() { Kept::Nothing } else { Kept::Png(kept) }),
    }
}

/// Sets what is said about the pixels.
fn describe(info: &mut Info, metadata: &Metadata) {
    let pixels = |resolution: Resolution| match resolution.whole(Unit::Metre) {
        Some((xppu, yppu)) => Some(PixelDimensions { xppu, yppu, unit: PngUnit::Meter }),
        None => resolution.whole(Unit::None).map(|(xppu, yppu)| PixelDimensions {
            xppu,
            yppu,
            unit: PngUnit::Unspecified,
        }),
    };
    info.pixel_dims = metadata.resolution.and_then(pixels);
    for text in metadata.texts_with_settings() {
        let string = text.string().replace('\0', " ");
        // Keywords have up to 79 characters of Latin-1.
        let key: String = text.key.chars().filter(|c| (' '..='\u{ff}').contains(c)).take(79).collect();
        if string.chars().all(|c| c <= '\u{ff}') {
            info.uncompressed_latin1_text.push(TEXtChunk::new(key, string));
        } else {
            info.utf8_text.push(ITXtChunk::new(key, string));
        }
    }
    if let Some(xmp) = &metadata.xmp {
        info.utf8_text.push(ITXtChunk::new(XMP, String::from_utf8_lossy(xmp)));
    }
    if let Kept::Png(kept) = &metadata.native.0 {
        info.source_gamma = kept.gamma;
        info.source_chromaticities = kept.chromaticities;
        // A profile says it better.
        info.srgb = kept.srgb.filter(|_| metadata.icc.is_none());
    }
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
    describe(&mut info, &raster.metadata);
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
