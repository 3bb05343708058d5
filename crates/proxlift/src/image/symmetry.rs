//! The eight symmetries of the square: camera orientations and training augmentations.

use super::Image;

/// An element of the dihedral group, as the source of output pixel `(y, x)`: swap `y` and `x` if `transpose`, then
/// count rows and columns from the far end if flipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Symmetry {
    /// Rows become columns.
    pub transpose: bool,
    /// Rows are read from the bottom.
    pub flip_rows: bool,
    /// Columns are read from the right.
    pub flip_columns: bool,
}

impl Symmetry {
    /// The `i mod 8`-th of the eight; 0 is the identity.
    pub fn nth(i: usize) -> Self {
        Self { transpose: i & 4 != 0, flip_rows: i & 2 != 0, flip_columns: i & 1 != 0 }
    }

    /// All eight, the identity first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..8).map(Self::nth)
    }

    /// From the EXIF and TIFF orientation number (1 to 8; anything else is the identity).
    pub fn from_orientation(number: u16) -> Self {
        let (transpose, flip_rows, flip_columns) = match number {
            2 => (false, false, true),
            3 => (false, true, true),
            4 => (false, true, false),
            5 => (true, false, false),
            6 => (true, true, false),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => (false, false, false),
        };
        Self { transpose, flip_rows, flip_columns }
    }

    /// The one that turns an image back.
    pub fn inverse(self) -> Self {
        let Self { transpose, flip_rows, flip_columns } = self;
        if transpose { Self { transpose, flip_rows: flip_columns, flip_columns: flip_rows } } else { self }
    }

    /// Writes the symmetric copy of a rectangle into `out`, whose rows have `width` values. The rectangle starts at
    /// `source[0]`, its rows are `stride` apart; its size follows from `out`.
    pub fn copy<T: Copy>(self, source: &[T], stride: usize, out: &mut [T], width: usize) {
        let height = out.len() / width;
        let (rows, columns) = if self.transpose { (width, height) } else { (height, width) };
        for (y, line) in out.chunks_exact_mut(width).enumerate() {
            if self.transpose {
                let c = if self.flip_columns { columns - 1 - y } else { y };
                for (x, v) in line.iter_mut().enumerate() {
                    let r = if self.flip_rows { rows - 1 - x } else { x };
                    *v = source[r * stride + c];
                }
            } else {
                let r = if self.flip_rows { rows - 1 - y } else { y };
                line.copy_from_slice(&source[r * stride..][..columns]);
                if self.flip_columns {
                    line.reverse();
                }
            }
        }
    }

    /// The whole image, turned.
    pub fn image(self, image: &Image) -> Image {
        let (channels, h, w) = image.shape();
        let (height, width) = if self.transpose { (w, h) } else { (h, w) };
        let mut turned = Image::zeros(channels, height, width).expect("as many pixels as before");
        for (c, plane) in turned.data_mut().chunks_exact_mut(h * w).enumerate() {
            self.copy(image.plane(c), w, plane, width);
        }
        turned
    }
}
