//! The file formats, and what fits into each.

use super::{Channels, Depth};
use std::path::Path;

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
    /// `.pgm`, `.ppm`, `.pnm`
    Pnm,
    /// `.bmp`
    Bmp,
    /// `.fits`, `.fit`, `.fts`
    Fits,
}

impl Format {
    /// The formats that are read, for sentences.
    pub const READ: &str = "PNG, JPEG, TIFF, WebP, PGM, PPM, BMP or FITS";
    /// The extensions that are written, for sentences.
    pub const EXTENSIONS: &str = "png, jpg, tif, webp, pgm, ppm, bmp or fits";

    /// The format that the extension of `path` names, in any case.
    pub fn from_path(path: &Path) -> Option<Self> {
        Self::from_name(path.extension()?.to_str()?)
    }

    /// The format that has this extension, in any case.
    pub fn from_name(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "tif" | "tiff" => Some(Self::Tiff),
            "webp" => Some(Self::WebP),
            "pgm" | "ppm" | "pnm" => Some(Self::Pnm),
            "bmp" => Some(Self::Bmp),
            "fits" | "fit" | "fts" => Some(Self::Fits),
            _ => None,
        }
    }

    /// The extension that a file of this format gets, for grey or for colour.
    pub fn extension(self, channels: Channels) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Tiff => "tif",
            Self::WebP => "webp",
            Self::Pnm if channels == Channels::Grey => "pgm",
            Self::Pnm => "ppm",
            Self::Bmp => "bmp",
            Self::Fits => "fits",
        }
    }

    pub(super) fn from_content(start: &[u8]) -> Option<Self> {
        match start {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Self::Tiff),
            [b'R', b'I', b'F', b'F', ..] => Some(Self::WebP),
            [b'P', b'1'..=b'6', b' ' | b'\t' | b'\r' | b'\n' | b'#', ..] => Some(Self::Pnm),
            [b'B', b'M', ..] => Some(Self::Bmp),
            _ if start.starts_with(b"SIMPLE  =") => Some(Self::Fits),
            _ => None,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Tiff => "TIFF",
            Self::WebP => "WebP",
            Self::Pnm => "PGM or PPM",
            Self::Bmp => "BMP",
            Self::Fits => "FITS",
        }
    }

    /// Whether a file can have several pages.
    pub fn has_pages(self) -> bool {
        matches!(self, Self::Tiff | Self::Fits)
    }

    /// The depth in which a picture of `depth` is stored.
    pub(super) fn stored(self, depth: Depth) -> Depth {
        match (self, depth) {
            (Self::Tiff | Self::Fits, depth) => depth,
            (Self::Png | Self::Pnm, Depth::Float) => Depth::Sixteen,
            (Self::Png | Self::Pnm, depth) => depth,
            (Self::Jpeg | Self::WebP | Self::Bmp, _) => Depth::Eight,
        }
    }

    /// Says in a line what storing a picture of `depth` loses, if it does.
    pub(super) fn announce_depth(self, depth: Depth) {
        let name = self.name();
        match (depth, self.stored(depth)) {
            (Depth::Sixteen, Depth::Eight) => {
                tracing::warn!("{name} holds 8 bits: the 16-bit picture is rounded");
            }
            (Depth::Float, stored @ (Depth::Eight | Depth::Sixteen)) => {
                let bits = if stored == Depth::Sixteen { 16 } else { 8 };
                tracing::warn!(
                    "{name} holds no floats: the picture is clipped to [0, 1] and rounded to {bits} bits"
                );
            }
            _ => {}
        }
    }
}
