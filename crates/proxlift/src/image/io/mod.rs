//! Reading and writing image files without losing bits.
//!
//! | format | depths | grey | RGB | alpha | ICC | EXIF |
//! |---|---|---|---|---|---|---|
//! | PNG | 8, 16 | yes | yes | yes | kept | kept |
//! | TIFF | 8, 16, float | yes | yes | yes | kept | dropped |
//! | WebP (lossless) | 8 | as RGB | yes | yes | kept | kept |
//! | JPEG (quality 95) | 8 | yes | yes | refused | kept | kept |
//!
//! Integer samples map to `[0, 1]` and back exactly; float TIFF is taken as stored. A picture deeper than its new
//! format is rounded and clipped to what the format holds, with a warning: 16 bits or float become 8 bits in JPEG
//! and WebP, float becomes 16 bits in PNG. Alpha is never dropped: a format that cannot hold it is an error.
//! Pictures are turned upright on reading (EXIF or TIFF orientation). Of an animation or a TIFF with several
//! pages only the first picture is read, the latter with a warning.
//!
//! [`read`] gives floats; [`read_raster`] keeps the samples as they are stored, once in memory: for large pictures.
//! Their decoders take a second copy for a while for pictures that have to be turned, TIFF in planes or with half or
//! double floats, WebP and progressive JPEG.

mod atomic;
mod common;
mod jpeg_file;
mod png_file;
mod raster;
mod samples;
mod tiff_file;
mod webp_file;

use super::{Channels, Image};
use crate::{Error, Result};
use common::{Source, Target};
use std::io::{BufReader, BufWriter, Cursor, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fs::File, path::Path};

pub use atomic::write_atomically;
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

/// What a file says about its pixels, kept as bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The ICC colour profile.
    pub icc: Option<Vec<u8>>,
    /// The EXIF block, its orientation already applied and reset.
    pub exif: Option<Vec<u8>>,
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

/// What is refused before any pixel is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most pixels, not counting channels.
    pub max_pixels: u64,
    /// The most memory for the decoded samples, together with the planar image where that is asked for.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// 2^29 pixels (20000 x 20000 fits) and 8 GiB.
    fn default() -> Self {
        Self { max_pixels: 1 << 29, max_bytes: 8 << 30 }
    }
}

/// The limits for reading a file, and what its samples become.
#[derive(Clone, Copy)]
struct Allowance<'a> {
    limits: &'a Limits,
    /// Bytes that a sample takes beside itself: those of a planar image.
    beside: u64,
}

impl Allowance<'_> {
    /// `samples` a pixel, alpha included, of `bytes` each in the file.
    fn check(&self, width: u32, height: u32, samples: u64, bytes: u64) -> Decoded<()> {
        if width == 0 || height == 0 {
            return Err(format!("the header claims {width} x {height} pixels"));
        }
        let pixels = u64::from(width) * u64::from(height);
        let memory = pixels.saturating_mul(samples).saturating_mul(bytes + self.beside);
        if pixels > self.limits.max_pixels {
            return Err(format!(
                "{width} x {height} pixels are more than the limit of {}; raise it if the file is trusted",
                self.limits.max_pixels
            ));
        }
        if memory > self.limits.max_bytes {
            return Err(format!(
                "{width} x {height} pixels need {memory} bytes, more than the limit of {}; raise it if the \
                 file is trusted",
                self.limits.max_bytes
            ));
        }
        Ok(())
    }
}

/// A file format, chosen by extension when writing and by content when reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.png`
    Png,
    /// `.jpg`, `.jpeg`
    Jpeg,
    /// `.tif`, `.tiff`
    Tiff,
    /// `.webp`
    WebP,
}

impl Format {
    /// The format that the extension of `path` names, in any case.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "tif" | "tiff" => Some(Self::Tiff),
            "webp" => Some(Self::WebP),
            _ => None,
        }
    }

    /// The depth in which a picture of `depth` is stored, with a warning where that loses something.
    fn holds(self, depth: Depth) -> Depth {
        let stored = match (self, depth) {
            (Self::Tiff, depth) => depth,
            (Self::Png, Depth::Float) => Depth::Sixteen,
            (Self::Png, depth) => depth,
            (Self::Jpeg | Self::WebP, _) => Depth::Eight,
        };
        match (depth, stored) {
            (Depth::Sixteen, Depth::Eight) => {
                tracing::warn!("{self:?} holds 8 bits: the 16-bit picture is rounded");
            }
            (Depth::Float, Depth::Eight | Depth::Sixteen) => {
                let bits = if stored == Depth::Sixteen { 16 } else { 8 };
                tracing::warn!(
                    "{self:?} holds no floats: the picture is clipped to [0, 1] and rounded to {bits} bits"
                );
            }
            _ => {}
        }
        stored
    }

    fn from_content(start: &[u8]) -> Option<Self> {
        match start {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Self::Tiff),
            [b'R', b'I', b'F', b'F', ..] => Some(Self::WebP),
            _ => None,
        }
    }
}

/// A step of decoding or encoding; the reason of a failure still lacks the file's name.
type Decoded<T> = std::result::Result<T, String>;

/// Reads an image file with the default [`Limits`]; the header is checked against them before any pixel is decoded.
pub fn read(path: impl AsRef<Path>) -> Result<Picture> {
    Ok(open(path.as_ref(), Allowance { limits: &Limits::default(), beside: 4 })?.into_picture())
}

/// Reads an image file, the samples left in the depth of the file.
pub fn read_raster(path: impl AsRef<Path>, limits: &Limits) -> Result<Raster> {
    open(path.as_ref(), Allowance { limits, beside: 0 })
}

fn open(path: &Path, allowance: Allowance) -> Result<Raster> {
    let file = File::open(path).map_err(Error::io(path))?;
    if file.metadata().map_err(Error::io(path))?.is_dir() {
        return Err(Error::file(path, "this is a folder, not an image"));
    }
    decode_guarded(&mut BufReader::new(file), allowance).map_err(|reason| Error::file(path, reason))
}

/// Decodes an image that is already in memory.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture> {
    let allowance = Allowance { limits, beside: 4 };
    let raster = decode_guarded(&mut Cursor::new(bytes), allowance).map_err(Error::invalid)?;
    Ok(raster.into_picture())
}

/// A damaged file must not end the program, even where a decoder panics on it.
fn decode_guarded(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    catch_unwind(AssertUnwindSafe(|| decode_any(reader, allowance)))
        .unwrap_or_else(|_| Err("the file is damaged: its decoder failed".into()))
}

fn decode_any(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let start = reader.fill_buf().map_err(|e| e.to_string())?;
    if start.is_empty() {
        return Err("the file is empty".into());
    }
    match Format::from_content(start).ok_or("this is not a PNG, JPEG, TIFF or WebP image")? {
        Format::Png => png_file::decode(reader, allowance),
        Format::Jpeg => jpeg_file::decode(reader, allowance),
        Format::Tiff => tiff_file::decode(reader, allowance),
        Format::WebP => webp_file::decode(reader, allowance),
    }
}

/// Writes an image file in the format of its extension, whole or not at all: see [`write_atomically`].
pub fn write(path: impl AsRef<Path>, picture: &Picture) -> Result<()> {
    let path = path.as_ref();
    let format = format_to_write(path)?;
    picture.check().map_err(|e| Error::file(path, e.to_string()))?;
    write_raster(path, &Raster::rounded(picture, format.holds(picture.depth)))
}

/// [`write()`] for samples in the depth of a file: as they are, where the format can hold them.
pub fn write_raster(path: impl AsRef<Path>, raster: &Raster) -> Result<()> {
    let path = path.as_ref();
    let format = format_to_write(path)?;
    let of_path = |reason: String| Error::file(path, reason);
    check_writable(raster, format).map_err(of_path)?;
    write_atomically(path, |file| encode_to(raster, format, file).map_err(of_path))
}

fn format_to_write(path: &Path) -> Result<Format> {
    Format::from_path(path).ok_or_else(|| {
        Error::file(path, "the extension names no format that can be written; use png, jpg, tif or webp")
    })
}

/// Encodes an image in memory; [`write()`] without a file.
pub fn encode(picture: &Picture, format: Format) -> Result<Vec<u8>> {
    picture.check()?;
    let raster = Raster::rounded(picture, format.holds(picture.depth));
    check_writable(&raster, format).map_err(Error::invalid)?;
    let mut bytes = Cursor::new(Vec::new());
    encode_to(&raster, format, &mut bytes).map_err(Error::invalid)?;
    Ok(bytes.into_inner())
}

fn encode_to(raster: &Raster, format: Format, file: &mut dyn Target) -> Decoded<()> {
    format.holds(raster.depth());
    let mut file = BufWriter::new(file);
    match format {
        Format::Png => png_file::encode(raster, &mut file)?,
        Format::Jpeg => jpeg_file::encode(raster, &mut file)?,
        Format::Tiff => tiff_file::encode(raster, &mut file)?,
        Format::WebP => webp_file::encode(raster, &mut file)?,
    }
    file.flush().map_err(|e| e.to_string())
}

fn check_writable(raster: &Raster, format: Format) -> Decoded<()> {
    raster.check_finite()?;
    let (width, height) = (raster.width(), raster.height());
    if raster.has_alpha() && format == Format::Jpeg {
        return Err("JPEG cannot hold transparency; choose png, tif or webp".into());
    }
    let side = match format {
        Format::Jpeg => 65_535,
        Format::WebP => 16_384,
        Format::Png | Format::Tiff => i32::MAX as usize,
    };
    if width.max(height) > side {
        return Err(format!("{width} x {height} pixels do not fit this format; choose png or tif"));
    }
    Ok(())
}
