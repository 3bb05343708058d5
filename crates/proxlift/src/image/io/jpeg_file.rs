//! JPEG: decoded by `zune-jpeg`, encoded by `jpeg-encoder`.

use super::common::{Header, Source};
use super::jpeg_scan;
use super::jpeg_segments::{Segments, with_comments, xmp_segment};
use super::metadata::{JpegKept, Kept, MOST_EXIF_IN_JPEG, Metadata, Native, Text, Unit};
use super::{Allowance, Channels, Decoded, Depth, Raster};
use jpeg_encoder::{
    Encoder, ImageBuffer, JpegColorType, PixelDensity, PixelDensityUnit, QuantizationTableType,
    SamplingFactor, rgb_to_ycbcr,
};
use std::io::{Read, Write};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// High enough that the coding error stays below what denoising leaves; colours are not subsampled then.
const QUALITY: u8 = 95;

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut bytes = Vec::new();
    reader.take(allowance.limits.max_bytes).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if !ends(&bytes) {
        return Err("the JPEG is truncated: its end marker is missing".into());
    }
    let options =
        DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let segments = Segments::of(&bytes);
    // With bytes of its own, as for JPEG in TIFF: the decoder is compiled once.
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes.clone()), options);
    decoder.decode_headers().map_err(why)?;
    let (width, height) = decoder.dimensions().ok_or("the JPEG has no header")?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let (colours, samples) = if grey { (ColorSpace::Luma, 1) } else { (ColorSpace::RGB, 3) };
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let mut icc = decoder.icc_profile();
    if segments.has_four {
        allowance.announce("CMYK is converted to RGB by the plain formula, without its colour profile");
        icc = None;
    }
    let metadata = Metadata {
        icc,
        exif: decoder.exif().cloned(),
        xmp: segments.xmp,
        resolution: segments.resolution,
        texts: segments.comments,
        settings: None,
        native: Native(segments.kept.filter(|_| !segments.has_four).map_or(Kept::Nothing, Kept::Jpeg)),
    };
    let header =
        Header { width: width as u32, height: height as u32, samples, depth: Depth::Eight, metadata };
    header.raster(allowance, |samples| {
        // Before the decoder, which follows scans without end; after the check of the size.
        if !jpeg_scan::check(&bytes, (width, height))? {
            allowance.announce("the JPEG lacks scans for its fine detail: it may have been cut");
        }
        decoder.decode_into(samples).map_err(why)
    })
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

/// The tables of quality 95 for luma and chroma (Annex K of the standard, scaled).
fn tables_of_quality() -> [[u16; 64]; 2] {
    #[rustfmt::skip]
    const LUMA: [u16; 64] = [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
        14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ];
    const CHROMA: [[u16; 4]; 4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]];
    let scaled = |v: u16| ((v * (200 - 2 * u16::from(QUALITY)) + 50) / 100).max(1);
    let places: [usize; 64] = std::array::from_fn(|i| i);
    let chroma = places.map(|i| CHROMA.get(i / 8).and_then(|row| row.get(i % 8)).copied().unwrap_or(99));
    [LUMA.map(scaled), chroma.map(scaled)]
}

/// The tables of the original, or those of quality 95 where they are finer.
fn tables(metadata: &Metadata) -> [QuantizationTableType; 2] {
    let mut tables = tables_of_quality();
    if let Kept::Jpeg(kept) = &metadata.native.0 {
        for (table, original) in tables.iter_mut().zip(kept.tables.iter()) {
            table.iter_mut().zip(original).for_each(|(a, b)| *a = (*a).min(*b).max(1));
        }
    }
    tables.map(|table| QuantizationTableType::Custom(Box::new(table)))
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Write) -> Decoded<()> {
    let side = |length: usize| u16::try_from(length).map_err(|e| e.to_string());
    let metadata = &raster.metadata;
    let mut jpeg = Vec::new();
    let mut encoder = Encoder::new(&mut jpeg, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    let [luma, chroma] = tables(metadata);
    encoder.set_quantization_tables(luma, chroma);
    if let Some((density, unit)) = metadata.resolution.and_then(|resolution| resolution.in_jpeg()) {
        let unit = match unit {
            Unit::Inch => PixelDensityUnit::Inches,
            Unit::Centimetre => PixelDensityUnit::Centimeters,
            Unit::None | Unit::Metre => PixelDensityUnit::PixelAspectRatio,
        };
        encoder.set_density(PixelDensity { density, unit });
    }
    if let Some(exif) = metadata.exif.as_ref().filter(|exif| exif.len() <= MOST_EXIF_IN_JPEG) {
        encoder.add_exif_metadata(exif).map_err(|e| e.to_string())?;
    }
    if let Some(xmp) = metadata.xmp.as_deref().and_then(xmp_segment) {
        encoder.add_app_segment(1, xmp).map_err(|e| e.to_string())?;
    }
    if let Some(icc) = &metadata.icc {
        encoder.add_icc_profile(icc).map_err(|e| e.to_string())?;
    }
    if let Kept::Jpeg(JpegKept { iptc: Some(iptc), .. }) = &metadata.native.0 {
        encoder.add_app_segment(13, iptc.clone()).map_err(|e| e.to_string())?;
    }
    let samples = &raster.eight();
    let (width, height) = (side(raster.width())?, side(raster.height())?);
    let pixels = Pixels { samples, grey: raster.kind() == Channels::Grey, width, height };
    encoder.encode_image(pixels).map_err(|e| e.to_string())?;
    let texts = metadata.texts.iter().filter(|text| ["Comment", "Description"].contains(&text.key.as_str()));
    let settings = metadata.settings.as_ref().map(|settings| Text::new("Comment", settings.as_str()));
    let comments: Vec<Text> = texts.cloned().chain(settings).collect();
    file.write_all(&with_comments(&jpeg, &comments)).map_err(|e| e.to_string())
}
