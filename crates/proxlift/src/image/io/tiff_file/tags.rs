//! The tags of a page that are not about how its samples are stored.

use super::super::exif::{CAMERA, Entry, Exif, GPS, widths};
use super::super::metadata::{Kept, Metadata, Native, Resolution, TIFF_TEXTS, Text, TiffKept, Unit};
use super::{Source, TAGS, layout::Layout};
use ::tiff::Directory;
use ::tiff::decoder::Decoder;
use ::tiff::tags::{ByteOrder, ExtraSamples, IfdPointer, Tag, Type, ValueBuffer};

pub(super) const XMP: u16 = 700;
/// Maker and model of a camera, which belong to EXIF elsewhere.
const CAMERA_NAMES: [u16; 2] = [271, 272];

/// Tags about the storage of samples, which is made anew, and pointers into the file.
const LAYOUT: [u16; 46] = [
    256, 257, 258, 259, 262, 263, 264, 265, 266, 273, 274, 277, 278, 279, 280, 281, 282, 283, 284, 288, 289,
    290, 291, 292, 293, 296, 301, 317, 320, 322, 323, 324, 325, 330, 332, 336, 338, 339, 340, 341, 342, 347,
    XMP, 34_675, 34_665, 34_853,
];

/// Whether a tag is about the storage of samples, or has a place of its own in [`Metadata`].
pub(super) fn is_made_anew(tag: u16) -> bool {
    // From 512 on: JPEG of old, YCbCr.
    LAYOUT.contains(&tag) || (512..=532).contains(&tag) || TIFF_TEXTS.iter().any(|&(_, text)| text == tag)
}

/// What the page that the decoder is at says about itself; broken tags are no reason to refuse good pixels.
pub(super) fn metadata(decoder: &mut Decoder<Box<dyn Source + '_>>, layout: &Layout) -> Metadata {
    let mut left = TAGS;
    let pointers = [CAMERA, GPS].map(|tag| {
        let pointer = decoder.find_tag_unsigned(Tag::from_u16_exhaustive(tag)).ok().flatten()?;
        decoder.read_directory(IfdPointer(pointer)).ok()
    });
    let [camera, gps] = pointers.map(|directory| match directory {
        Some(directory) => entries(decoder, &directory, &mut left),
        None => Vec::new(),
    });
    let Some(pointer) = decoder.ifd_pointer() else { return Metadata::default() };
    let Ok(directory) = decoder.read_directory(IfdPointer(pointer.0)) else { return Metadata::default() };
    let all = entries(decoder, &directory, &mut left);
    let find = |tag: u16| all.iter().find(|entry| entry.tag == tag);
    let short = |tag: u16| {
        let value = *find(tag)?.bytes.first_chunk()?;
        Some(u16::from_ne_bytes(value))
    };

    let block = |tag| find(tag).map(|entry| entry.bytes.clone());
    let texts = TIFF_TEXTS.iter().filter_map(|&(key, tag)| {
        let value = &find(tag)?.bytes;
        Some(Text::new(key, &value[..value.iter().position(|&byte| byte == 0).unwrap_or(value.len())]))
    });
    let main = CAMERA_NAMES.iter().filter_map(|&tag| find(tag).cloned()).collect();
    let exif = Exif { main, camera, gps };
    let kept = TiffKept {
        compression: short(259).unwrap_or(1),
        predictor: short(317).unwrap_or(1),
        premultiplied: short(338) == Some(ExtraSamples::AssociatedAlpha.to_u16()),
        tags: all
            .iter()
            .filter(|entry| !is_made_anew(entry.tag) && !CAMERA_NAMES.contains(&entry.tag))
            .cloned()
            .collect(),
    };
    let icc = block(34_675).filter(|_| !layout.has_other_colours());
    Metadata {
        icc,
        exif: (!exif.is_empty()).then(|| exif.block()),
        xmp: block(XMP),
        resolution: resolution(find(282), find(283), short(296)),
        texts: texts.collect(),
        settings: None,
        native: Native(if kept == TiffKept::default() { Kept::Nothing } else { Kept::Tiff(kept) }),
    }
}

fn resolution(x: Option<&Entry>, y: Option<&Entry>, unit: Option<u16>) -> Option<Resolution> {
    let fraction = |entry: &Entry| {
        let numbers: &[u8; 8] = entry.bytes.first_chunk()?;
        let [above, below] = [0, 4].map(|at| u32::from_ne_bytes([0, 1, 2, 3].map(|i| numbers[at + i])));
        Some((above, below)).filter(|_| below > 0)
    };
    let unit = match unit {
        Some(1) => Unit::None,
        Some(3) => Unit::Centimetre,
        _ => Unit::Inch,
    };
    Some(Resolution { x: fraction(x?)?, y: fraction(y?)?, unit })
}

/// The values of a directory, up to `left` bytes of them.
fn entries(
    decoder: &mut Decoder<Box<dyn Source + '_>>,
    directory: &Directory,
    left: &mut usize,
) -> Vec<Entry> {
    let tags: Vec<_> =
        directory.iter().map(|(tag, entry)| (tag, entry.field_type().to_u16(), entry.count())).collect();
    let mut reader = decoder.read_directory_tags(directory);
    let mut entries = Vec::new();
    for (tag, kind, count) in tags {
        let Some((width, _)) = widths(kind) else { continue };
        if count == 0 || count.saturating_mul(width as u64) > *left as u64 {
            continue;
        }
        let mut value = ValueBuffer::empty(Type::BYTE);
        if !matches!(reader.find_tag_buf(tag, &mut value), Ok(Some(_))) {
            continue;
        }
        value.set_byte_order(ByteOrder::native());
        *left -= value.as_bytes().len();
        entries.push(Entry { tag: tag.to_u16(), kind, bytes: value.as_bytes().to_vec() });
    }
    entries
}
