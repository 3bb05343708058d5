//! What a denoiser reads: an image in memory, a raster in the depth of its file, or an array of another language.

use crate::Result;
use crate::image::io::{Depth, Raster};
use crate::image::{Channels, Image};
use std::ops::Range;

/// The unit of 8 bits.
pub(super) const EIGHT_BITS: f64 = 1.0 / 255.0;

/// Rows that are looked at together.
pub(super) const BAND: usize = 64;

/// A picture of which rectangles can be had in floats.
pub trait Pixels: Sync {
    /// Grey or RGB.
    fn kind(&self) -> Channels;
    /// Rows and columns, both at least one.
    fn size(&self) -> (usize, usize);
    /// The unit of its numbers, `1/255` for 8 bits and `1/65535` for 16; 1 for floats, whose scale is not known.
    fn unit(&self) -> f64;
    /// A rectangle, where white is 1; floats as they are.
    fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image;

    /// Refuses NaN and infinite values, naming the first.
    fn check_finite(&self) -> Result<()> {
        let (height, width) = self.size();
        if self.unit() != 1.0 {
            return Ok(());
        }
        let mut bands = (0..height).step_by(BAND);
        let check = |top: usize| self.crop(top..(top + BAND).min(height), 0..width).check_finite_below(top);
        bands.try_for_each(check)
    }
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
