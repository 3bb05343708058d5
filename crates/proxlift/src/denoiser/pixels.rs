//! What a denoiser reads: an image in memory, or a raster in the depth of its file.

use crate::image::io::{Depth, Raster};
use crate::image::{Channels, Image};
use std::ops::Range;

/// The unit of 8 bits.
pub(super) const EIGHT_BITS: f64 = 1.0 / 255.0;

/// A picture of which rectangles can be had in floats.
pub(super) trait Pixels {
    /// Grey or RGB.
    fn kind(&self) -> Channels;
    /// Rows and columns.
    fn size(&self) -> (usize, usize);
    /// The unit of its file.
    fn unit(&self) -> f64;
    /// A rectangle.
    fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image;
}

macro_rules! pixels {
    ($($picture:ty: $unit:expr),+) => {
        $(impl Pixels for $picture {
            fn kind(&self) -> Channels {
                self.kind()
            }
            fn size(&self) -> (usize, usize) {
                (self.height(), self.width())
            }
            fn unit(&self) -> f64 {
                $unit(self)
            }
            fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image {
                self.crop(rows, columns)
            }
        })+
    };
}

fn unit(raster: &Raster) -> f64 {
    match raster.depth() {
        Depth::Eight => EIGHT_BITS,
        Depth::Sixteen => 1.0 / 65_535.0,
        Depth::Float => 1.0,
    }
}

pixels!(Image: |_: &Image| 1.0, Raster: unit);
