//! Reading and writing image files without losing bits.
//!
//! | format | depths | grey | RGB | alpha | pages | ICC | EXIF | XMP | resolution | texts |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | PNG | 8, 16 | yes | yes | yes | 1 | kept | kept | kept | kept | all |
//! | TIFF, BigTIFF | 8, 16, float | yes | yes | yes | any | kept | kept | kept | kept | those with a tag |
//! | JPEG | 8 | yes | yes | refused | 1 | kept | kept | kept | kept | comments |
//! | WebP (lossless) | 8 | as RGB | yes | yes | 1 | kept | kept | kept | - | - |
//! | PGM, PPM | 8, 16 | yes | yes | refused | 1 | - | - | - | - | comments |
//! | BMP | 8 | yes | yes | yes | 1 | - | - | - | kept | - |
//! | FITS | integers, float | yes | refused | refused | any | - | - | - | - | its header |
//!
//! Integer samples map to `[0, 1]` and back exactly; float TIFF and all FITS are taken as stored. A picture deeper than
//! its new format is rounded and clipped to what the format holds, with a warning: 16 bits or float become 8 bits in
//! JPEG, WebP and BMP, float becomes 16 bits in PNG, PGM and PPM. Alpha is never dropped: a format that cannot hold it is
//! an error. Metadata that a format has no place for is left out, with a warning of one line.
//! Pictures are turned upright on reading (EXIF or TIFF orientation).
//!
//! TIFF is written with the compression of its original (none, LZW, Deflate, PackBits, else Deflate) and keeps all tags
//! that are not about the storage of samples; more than 4 GB make it a BigTIFF. Integers of 32 and 64 bits, signed
//! integers, and floats of 16 and 64 bits become 32-bit floats. Fewer than 8 bits become 8, and CMYK
//! becomes RGB; a TIFF with a palette is refused, a PNG with one becomes RGB.
//! A JPEG is written with the quantisation tables of its original, or those of quality 95 where they are finer, and
//! without subsampling of colours.
//!
//! [`read`] gives floats; [`read_raster`] keeps the samples as they are stored, once in memory: for large pictures.
//! Both read the first page of a file, the first frame of an animation; [`Pages`] reads all pages, one at a time, and
//! [`write_pages`] writes them. Decoders take a second copy for a while for pictures that have to be turned, TIFF in
//! planes or with samples of another type, WebP and progressive JPEG.

mod bmp_file;
mod common;
mod exif;
mod fits_file;
mod format;
mod jpeg_bits;
mod jpeg_file;
mod jpeg_scan;
mod jpeg_segments;
mod limits;
mod metadata;
mod pages;
mod png_file;
mod pnm_file;
mod raster;
mod samples;
mod tiff_file;
mod webp_file;

use super::{Channels, Image};
use crate::{Error, Result, storage};
use limits::Allowance;
use pages::{Opened, check_writable, encode_to};
use std::borrow::Cow;
use std::io::{BufReader, Cursor};
use std::path::Path;

pub use crate::storage::write_atomically;
pub use format::Format;
pub use limits::Limits;
pub use metadata::{Metadata, Native, Resolution, Text, Unit};
pub use pages::{Pages, encode_pages, spool_pages, write_pages};
pub use raster::Raster;

/// How samples are stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// 8-bit integers, 255 is white.
    Eight,
    /// 16-bit integers, 65535 is white.
    Sixteen,
    /// 32-bit floating point, any scale.
    Float,
}

impl Depth {
    fn bytes(self) -> u64 {
        match self {
            Self::Eight => 1,
            Self::Sixteen => 2,
            Self::Float => 4,
        }
    }
}

/// An image with what its file holds beside the colours.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The colours.
    pub image: Image,
    /// Opacity, one value a pixel, on the same scale as the colours.
    pub alpha: Option<Vec<f32>>,
    /// How samples are, or shall be, stored.
    pub depth: Depth,
    /// Colour profile and camera data.
    pub metadata: Metadata,
}

impl Picture {
    /// A picture without alpha and metadata.
    pub fn new(image: Image, depth: Depth) -> Self {
        Self { image, alpha: None, depth, metadata: Metadata::default() }
    }
}

/// A step of decoding or encoding; the reason of a failure still lacks the file's name.
type Decoded<T> = std::result::Result<T, String>;

/// Reads an image file with the default [`Limits`]; the header is checked against them before any pixel is decoded.
pub fn read(path: impl AsRef<Path>) -> Result<Picture> {
    let allowance = Allowance { limits: Limits::default(), beside: 4, announces: false, in_place: false };
    Ok(first(path.as_ref(), allowance)?.into_picture())
}

/// Reads an image file, the samples left in the depth of the file.
pub fn read_raster(path: impl AsRef<Path>, limits: &Limits) -> Result<Raster> {
    first(path.as_ref(), Allowance { limits: *limits, beside: 0, announces: false, in_place: false })
}

fn first(path: &Path, allowance: Allowance) -> Result<Raster> {
    let source = Box::new(BufReader::new(storage::open(path)?));
    let mut opened = Opened::new(source, allowance).map_err(|reason| Error::file(path, reason))?;
    opened.first().map_err(|reason| Error::file(path, reason))
}

/// Decodes an image that is already in memory.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture> {
    let allowance = Allowance { limits: *limits, beside: 4, announces: false, in_place: false };
    let mut opened = Opened::new(Box::new(Cursor::new(bytes)), allowance).map_err(Error::invalid)?;
    Ok(opened.first().map_err(Error::invalid)?.into_picture())
}

/// Writes an image file in the format of its extension, whole or not at all: see [`write_atomically`].
pub fn write(path: impl AsRef<Path>, picture: &Picture) -> Result<()> {
    let path = path.as_ref();
    let format = format_to_write(path)?;
    picture.check().map_err(|e| Error::file(path, e.to_string()))?;
    format.announce_depth(picture.depth);
    write_raster(path, &Raster::rounded(picture, format.stored(picture.depth)))
}

/// [`write()`] for samples in the depth of a file: as they are, where the format can hold them.
pub fn write_raster(path: impl AsRef<Path>, raster: &Raster) -> Result<()> {
    let path = path.as_ref();
    let format = format_to_write(path)?;
    let of_path = |reason: String| Error::file(path, reason);
    check_writable(format, raster).map_err(of_path)?;
    write_atomically(path, |file| {
        encode_to(format, 1, &mut |_| Ok(Cow::Borrowed(raster)), file).map_err(of_path)
    })
}

fn format_to_write(path: &Path) -> Result<Format> {
    Format::from_path(path).ok_or_else(|| {
        let reason = "the extension names no format that can be written; use ";
        Error::file(path, reason.to_string() + Format::EXTENSIONS)
    })
}

/// Encodes an image in memory; [`write()`] without a file.
pub fn encode(picture: &Picture, format: Format) -> Result<Vec<u8>> {
    picture.check()?;
    format.announce_depth(picture.depth);
    let raster = Raster::rounded(picture, format.stored(picture.depth));
    let mut bytes = Cursor::new(Vec::new());
    encode_to(format, 1, &mut |_| Ok(Cow::Borrowed(&raster)), &mut bytes).map_err(Error::invalid)?;
    Ok(bytes.into_inner())
}
