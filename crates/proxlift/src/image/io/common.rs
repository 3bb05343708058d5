//! PNG, JPEG and WebP, through the `image` crate.

use std::io::{BufRead, BufWriter, Cursor, Read, Seek, Write};

use ::image::codecs::{jpeg, png, webp};
use ::image::metadata::Orientation;
use ::image::{ColorType, ExtendedColorType, ImageDecoder, ImageEncoder};

use super::{
    Decoded, Depth, Format, Limits, Metadata, Picture, interleaved, is_gray, planar, to_eight, to_sixteen,
};
use crate::image::symmetry::Symmetry;

/// High enough that the coding error stays below what denoising leaves.
const JPEG_QUALITY: u8 = 95;

pub(super) fn decode(mut reader: impl BufRead + Seek, format: Format, limits: &Limits) -> Decoded<Picture> {
    let mut within = ::image::Limits::no_limits();
    within.max_alloc = Some(limits.max_bytes);
    match format {
        Format::Png => {
            pixels(png::PngDecoder::with_limits(reader, within.clone()).map_err(why)?, within, limits)
        }
        Format::WebP => pixels(webp::WebPDecoder::new(reader).map_err(why)?, within, limits),
        Format::Jpeg => {
            let mut bytes = Vec::new();
            reader.by_ref().take(limits.max_bytes).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
            if !jpeg_ends(&bytes) {
                return Err("the JPEG is truncated: its end marker is missing".into());
            }
            pixels(jpeg::JpegDecoder::new(Cursor::new(bytes)).map_err(why)?, within, limits)
        }
        Format::Tiff => unreachable!("TIFF has its own module"),
    }
}

/// The decoder fills a truncated JPEG with gray and says nothing, so the end marker is looked for here: after the
/// last start of a scan, since thumbnails in the header have markers of their own.
fn jpeg_ends(bytes: &[u8]) -> bool {
    let last = |marker: u8| bytes.windows(2).rposition(|w| w == [0xff, marker]);
    matches!((last(0xda), last(0xd9)), (Some(scan), Some(end)) if end > scan)
}

fn pixels(mut decoder: impl ImageDecoder, within: ::image::Limits, limits: &Limits) -> Decoded<Picture> {
    let (width, height) = decoder.dimensions();
    let colour = decoder.color_type();
    let count = u64::from(colour.channel_count());
    limits.check(width, height, count, u64::from(colour.bytes_per_pixel()) / count)?;
    decoder.set_limits(within).map_err(why)?;

    // Broken metadata is no reason to refuse good pixels.
    let icc = decoder.icc_profile().ok().flatten();
    let mut exif = decoder.exif_metadata().ok().flatten();
    let turn = exif.as_deref_mut().and_then(Orientation::remove_from_exif_chunk).map_or(1, |o| o.to_exif());

    let mut raw = vec![0_u8; decoder.total_bytes() as usize];
    let size = (height as usize, width as usize);
    decoder.read_image(&mut raw).map_err(why)?;
    let (depth, (image, alpha)) = match colour {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => {
            (Depth::Eight, planar(&raw, count as usize, size, |v| f32::from(v) / 255.0)?)
        }
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => {
            let pairs = raw.as_chunks::<2>().0;
            let value = |b: [u8; 2]| f32::from(u16::from_ne_bytes(b)) / 65_535.0;
            (Depth::Sixteen, planar(pairs, count as usize, size, value)?)
        }
        other => return Err(format!("pixels of type {other:?} are not supported; convert to gray or RGB")),
    };
    let picture = Picture { image, alpha, depth, metadata: Metadata { icc, exif } };
    Ok(upright(picture, u16::from(turn)))
}

/// Turns a picture as its orientation number asks.
pub(super) fn upright(picture: Picture, orientation: u16) -> Picture {
    let turn = Symmetry::from_orientation(orientation);
    if turn == Symmetry::default() {
        return picture;
    }
    let (_, h, w) = picture.image.shape();
    let alpha = picture.alpha.map(|a| turn.plane(&a, h, w));
    Picture { image: turn.image(&picture.image), alpha, ..picture }
}

pub(super) fn encode(picture: &Picture, format: Format, file: impl Write) -> Decoded<()> {
    let sixteen = format == Format::Png && picture.depth != Depth::Eight;
    match (picture.depth, sixteen) {
        (Depth::Sixteen, false) => tracing::warn!("{format:?} holds 8 bits: the 16-bit picture is rounded"),
        (Depth::Float, _) => {
            let bits = if sixteen { 16 } else { 8 };
            tracing::warn!(
                "{format:?} holds no floats: the picture is clipped to [0, 1] and rounded to {bits} bits"
            );
        }
        _ => {}
    }
    let bytes = if sixteen {
        bytemuck::cast_slice(&interleaved(picture, to_sixteen)).to_vec()
    } else {
        interleaved(picture, to_eight)
    };
    let colour = match (is_gray(picture), picture.alpha.is_some(), sixteen) {
        (true, false, false) => ExtendedColorType::L8,
        (true, true, false) => ExtendedColorType::La8,
        (false, false, false) => ExtendedColorType::Rgb8,
        (false, true, false) => ExtendedColorType::Rgba8,
        (true, false, true) => ExtendedColorType::L16,
        (true, true, true) => ExtendedColorType::La16,
        (false, false, true) => ExtendedColorType::Rgb16,
        (false, true, true) => ExtendedColorType::Rgba16,
    };
    let mut file = BufWriter::new(file);
    match format {
        Format::Png => finish(png::PngEncoder::new(&mut file), picture, &bytes, colour)?,
        Format::WebP => finish(webp::WebPEncoder::new_lossless(&mut file), picture, &bytes, colour)?,
        Format::Jpeg => {
            finish(jpeg::JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY), picture, &bytes, colour)?;
        }
        Format::Tiff => unreachable!("TIFF has its own module"),
    }
    file.flush().map_err(|e| e.to_string())
}

fn finish(
    mut encoder: impl ImageEncoder,
    picture: &Picture,
    bytes: &[u8],
    colour: ExtendedColorType,
) -> Decoded<()> {
    if let Some(icc) = &picture.metadata.icc {
        encoder.set_icc_profile(icc.clone()).map_err(|e| e.to_string())?;
    }
    if let Some(exif) = &picture.metadata.exif {
        encoder.set_exif_metadata(exif.clone()).map_err(|e| e.to_string())?;
    }
    let (width, height) = (picture.image.width() as u32, picture.image.height() as u32);
    encoder.write_image(bytes, width, height, colour).map_err(why)
}

fn why(error: ::image::ImageError) -> String {
    match error {
        ::image::ImageError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the file is truncated".into()
        }
        other => other.to_string(),
    }
}
