//! Writing pages one after the other.

use super::super::common::{Next, Target};
use super::super::exif::{Entry, Exif};
use super::super::metadata::{Kept, Metadata, TIFF_TEXTS, TiffKept, Unit};
use super::super::{Channels, Decoded, Depth, Raster};
use super::{compress::Compression, tags, why};
use ::tiff::encoder::{DirectoryEncoder, Rational, TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard};
use ::tiff::tags::{ExtraSamples, PhotometricInterpretation, SampleFormat, Tag, Type};
use ::tiff::{Directory, TiffResult};
use std::io::{Seek, Write};

const STRIP: usize = 1 << 20;

/// Whether so many bytes of samples need 64-bit offsets. Compression may fail to make them fewer.
pub(in super::super) fn needs_big(bytes: u64, is_compressed: bool) -> bool {
    let most = if is_compressed { bytes.saturating_mul(3) / 2 } else { bytes };
    most >= u64::from(u32::MAX) - (1 << 26)
}

/// Writes `count` pages, each asked for when it is needed. All are taken to have the size of the first.
pub(in super::super) fn encode(count: usize, next: &mut Next<'_>, file: &mut dyn Target) -> Decoded<()> {
    let first = next(0)?;
    let bytes = (first.samples().bytes().len() as u64 + (1 << 12)).saturating_mul(count as u64);
    if needs_big(bytes, !compression(&first).is_none()) {
        write(TiffEncoder::<_, TiffKindBig>::new_generic(file).map_err(why)?, &first, count, next)
    } else {
        write(TiffEncoder::<_, TiffKindStandard>::new_generic(file).map_err(why)?, &first, count, next)
    }
}

fn compression(raster: &Raster) -> Compression {
    let otherwise = TiffKept::default();
    let kept = match &raster.metadata.native.0 {
        Kept::Tiff(kept) => kept,
        _ => &otherwise,
    };
    Compression::like(kept.compression, kept.predictor, raster.samples())
}

fn write<W: Write + Seek, K: TiffKind>(
    mut encoder: TiffEncoder<W, K>,
    first: &Raster,
    count: usize,
    next: &mut Next<'_>,
) -> Decoded<()> {
    page(first, &mut encoder).map_err(why)?;
    for index in 1..count {
        page(&*next(index)?, &mut encoder).map_err(why)?;
    }
    Ok(())
}

/// The directory is written by hand, since the library's own function is compiled anew for every type of samples.
fn page<W: Write + Seek, K: TiffKind>(raster: &Raster, encoder: &mut TiffEncoder<W, K>) -> TiffResult<()> {
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
    let exif = raster.metadata.exif.as_deref().and_then(Exif::parse).unwrap_or_default();
    let camera = inner(encoder, &exif.camera)?;
    let gps = inner(encoder, &exif.gps)?;

    let compression = compression(raster);
    let row = raster.samples().len() / raster.height();
    let rows = (STRIP / (row * usize::from(bits) / 8)).clamp(1, raster.height());
    let mut directory = encoder.image_directory()?;
    let (mut offsets, mut counts) = (Vec::new(), Vec::new());
    for start in (0..raster.height()).step_by(rows) {
        let strip = start..(start + rows).min(raster.height());
        let bytes = compression.strip(raster.samples(), strip, row, samples)?;
        offsets.push(K::convert_offset(directory.write_data(&*bytes)?)?);
        counts.push(K::convert_offset(bytes.len() as u64)?);
    }
    // What the original has come first, so that nothing of it replaces what is written now.
    let kept: &[Entry] = match &raster.metadata.native.0 {
        Kept::Tiff(kept) => &kept.tags,
        _ => &[],
    };
    let of_exif = exif.main.iter().filter(|entry| !tags::is_made_anew(entry.tag));
    for entry in of_exif.chain(kept) {
        raw(&mut directory, entry)?;
    }
    describe(&mut directory, &raster.metadata)?;
    for (tag, offset) in [(Tag::ExifDirectory, camera), (Tag::GpsDirectory, gps)] {
        if let Some(offset) = offset {
            directory.write_tag(tag, offset)?;
        }
    }
    directory.write_tag(Tag::ImageWidth, raster.width() as u32)?;
    directory.write_tag(Tag::ImageLength, raster.height() as u32)?;
    directory.write_tag(Tag::BitsPerSample, vec![bits; samples].as_slice())?;
    directory.write_tag(Tag::SampleFormat, vec![format.to_u16(); samples].as_slice())?;
    directory.write_tag(Tag::Compression, compression.method.to_u16())?;
    directory.write_tag(Tag::Predictor, compression.predictor.to_u16())?;
    directory.write_tag(Tag::PhotometricInterpretation, colours.to_u16())?;
    directory.write_tag(Tag::SamplesPerPixel, samples as u16)?;
    directory.write_tag(Tag::RowsPerStrip, rows as u32)?;
    directory.write_tag(Tag::StripOffsets, K::convert_slice(&offsets))?;
    directory.write_tag(Tag::StripByteCounts, K::convert_slice(&counts))?;
    if raster.has_alpha() {
        let kind = match raster.has_premultiplied_colours() {
            true => ExtraSamples::AssociatedAlpha,
            false => ExtraSamples::UnassociatedAlpha,
        };
        directory.write_tag(Tag::ExtraSamples, kind.to_u16())?;
    }
    directory.finish()
}

/// Profiles, texts and resolution.
fn describe<W: Write + Seek, K: TiffKind>(
    directory: &mut DirectoryEncoder<'_, W, K>,
    metadata: &Metadata,
) -> TiffResult<()> {
    let texts = metadata.texts_with_settings();
    for (key, tag) in TIFF_TEXTS {
        let find = |key: &str| texts.iter().find(|text| text.key == key);
        let text = find(key).or_else(|| if key == "Description" { find("Comment") } else { None });
        if let Some(text) = text {
            let bytes = [&text.value[..], b"\0"].concat();
            raw(directory, &Entry { tag, kind: Type::ASCII.to_u16(), bytes })?;
        }
    }
    if let Some(icc) = &metadata.icc {
        raw(directory, &Entry { tag: 34_675, kind: Type::UNDEFINED.to_u16(), bytes: icc.clone() })?;
    }
    if let Some(xmp) = &metadata.xmp {
        raw(directory, &Entry { tag: tags::XMP, kind: Type::BYTE.to_u16(), bytes: xmp.clone() })?;
    }
    if let Some(resolution) = metadata.resolution.and_then(|resolution| resolution.in_tiff()) {
        for (tag, (n, d)) in [(Tag::XResolution, resolution.x), (Tag::YResolution, resolution.y)] {
            directory.write_tag(tag, Rational { n, d })?;
        }
        let unit = match resolution.unit {
            Unit::None => 1_u16,
            Unit::Inch => 2,
            Unit::Centimetre | Unit::Metre => 3,
        };
        directory.write_tag(Tag::ResolutionUnit, unit)?;
    }
    Ok(())
}

fn raw<W: Write + Seek, K: TiffKind>(
    directory: &mut DirectoryEncoder<'_, W, K>,
    entry: &Entry,
) -> TiffResult<()> {
    let Some(kind) = Type::from_u16(entry.kind) else { return Ok(()) };
    // The types of 64-bit offsets are not for the classic format.
    if matches!(kind, Type::LONG8 | Type::SLONG8 | Type::IFD8) && size_of::<K::OffsetType>() == 4 {
        return Ok(());
    }
    let value = directory.write_entry_bytes(kind, &entry.bytes)?;
    let mut one = Directory::empty();
    one.extend([(Tag::from_u16_exhaustive(entry.tag), value)]);
    directory.extend_from(&one);
    Ok(())
}

/// A directory beside the pages, and where it is.
fn inner<W: Write + Seek, K: TiffKind>(
    encoder: &mut TiffEncoder<W, K>,
    entries: &[Entry],
) -> TiffResult<Option<K::OffsetType>> {
    if entries.is_empty() {
        return Ok(None);
    }
    let mut directory = encoder.extra_directory()?;
    for entry in entries {
        raw(&mut directory, entry)?;
    }
    Ok(Some(directory.finish_with_offsets()?.offset))
}

#[cfg(test)]
#[path = "../../../../tests/unit/tiff_write.rs"]
mod tests;
