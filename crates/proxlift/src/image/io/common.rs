//! PNG, JPEG and WebP, through the `image` crate.

use std::io::{BufRead, BufWriter, Cursor, Read, Seek, Write};

use ::image::codecs::{jpeg, png, webp};
use ::image::metadata::Orientation;
use ::image::{ColorType, ExtendedColorType, ImageDecoder, ImageEncoder};

use super::samples::Samples;
use super::{Allowance, Channels, Decoded, Depth, Format, Metadata, Raster, png_file};

/// High enough that the coding error stays below what denoising leaves.
const JPEG_QUALITY: u8 = 95;

pub(super) fn decode(
    mut reader: impl BufRead + Seek,
    format: Format,
    allowance: Allowance,
) -> Decoded<Raster> {
    let max_bytes = allowance.limits.max_bytes;
    let mut within = ::image::Limits::no_limits();
    within.max_alloc = Some(max_bytes);
    match format {
        Format::Png => {
            pixels(png::PngDecoder::with_limits(reader, within.clone()).map_err(why)?, within, allowance)
        }
        Format::WebP => pixels(webp::WebPDecoder::new(reader).map_err(why)?, within, allowance),
        Format::Jpeg => {
            let mut bytes = Vec::new();
            reader.by_ref().take(max_bytes).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
            if !jpeg_ends(&bytes) {
                return Err("the JPEG is truncated: its end marker is missing".into());
            }
            pixels(jpeg::JpegDecoder::new(Cursor::new(bytes)).map_err(why)?, within, allowance)
        }
        Format::Tiff => unreachable!("TIFF has its own module"),
    }
}

/// The decoder fills a truncated JPEG with grey and says nothing, so the end marker is looked for here: after the
/// last start of a scan, since thumbnails in the header have markers of their own.
fn jpeg_ends(bytes: &[u8]) -> bool {
    let last = |marker: u8| bytes.windows(2).rposition(|w| w == [0xff, marker]);
    matches!((last(0xda), last(0xd9)), (Some(scan), Some(end)) if end > scan)
}

fn pixels(mut decoder: impl ImageDecoder, within: ::image::Limits, allowance: Allowance) -> Decoded<Raster> {
    let (width, height) = decoder.dimensions();
    let colour = decoder.color_type();
    let count = u64::from(colour.channel_count());
    allowance.check(width, height, count, u64::from(colour.bytes_per_pixel()) / count)?;
    decoder.set_limits(within).map_err(why)?;

    // Broken metadata is no reason to refuse good pixels.
    let icc = decoder.icc_profile().ok().flatten();
    let mut exif = decoder.exif_metadata().ok().flatten();
    let turn = exif.as_deref_mut().and_then(Orientation::remove_from_exif_chunk).map_or(1, |o| o.to_exif());

    let depth = match colour {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => Depth::Eight,
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => Depth::Sixteen,
        other => return Err(format!("pixels of type {other:?} are not supported; convert to grey or RGB")),
    };
    let channels = if count > 2 { Channels::Rgb } else { Channels::Grey };
    let (height, width) = (height as usize, width as usize);
    let mut samples = Samples::zeros(depth, count as usize * height * width)?;
    decoder.read_image(samples.bytes_mut()).map_err(why)?;
    let alpha = count % 2 == 0;
    let raster = Raster::new(channels, alpha, (height, width), samples, Metadata { icc, exif })?;
    Ok(raster.upright(u16::from(turn)))
}

/// Encodes samples that `format` can hold.
pub(super) fn encode(raster: &Raster, format: Format, file: impl Write) -> Decoded<()> {
    let mut file = BufWriter::new(file);
    match format {
        Format::Png => png_file::encode(raster, &mut file)?,
        Format::WebP => finish(webp::WebPEncoder::new_lossless(&mut file), raster)?,
        Format::Jpeg => finish(jpeg::JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY), raster)?,
        Format::Tiff => unreachable!("TIFF has its own module"),
    }
    file.flush().map_err(|e| e.to_string())
}

fn finish(mut encoder: impl ImageEncoder, raster: &Raster) -> Decoded<()> {
    if let Some(icc) = &raster.metadata.icc {
        encoder.set_icc_profile(icc.clone()).map_err(|e| e.to_string())?;
    }
    if let Some(exif) = &raster.metadata.exif {
        encoder.set_exif_metadata(exif.clone()).map_err(|e| e.to_string())?;
    }
    let colour = match (raster.kind(), raster.has_alpha()) {
        (Channels::Grey, false) => ExtendedColorType::L8,
        (Channels::Grey, true) => ExtendedColorType::La8,
        (Channels::Rgb, false) => ExtendedColorType::Rgb8,
        (Channels::Rgb, true) => ExtendedColorType::Rgba8,
    };
    encoder.write_image(&raster.eight(), raster.width() as u32, raster.height() as u32, colour).map_err(why)
}

fn why(error: ::image::ImageError) -> String {
    match error {
        ::image::ImageError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the file is truncated".into()
        }
        other => other.to_string(),
    }
}
