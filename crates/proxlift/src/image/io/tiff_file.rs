//! TIFF, through the `tiff` crate: 8 and 16 bits and 32-bit float, grey and RGB, alpha, planar or not.

use super::common::{Source, Target, cut_short};
use super::{Allowance, Channels, Decoded, Depth, Metadata, Raster, samples::Samples};
use ::tiff::decoder::{Decoder, DecodingResult, DecodingSampleType, Limits as TiffLimits};
use ::tiff::encoder::{TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard};
use ::tiff::tags::{
    CompressionMethod, ExtraSamples, PhotometricInterpretation, PlanarConfiguration, SampleFormat, Tag,
};
use ::tiff::{ColorType, TiffError, TiffResult};
use std::io::{Seek, Write};

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut within = TiffLimits::default();
    within.decoding_buffer_size = usize::try_from(allowance.limits.max_bytes).unwrap_or(usize::MAX);
    within.intermediate_buffer_size = within.decoding_buffer_size;
    let mut decoder = Decoder::new(reader).map_err(why)?.with_limits(within);

    let (width, height) = decoder.dimensions().map_err(why)?;
    let colour = decoder.colortype().map_err(|e| format!("{}; convert it to grey or RGB", why(e)))?;
    let count = match colour {
        ColorType::Gray(_) => 1,
        ColorType::GrayA(_) | ColorType::Multiband { num_samples: 2, .. } => 2,
        ColorType::RGB(_) => 3,
        ColorType::RGBA(_) => 4,
        other => return Err(format!("{other:?} TIFF is not supported; convert it to grey or RGB")),
    };
    let bits = colour.bit_depth();
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return Err(format!("{bits}-bit TIFF is not supported; convert it to 8 or 16 bits or to float"));
    }
    allowance.check(width, height, count as u64, u64::from(bits) / 8)?;
    let icc = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    let turn = decoder.find_tag_unsigned(Tag::Orientation).ok().flatten().unwrap_or(1);
    let planes = decoder.find_tag_unsigned(Tag::PlanarConfiguration).map_err(why)?.unwrap_or(1_u16);
    let is_planar = planes == PlanarConfiguration::Planar.to_u16() && count > 1;
    if decoder.more_images() {
        tracing::warn!("this TIFF has several pages; only the first is read");
    }

    let direct = match decoder.image_buffer_layout().map_err(why)?.sample_type {
        Some(DecodingSampleType::U8) if !is_planar => Some(Depth::Eight),
        Some(DecodingSampleType::U16) if !is_planar => Some(Depth::Sixteen),
        Some(DecodingSampleType::F32) if !is_planar => Some(Depth::Float),
        _ => None,
    };
    let size = (height as usize, width as usize);
    let samples = match direct {
        Some(depth) => {
            let mut samples = Samples::zeros(depth, count * size.0 * size.1)?;
            decoder.read_image_bytes(samples.bytes_mut()).map_err(why)?;
            samples
        }
        None => {
            let mut samples = DecodingResult::U8(Vec::new());
            decoder.read_image_to_buffer(&mut samples).map_err(why)?;
            let planes = if is_planar { count } else { 1 };
            converted(samples, planes)?
        }
    };
    let channels = if count > 2 { Channels::Rgb } else { Channels::Grey };
    let metadata = Metadata { icc, exif: None };
    Ok(Raster::new(channels, count % 2 == 0, size, samples, metadata)?.upright(turn))
}

/// Samples of a depth that is kept, pixel by pixel, from those of `planes` planes.
fn converted(samples: DecodingResult, planes: usize) -> Decoded<Samples> {
    Ok(match samples {
        DecodingResult::U8(v) => Samples::Eight(woven(&v, planes, |v| v)),
        DecodingResult::U16(v) => Samples::Sixteen(woven(&v, planes, |v| v)),
        DecodingResult::F32(v) => Samples::Float(woven(&v, planes, |v| v)),
        DecodingResult::F64(v) => Samples::Float(woven(&v, planes, |v| v as f32)),
        DecodingResult::F16(v) => Samples::Float(woven(&v, planes, |v| v.to_f32())),
        _ => {
            return Err(
                "TIFF with signed or with 32- or 64-bit integers has no agreed white; convert it to \
                        16 bits or to float"
                    .into(),
            );
        }
    })
}

/// One sample of each plane after the other.
fn woven<T: Copy, U>(samples: &[T], planes: usize, value: impl Fn(T) -> U) -> Vec<U> {
    let pixels = samples.len() / planes;
    (0..pixels * planes).map(|i| value(samples[i % planes * pixels + i / planes])).collect()
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Target) -> Decoded<()> {
    if raster.metadata.exif.is_some() {
        tracing::info!("TIFF is written without the EXIF block");
    }
    // Offsets of the classic format have 32 bits.
    if (raster.samples().bytes().len() as u64) < u64::from(u32::MAX) - (1 << 24) {
        write(raster, TiffEncoder::<_, TiffKindStandard>::new_generic(file)).map_err(why)
    } else {
        write(raster, TiffEncoder::<_, TiffKindBig>::new_generic(file)).map_err(why)
    }
}

const STRIP: usize = 1 << 20;

/// The directory is written by hand, since the library's own function is compiled anew for every type of samples.
fn write<W: Write + Seek, K: TiffKind>(
    raster: &Raster,
    encoder: TiffResult<TiffEncoder<W, K>>,
) -> TiffResult<()> {
    let samples = raster.samples_per_pixel();
    let (bits, format) = match raster.depth() {
        Depth::Eight => (8_u16, SampleFormat::Uint),
        Depth::Sixteen => (16, SampleFormat::Uint),
        Depth::Float => (32, SampleFormat::IEEEFP),
    };
    let colours = match raster.kind() {
        Channels::Grey => PhotometricInterpretation::BlackIsZero,
        Channels::Rgb => PhotometricInterpretation::RGB,
    };
    let bytes = raster.samples().bytes();
    let row = bytes.len() / raster.height();
    let rows = (STRIP / row).clamp(1, raster.height());
    let mut encoder = encoder?;
    let mut directory = encoder.image_directory()?;
    let (mut offsets, mut counts) = (Vec::new(), Vec::new());
    for strip in bytes.chunks(rows * row) {
        offsets.push(K::convert_offset(directory.write_data(strip)?)?);
        counts.push(K::convert_offset(strip.len() as u64)?);
    }
    directory.write_tag(Tag::ImageWidth, raster.width() as u32)?;
    directory.write_tag(Tag::ImageLength, raster.height() as u32)?;
    directory.write_tag(Tag::BitsPerSample, vec![bits; samples].as_slice())?;
    directory.write_tag(Tag::SampleFormat, vec![format.to_u16(); samples].as_slice())?;
    directory.write_tag(Tag::Compression, CompressionMethod::None.to_u16())?;
    directory.write_tag(Tag::PhotometricInterpretation, colours.to_u16())?;
    directory.write_tag(Tag::SamplesPerPixel, samples as u16)?;
    directory.write_tag(Tag::RowsPerStrip, rows as u32)?;
    directory.write_tag(Tag::StripOffsets, K::convert_slice(&offsets))?;
    directory.write_tag(Tag::StripByteCounts, K::convert_slice(&counts))?;
    if raster.has_alpha() {
        directory.write_tag(Tag::ExtraSamples, ExtraSamples::UnassociatedAlpha.to_u16())?;
    }
    if let Some(icc) = &raster.metadata.icc {
        directory.write_tag(Tag::IccProfile, icc.as_slice())?;
    }
    directory.finish()
}

fn why(error: TiffError) -> String {
    match error {
        TiffError::IoError(e) => cut_short(&e),
        other => other.to_string(),
    }
}
