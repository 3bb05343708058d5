//! TIFF, through the `tiff` crate: 8 and 16 bits and 32-bit float, gray and RGB, alpha, planar or not.

use std::io::{BufRead, BufWriter, Seek, Write};

use ::tiff::ColorType;
use ::tiff::decoder::{Decoder, DecodingResult, Limits as TiffLimits};
use ::tiff::encoder::colortype::{self, ColorType as Encoded};
use ::tiff::encoder::{TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard, TiffValue};
use ::tiff::tags::{ExtraSamples, PlanarConfiguration, Tag};

use super::common::upright;
use super::{Decoded, Depth, Limits, Metadata, Picture, interleaved, is_gray, planar, to_eight, to_sixteen};
use crate::image::Image;

pub(super) fn decode(reader: impl BufRead + Seek, limits: &Limits) -> Decoded<Picture> {
    let mut within = TiffLimits::default();
    within.decoding_buffer_size = usize::try_from(limits.max_bytes).unwrap_or(usize::MAX);
    within.intermediate_buffer_size = within.decoding_buffer_size;
    let mut decoder = Decoder::new(reader).map_err(why)?.with_limits(within);

    let (width, height) = decoder.dimensions().map_err(why)?;
    let colour = decoder.colortype().map_err(|e| format!("{}; convert it to gray or RGB", why(e)))?;
    let count = match colour {
        ColorType::Gray(_) => 1,
        ColorType::GrayA(_) | ColorType::Multiband { num_samples: 2, .. } => 2,
        ColorType::RGB(_) => 3,
        ColorType::RGBA(_) => 4,
        other => return Err(format!("{other:?} TIFF is not supported; convert it to gray or RGB")),
    };
    let bits = colour.bit_depth();
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return Err(format!("{bits}-bit TIFF is not supported; convert it to 8 or 16 bits or to float"));
    }
    limits.check(width, height, count as u64, u64::from(bits) / 8)?;
    let icc = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    let turn = decoder.find_tag_unsigned(Tag::Orientation).ok().flatten().unwrap_or(1);
    let planes = decoder.find_tag_unsigned(Tag::PlanarConfiguration).map_err(why)?.unwrap_or(1_u16);
    let is_planar = planes == PlanarConfiguration::Planar.to_u16() && count > 1;
    if decoder.more_images() {
        tracing::warn!("this TIFF has several pages; only the first is read");
    }

    let mut samples = DecodingResult::U8(Vec::new());
    decoder.read_image_to_buffer(&mut samples).map_err(why)?;
    let size = (height as usize, width as usize);
    let (depth, (image, alpha)) = match samples {
        DecodingResult::U8(v) => (Depth::Eight, split(&v, is_planar, count, size, |v| f32::from(v) / 255.0)?),
        DecodingResult::U16(v) => {
            (Depth::Sixteen, split(&v, is_planar, count, size, |v| f32::from(v) / 65_535.0)?)
        }
        DecodingResult::F32(v) if count == 1 => {
            (Depth::Float, (Image::new(1, size.0, size.1, v).map_err(|e| e.to_string())?, None))
        }
        DecodingResult::F32(v) => (Depth::Float, split(&v, is_planar, count, size, |v| v)?),
        DecodingResult::F64(v) => (Depth::Float, split(&v, is_planar, count, size, |v| v as f32)?),
        DecodingResult::F16(v) => (Depth::Float, split(&v, is_planar, count, size, |v| v.to_f32())?),
        _ => {
            return Err(
                "TIFF with signed or with 32- or 64-bit integers has no agreed white; convert it to \
                        16 bits or to float"
                    .into(),
            );
        }
    };
    if let Some(at) = alpha.iter().flatten().position(|a: &f32| !a.is_finite()) {
        return Err(format!("the alpha of pixel {at} is not finite"));
    }
    Ok(upright(Picture { image, alpha, depth, metadata: Metadata { icc, exif: None } }, turn))
}

/// Colours and alpha from samples that lie pixel by pixel or, where the file `is_planar`, plane by plane.
fn split<T: Copy>(
    samples: &[T],
    is_planar: bool,
    count: usize,
    size: (usize, usize),
    value: impl Fn(T) -> f32,
) -> Decoded<(Image, Option<Vec<f32>>)> {
    if !is_planar {
        return planar(samples, count, size, value);
    }
    let pixels = size.0 * size.1;
    let colours = if count > 2 { 3 } else { 1 };
    if samples.len() != count * pixels {
        return Err("the file is damaged: a colour plane is missing".into());
    }
    let mut data: Vec<f32> = samples.iter().map(|&v| value(v)).collect();
    let alpha = (count > colours).then(|| data.split_off(colours * pixels));
    Ok((Image::new(colours, size.0, size.1, data).map_err(|e| e.to_string())?, alpha))
}

pub(super) fn encode(picture: &Picture, file: impl Write + Seek) -> Decoded<()> {
    if picture.metadata.exif.is_some() {
        tracing::info!("TIFF is written without the EXIF block");
    }
    let samples = picture.image.data().len() + picture.alpha.as_ref().map_or(0, Vec::len);
    let mut file = BufWriter::new(file);
    // Offsets of the classic format have 32 bits.
    if samples as u64 * 4 < u64::from(u32::MAX) - (1 << 24) {
        let encoder = TiffEncoder::<_, TiffKindStandard>::new_generic(&mut file).map_err(why)?;
        encode_as(picture, encoder)?;
    } else {
        encode_as(picture, TiffEncoder::<_, TiffKindBig>::new_generic(&mut file).map_err(why)?)?;
    }
    file.flush().map_err(|e| e.to_string())
}

fn encode_as<W: Write + Seek, K: TiffKind>(picture: &Picture, encoder: TiffEncoder<W, K>) -> Decoded<()> {
    use colortype::{Gray8, Gray16, Gray32Float, RGB8, RGB16, RGB32Float};
    match (picture.depth, is_gray(picture)) {
        (Depth::Eight, true) => samples::<Gray8, _, _>(picture, encoder, &interleaved(picture, to_eight)),
        (Depth::Eight, false) => samples::<RGB8, _, _>(picture, encoder, &interleaved(picture, to_eight)),
        (Depth::Sixteen, true) => {
            samples::<Gray16, _, _>(picture, encoder, &interleaved(picture, to_sixteen))
        }
        (Depth::Sixteen, false) => {
            samples::<RGB16, _, _>(picture, encoder, &interleaved(picture, to_sixteen))
        }
        (Depth::Float, true) => samples::<Gray32Float, _, _>(picture, encoder, &interleaved(picture, |v| v)),
        (Depth::Float, false) => samples::<RGB32Float, _, _>(picture, encoder, &interleaved(picture, |v| v)),
    }
}

fn samples<C: Encoded, W: Write + Seek, K: TiffKind>(
    picture: &Picture,
    mut encoder: TiffEncoder<W, K>,
    data: &[C::Inner],
) -> Decoded<()>
where
    [C::Inner]: TiffValue,
{
    let (width, height) = (picture.image.width() as u32, picture.image.height() as u32);
    let mut image = encoder.new_image::<C>(width, height).map_err(why)?;
    if let Some(icc) = &picture.metadata.icc {
        image.encoder().write_tag(Tag::IccProfile, icc.as_slice()).map_err(why)?;
    }
    if picture.alpha.is_some() {
        image.extra_samples(&[ExtraSamples::UnassociatedAlpha]).map_err(why)?;
    }
    image.write_data(data).map_err(why)
}

fn why(error: ::tiff::TiffError) -> String {
    match error {
        ::tiff::TiffError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            "the file is truncated".into()
        }
        other => other.to_string(),
    }
}
