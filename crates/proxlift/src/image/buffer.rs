//! The planar buffer.

use crate::{Result, memory};
use std::ops::Range;

/// What a pixel holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channels {
    /// One plane of luminance.
    Grey,
    /// Three planes: red, green, blue.
    Rgb,
}

impl Channels {
    /// What has so many channels.
    pub fn from_count(count: usize) -> Option<Self> {
        match count {
            1 => Some(Self::Grey),
            3 => Some(Self::Rgb),
            _ => None,
        }
    }

    /// 1 or 3.
    pub fn count(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
        }
    }
}

/// A grey or RGB image: `channels` planes of `height` rows of `width` values, one after the other.
///
/// Values are nominally in `[0, 1]`; noise and float files may leave it, and nothing here clips.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    channels: Channels,
    height: usize,
    width: usize,
    data: Vec<f32>,
}

impl Image {
    /// Wraps planar `data`. Refuses channel counts other than 1 and 3, zero sizes, and data of the wrong length.
    pub fn new(channels: usize, height: usize, width: usize, data: Vec<f32>) -> Result<Self> {
        let (kind, len) = checked_shape(channels, height, width)?;
        refuse!(data.len() != len =>
            "{channels} x {height} x {width} pixels need {len} values, {} were given", data.len());
        Ok(Self { channels: kind, height, width, data })
    }

    /// An image of this size whose values are somewhere else: it has none.
    pub(crate) fn hollow(channels: Channels, height: usize, width: usize) -> Self {
        Self { channels, height, width, data: Vec::new() }
    }

    /// A black image. Refuses what [`Image::new`] refuses.
    pub fn zeros(channels: usize, height: usize, width: usize) -> Result<Self> {
        let (kind, len) = checked_shape(channels, height, width)?;
        let data = memory::try_zeros(len);
        let data = data.ok_or_else(|| invalid!("there is no memory for {width} x {height} pixels"))?;
        Ok(Self { channels: kind, height, width, data })
    }

    /// 1 for grey, 3 for RGB.
    pub fn channels(&self) -> usize {
        self.channels.count()
    }

    /// Grey or RGB.
    pub fn kind(&self) -> Channels {
        self.channels
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Pixels, not counting channels.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// `(channels, height, width)`.
    pub fn shape(&self) -> (usize, usize, usize) {
        (self.channels(), self.height, self.width)
    }

    /// All values, plane after plane.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All values, to change in place.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The plane of channel `c`.
    pub fn plane(&self, c: usize) -> &[f32] {
        &self.data[c * self.pixels()..(c + 1) * self.pixels()]
    }

    /// A rectangle of the image.
    ///
    /// ```
    /// let image = proxlift::Image::new(1, 2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// assert_eq!(image.crop(1..2, 0..2).data(), [4.0, 5.0]);
    /// assert_eq!(image.centre(1).data(), [2.0]);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    /// Panics when it is empty or not inside the image.
    pub fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(rows.end <= self.height && columns.end <= self.width, "the crop is not inside the image");
        assert!(!rows.is_empty() && !columns.is_empty(), "the crop is empty");
        let mut data = memory::room(self.channels() * rows.len() * columns.len());
        for plane in self.data.chunks_exact(self.pixels()) {
            for line in plane.chunks_exact(self.width).take(rows.end).skip(rows.start) {
                data.extend_from_slice(&line[columns.clone()]);
            }
        }
        Self { channels: self.channels, height: rows.len(), width: columns.len(), data }
    }

    /// The middle of the image, at most `side` pixels wide and high.
    pub fn centre(&self, side: usize) -> Self {
        let middle = |length: usize| {
            let kept = length.min(side);
            (length - kept) / 2..(length - kept) / 2 + kept
        };
        self.crop(middle(self.height), middle(self.width))
    }

    /// Replaces the rectangle at `(y, x)` by another image.
    /// Panics when that has other channels or does not fit there.
    pub fn put(&mut self, (y, x): (usize, usize), image: &Self) {
        assert!(
            image.channels == self.channels
                && y + image.height <= self.height
                && x + image.width <= self.width
        );
        let (pixels, width) = (self.pixels(), self.width);
        let planes = self.data.chunks_exact_mut(pixels).zip(image.data.chunks_exact(image.pixels()));
        for (plane, from) in planes {
            let lines = plane.chunks_exact_mut(width).skip(y).zip(from.chunks_exact(image.width));
            lines.for_each(|(line, from)| line[x..x + from.len()].copy_from_slice(from));
        }
    }

    /// The image, mirror-padded: so many more rows above and below, and columns on the left and on the right. The edge
    /// pixel is repeated (NumPy's `symmetric`).
    pub fn mirrored(&self, (above, below): (usize, usize), (left, right): (usize, usize)) -> Self {
        let (channels, height, width) = self.shape();
        if above + below + left + right == 0 {
            return self.clone();
        }
        let (seen_height, seen_width) = (above + height + below, left + width + right);
        let columns: Vec<usize> = (0..seen_width).map(|x| mirror(x, left, width)).collect();
        let mut data = memory::room(channels * seen_height * seen_width);
        for plane in self.data.chunks_exact(height * width) {
            for y in 0..seen_height {
                let row = &plane[mirror(y, above, height) * width..][..width];
                data.extend(columns.iter().map(|&x| row[x]));
            }
        }
        Self { channels: self.channels, height: seen_height, width: seen_width, data }
    }

    /// The adjoint of [`Image::mirrored`], for an image that has so many more rows above and below, and columns on the left
    /// and on the right: adds what mirrored pixels hold to those that they come from. Panics when the image is all border.
    pub fn folded(&self, (above, below): (usize, usize), (left, right): (usize, usize)) -> Self {
        let (channels, seen_height, seen_width) = self.shape();
        let (height, width) = (seen_height - above - below, seen_width - left - right);
        let mut folded =
            Self::zeros(channels, height, width).expect("the image has pixels inside its border");
        let planes = folded.data.chunks_exact_mut(height * width);
        for (plane, seen) in planes.zip(self.data.chunks_exact(seen_height * seen_width)) {
            for (y, row) in seen.chunks_exact(seen_width).enumerate() {
                let to = &mut plane[mirror(y, above, height) * width..][..width];
                row.iter().enumerate().for_each(|(x, v)| to[mirror(x, left, width)] += v);
            }
        }
        folded
    }

    /// The Rec. 601 luma `0.299 R + 0.587 G + 0.114 B`, not rounded to any bit depth; a grey image is copied.
    pub fn to_grey(&self) -> Self {
        let data = match self.channels {
            Channels::Grey => self.data.clone(),
            Channels::Rgb => {
                let (r, gb) = self.data.split_at(self.pixels());
                let (g, b) = gb.split_at(self.pixels());
                r.iter().zip(g).zip(b).map(|((r, g), b)| 0.299 * r + 0.587 * g + 0.114 * b).collect()
            }
        };
        Self { channels: Channels::Grey, height: self.height, width: self.width, data }
    }

    /// Converts to `channels`: luma for grey, three equal planes for RGB; moves when nothing has to change.
    pub fn into_channels(self, channels: Channels) -> Self {
        match (self.channels, channels) {
            (Channels::Rgb, Channels::Grey) => self.to_grey(),
            (Channels::Grey, Channels::Rgb) => Self { channels, data: self.data.repeat(3), ..self },
            _ => self,
        }
    }

    /// Refuses NaN and infinite values, naming the first.
    pub fn check_finite(&self) -> Result<()> {
        self.check_finite_below(0)
    }

    /// The same for a band of a picture below so many rows.
    pub(crate) fn check_finite_below(&self, rows: usize) -> Result<()> {
        let Some(at) = self.data.iter().position(|v| !v.is_finite()) else { return Ok(()) };
        let (c, y, x) = (at / self.pixels(), rows + at % self.pixels() / self.width, at % self.width);
        let value = self.data[at];
        Err(invalid!(
            "the pixel at row {y}, column {x}, channel {c} is {value}; replace NaN and infinite values first"
        ))
    }
}

/// Where index `i` of a length with mirrored ones around it, `before` of them before it, comes from.
fn mirror(i: usize, before: usize, length: usize) -> usize {
    let i = (i as isize - before as isize).rem_euclid(2 * length as isize) as usize;
    i.min(2 * length - 1 - i)
}

fn checked_shape(channels: usize, height: usize, width: usize) -> Result<(Channels, usize)> {
    let kind = Channels::from_count(channels)
        .ok_or_else(|| invalid!("an image has 1 (grey) or 3 (RGB) channels, not {channels}"))?;
    refuse!(height == 0 || width == 0 => "an image of {width} x {height} pixels is empty");
    let len = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
    let len = len.ok_or_else(|| invalid!("{width} x {height} pixels exceed the memory"))?;
    Ok((kind, len))
}
