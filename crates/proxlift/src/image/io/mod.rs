//! Reading and writing image files without losing bits.
//!
//! | format | depths | gray | RGB | alpha | ICC | EXIF |
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

mod atomic;
mod common;
mod tiff_file;

use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub use atomic::write_atomically;

use super::{Channels, Image};
use crate::{Error, Result};

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
    /// The most memory for the decoded samples and the planar image together.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// 2^29 pixels (20000 x 20000 fits) and 8 GiB.
    fn default() -> Self {
        Self { max_pixels: 1 << 29, max_bytes: 8 << 30 }
    }
}

impl Limits {
    /// `samples` a pixel, alpha included, of `bytes` each in the file.
    fn check(&self, width: u32, height: u32, samples: u64, bytes: u64) -> Decoded<()> {
        if width == 0 || height == 0 {
            return Err(format!("the header claims {width} x {height} pixels"));
        }
        let pixels = u64::from(width) * u64::from(height);
        let memory = pixels.saturating_mul(samples).saturating_mul(bytes + 4);
        if pixels > self.max_pixels {
            return Err(format!(
                "{width} x {height} pixels are more than the limit of {}; raise it if the file is trusted",
                self.max_pixels
            ));
        }
        if memory > self.max_bytes {
            return Err(format!(
                "{width} x {height} pixels need {memory} bytes, more than the limit of {}; raise it if the \
                 file is trusted",
                self.max_bytes
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

/// Reads an image file with the default [`Limits`].
pub fn read(path: impl AsRef<Path>) -> Result<Picture> {
    read_with(path, &Limits::default())
}

/// Reads an image file; the header is checked against `limits` before any pixel is decoded.
pub fn read_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Picture> {
    let path = path.as_ref();
    let file = File::open(path).map_err(Error::io(path))?;
    if file.metadata().map_err(Error::io(path))?.is_dir() {
        return Err(Error::file(path, "this is a folder, not an image"));
    }
    decode_guarded(BufReader::new(file), limits).map_err(|reason| Error::file(path, reason))
}

/// Decodes an image that is already in memory.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Picture> {
    decode_guarded(std::io::Cursor::new(bytes), limits).map_err(Error::invalid)
}

/// A damaged file must not end the program, even where a decoder panics on it.
fn decode_guarded(reader: impl BufRead + Seek, limits: &Limits) -> Decoded<Picture> {
    catch_unwind(AssertUnwindSafe(|| decode_any(reader, limits)))
        .unwrap_or_else(|_| Err("the file is damaged: its decoder failed".into()))
}

fn decode_any(mut reader: impl BufRead + Seek, limits: &Limits) -> Decoded<Picture> {
    let start = reader.fill_buf().map_err(|e| e.to_string())?;
    if start.is_empty() {
        return Err("the file is empty".into());
    }
    let format = Format::from_content(start).ok_or("this is not a PNG, JPEG, TIFF or WebP image")?;
    let picture = match format {
        Format::Tiff => tiff_file::decode(reader, limits)?,
        _ => common::decode(reader, format, limits)?,
    };
    picture.image.check_finite().map_err(|e| e.to_string())?;
    Ok(picture)
}

/// Writes an image file in the format of its extension, whole or not at all: see [`write_atomically`].
pub fn write(path: impl AsRef<Path>, picture: &Picture) -> Result<()> {
    let path = path.as_ref();
    let format = Format::from_path(path).ok_or_else(|| {
        Error::file(path, "the extension names no format that can be written; use png, jpg, tif or webp")
    })?;
    check_writable(picture, format).map_err(|reason| Error::file(path, reason))?;
    write_atomically(path, |file| {
        match format {
            Format::Tiff => tiff_file::encode(picture, file),
            _ => common::encode(picture, format, file),
        }
        .map_err(|reason| Error::file(path, reason))
    })
}

/// Encodes an image in memory; [`write()`] without a file.
pub fn encode(picture: &Picture, format: Format) -> Result<Vec<u8>> {
    check_writable(picture, format).map_err(Error::invalid)?;
    let mut bytes = std::io::Cursor::new(Vec::new());
    match format {
        Format::Tiff => tiff_file::encode(picture, &mut bytes),
        _ => common::encode(picture, format, &mut bytes),
    }
    .map_err(Error::invalid)?;
    Ok(bytes.into_inner())
}

fn check_writable(picture: &Picture, format: Format) -> Decoded<()> {
    picture.image.check_finite().map_err(|e| e.to_string())?;
    let (width, height) = (picture.image.width(), picture.image.height());
    if let Some(alpha) = &picture.alpha {
        if format == Format::Jpeg {
            return Err("JPEG cannot hold transparency; choose png, tif or webp".into());
        }
        if alpha.len() != width * height || alpha.iter().any(|a| !a.is_finite()) {
            return Err("the alpha plane must have one finite value for each pixel".into());
        }
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

/// Splits interleaved samples into planes: colours, then alpha where there is one.
fn planar<T: Copy>(
    samples: &[T],
    count: usize,
    (height, width): (usize, usize),
    value: impl Fn(T) -> f32,
) -> Decoded<(Image, Option<Vec<f32>>)> {
    if samples.len() != count * height * width {
        return Err("the file is damaged: its number of samples is wrong".into());
    }
    let colours = if count > 2 { 3 } else { 1 };
    let plane = |c: usize| samples[c..].iter().step_by(count).map(|&v| value(v));
    let mut data = Vec::with_capacity(colours * height * width);
    (0..colours).for_each(|c| data.extend(plane(c)));
    let alpha = (count > colours).then(|| plane(colours).collect());
    Ok((Image::new(colours, height, width, data).map_err(|e| e.to_string())?, alpha))
}

/// Interleaves planes, the inverse of [`planar`].
fn interleaved<T: Copy + Default>(picture: &Picture, sample: impl Fn(f32) -> T) -> Vec<T> {
    let image = &picture.image;
    let count = image.channels() + usize::from(picture.alpha.is_some());
    let mut samples = vec![T::default(); count * image.pixels()];
    let planes = (0..image.channels()).map(|c| image.plane(c)).chain(picture.alpha.as_deref());
    for (c, plane) in planes.enumerate() {
        for (s, &v) in samples[c..].iter_mut().step_by(count).zip(plane) {
            *s = sample(v);
        }
    }
    samples
}

/// Rounds `[0, 1]` to 8 bits, clipping what lies outside.
fn to_eight(v: f32) -> u8 {
    (v * 255.0).round().clamp(0.0, 255.0) as u8
}

/// Rounds `[0, 1]` to 16 bits, clipping what lies outside.
fn to_sixteen(v: f32) -> u16 {
    (v * 65_535.0).round().clamp(0.0, 65_535.0) as u16
}

fn is_gray(picture: &Picture) -> bool {
    picture.image.kind() == Channels::Gray
}
