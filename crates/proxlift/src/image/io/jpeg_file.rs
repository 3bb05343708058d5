//! JPEG: decoded by `zune-jpeg`, encoded by `jpeg-encoder`.

use super::common::{Header, Source};
use super::{Allowance, Channels, Decoded, Depth, Metadata, Raster};
use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, rgb_to_ycbcr};
use std::io::{Read, Write};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// High enough that the coding error stays below what denoising leaves; colours are not subsampled then.
const QUALITY: u8 = 95;

const MOST_EXIF: usize = 65_527;

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut bytes = Vec::new();
    reader.take(allowance.limits.max_bytes).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if !ends(&bytes) {
        return Err("the JPEG is truncated: its end marker is missing".into());
    }
    let options =
        DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(why)?;
    let (width, height) = decoder.dimensions().ok_or("the JPEG has no header")?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let (colours, samples) = if grey { (ColorSpace::Luma, 1) } else { (ColorSpace::RGB, 3) };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let header = Header {
        width: width as u32,
        height: height as u32,
        samples,
        depth: Depth::Eight,
        metadata: Metadata {
            icc: decoder.icc_profile(),
            exif: decoder.exif().cloned(),
            ..Metadata::default()
        },
    };
    header.raster(allowance, |bytes| decoder.decode_into(bytes).map_err(why))
}

/// The decoder fills a truncated JPEG with grey and says nothing, so the end marker is looked for here: after the
/// last start of a scan, since thumbnails in the header have markers of their own.
fn ends(bytes: &[u8]) -> bool {
    let last = |marker: u8| bytes.windows(2).rposition(|w| w == [0xff, marker]);
    matches!((last(0xda), last(0xd9)), (Some(scan), Some(end)) if end > scan)
}

fn why(error: DecodeErrors) -> String {
    format!("the JPEG cannot be decoded: {error}")
}

/// The samples of a picture without alpha.
struct Pixels<'a> {
    samples: &'a [u8],
    grey: bool,
    width: u16,
    height: u16,
}

/// One type for grey and RGB, so that the encoder is compiled once.
impl ImageBuffer for Pixels<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        if self.grey { JpegColorType::Luma } else { JpegColorType::Ycbcr }
    }

    fn width(&self) -> u16 {
        self.width
    }

    fn height(&self) -> u16 {
        self.height
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let row = usize::from(self.width) * if self.grey { 1 } else { 3 };
        let samples = &self.samples[usize::from(y) * row..][..row];
        if self.grey {
            return buffers[0].extend_from_slice(samples);
        }
        for &[red, green, blue] in samples.as_chunks::<3>().0 {
            let (y, cb, cr) = rgb_to_ycbcr(red, green, blue);
            buffers.iter_mut().zip([y, cb, cr]).for_each(|(buffer, value)| buffer.push(value));
        }
    }
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Write) -> Decoded<()> {
    let side = |length: usize| u16::try_from(length).map_err(|e| e.to_string());
    let mut encoder = Encoder::new(file, QUALITY);
    if let Some(icc) = &raster.metadata.icc {
        encoder.add_icc_profile(icc).map_err(|e| e.to_string())?;
    }
    match &raster.metadata.exif {
        Some(exif) if exif.len() > MOST_EXIF => {
            tracing::warn!("JPEG holds 64 KiB of EXIF at most: the larger block is left out");
        }
        Some(exif) => encoder.add_exif_metadata(exif).map_err(|e| e.to_string())?,
        None => {}
    }
    let samples = &raster.eight();
    let (width, height) = (side(raster.width())?, side(raster.height())?);
    let pixels = Pixels { samples, grey: raster.kind() == Channels::Grey, width, height };
    encoder.encode_image(pixels).map_err(|e| e.to_string())
}
