//! What a denoiser reads: an image in memory, or a raster in the depth of its file.

use crate::image::io::Raster;
use crate::image::{Channels, Image};
use std::ops::Range;

/// A picture of which rectangles can be had in floats.
pub(super) trait Pixels {
    /// Grey or RGB.
    fn kind(&self) -> Channels;
    /// Rows and columns.
    fn size(&self) -> (usize, usize);
    /// A rectangle.
    fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image;
}

macro_rules! pixels {
    ($($picture:ty),+) => {
        $(impl Pixels for $picture {
            fn kind(&self) -> Channels {
                self.kind()
            }
            fn size(&self) -> (usize, usize) {
                (self.height(), self.width())
            }
            fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image {
                self.crop(rows, columns)
            }
        })+
    };
}
pixels!(Image, Raster);
