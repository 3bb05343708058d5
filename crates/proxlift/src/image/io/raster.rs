//! A picture in the depth of its file: what the codecs fill and read, and what large pictures stay in.
//!
//! A [`Picture`] takes four bytes a sample besides; a [`Raster`] gives [`Image`]s of its parts instead, and takes them
//! back rounded to its depth.

use super::metadata::Kept;
use super::samples::{Sample, Samples, each, interleaved, plane, turned};
use super::{Decoded, Depth, Metadata, Picture};
use crate::image::{Channels, Image};
use crate::{Error, Result, image::symmetry::Symmetry};
use std::ops::Range;

/// A picture as its file stores it, upright: samples of 8 or 16 bits or floats, pixel after pixel.
///
/// As [`Image`]s, its parts are what [`super::read`] would give: white is 1, floats are as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Raster {
    channels: Channels,
    alpha: bool,
    height: usize,
    width: usize,
    samples: Samples,
    /// Colour profile and camera data.
    pub metadata: Metadata,
}

impl Raster {
    /// Refuses samples of a wrong number, and floats that are not finite.
    pub(super) fn new(
        channels: Channels,
        alpha: bool,
        (height, width): (usize, usize),
        samples: Samples,
        metadata: Metadata,
    ) -> Decoded<Self> {
        let count = channels.count() + usize::from(alpha);
        let raster = Self { channels, alpha, height, width, samples, metadata };
        if raster.samples.len() != count * height * width {
            return Err("the file is damaged: its number of samples is wrong".into());
        }
        raster.check_finite()?;
        Ok(raster)
    }

    /// Rounds a picture to its depth, clipping what lies outside `[0, 1]` unless that is float.
    /// Fails when a value is not finite, or alpha has not one value for each pixel.
    pub fn of_picture(picture: &Picture) -> Result<Self> {
        picture.check()?;
        Ok(Self::rounded(picture, picture.depth))
    }

    /// A picture that was checked, rounded to `depth`.
    pub(super) fn rounded(picture: &Picture, depth: Depth) -> Self {
        let Picture { image, alpha, metadata, .. } = picture;
        let planes: Vec<&[f32]> =
            (0..image.channels()).map(|c| image.plane(c)).chain(alpha.as_deref()).collect();
        let samples = match depth {
            Depth::Eight => Samples::Eight(interleaved(&planes)),
            Depth::Sixteen => Samples::Sixteen(interleaved(&planes)),
            Depth::Float => Samples::Float(interleaved(&planes)),
        };
        let (alpha, metadata) = (alpha.is_some(), metadata.clone());
        Self {
            channels: image.kind(),
            alpha,
            height: image.height(),
            width: image.width(),
            samples,
            metadata,
        }
    }

    /// All of it in floats, plane by plane.
    pub fn into_picture(self) -> Picture {
        let (depth, count) = (self.depth(), self.samples_per_pixel());
        let alpha = self.alpha.then(|| each!(&self.samples, s => plane(s, count, count - 1).collect()));
        let (channels, height, width) = (self.channels.count(), self.height, self.width);
        let data = match self.samples {
            Samples::Float(s) if count == 1 => s,
            samples => each!(samples, s => (0..channels).flat_map(|c| plane(&s, count, c)).collect()),
        };
        let image = Image::new(channels, height, width, data).expect("a raster has pixels");
        Picture { image, alpha, depth, metadata: self.metadata }
    }

    /// Grey or RGB.
    pub fn kind(&self) -> Channels {
        self.channels
    }

    /// Whether pixels have an opacity.
    pub fn has_alpha(&self) -> bool {
        self.alpha
    }

    /// How samples are stored.
    pub fn depth(&self) -> Depth {
        match self.samples {
            Samples::Eight(_) => Depth::Eight,
            Samples::Sixteen(_) => Depth::Sixteen,
            Samples::Float(_) => Depth::Float,
        }
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

    pub(super) fn samples_per_pixel(&self) -> usize {
        self.channels.count() + usize::from(self.alpha)
    }

    pub(super) fn samples(&self) -> &Samples {
        &self.samples
    }

    /// The colours of a rectangle. Panics when it is empty or not inside the picture.
    pub fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image {
        let (channels, count, width) = (self.channels.count(), self.samples_per_pixel(), self.width);
        assert!(rows.end <= self.height && columns.end <= width, "the crop is not inside the picture");
        let (height, across) = (rows.len(), columns.len());
        let mut data = crate::memory::room(channels * height * across);
        each!(&self.samples, s => for c in 0..channels {
            for y in rows.clone() {
                data.extend(plane(&s[(y * width + columns.start) * count..][..across * count], count, c));
            }
        });
        Image::new(channels, height, across, data).expect("the crop has pixels")
    }

    /// Replaces the colours of the rectangle at `(y, x)`, rounding `image` to the depth and clipping what lies outside
    /// it; alpha stays. Panics when the image has other channels or does not fit there.
    pub fn put(&mut self, (y, x): (usize, usize), image: &Image) {
        let (count, width) = (self.samples_per_pixel(), self.width);
        assert!(
            image.kind() == self.channels && x + image.width() <= width && y + image.height() <= self.height
        );
        each!(&mut self.samples, s => for c in 0..image.channels() {
            for (row, y) in image.plane(c).chunks_exact(image.width()).zip(y..) {
                let to = s[(y * width + x) * count + c..].iter_mut().step_by(count);
                to.zip(row).for_each(|(to, &v)| *to = Sample::of(v));
            }
        });
    }

    /// A copy of some rows, without metadata.
    pub fn rows(&self, rows: Range<usize>) -> Self {
        let row = self.width * self.samples_per_pixel();
        let (start, end) = (rows.start * row, rows.end * row);
        let samples = match &self.samples {
            Samples::Eight(s) => Samples::Eight(s[start..end].to_vec()),
            Samples::Sixteen(s) => Samples::Sixteen(s[start..end].to_vec()),
            Samples::Float(s) => Samples::Float(s[start..end].to_vec()),
        };
        Self { height: rows.len(), samples, metadata: Metadata::default(), ..*self }
    }

    /// Replaces the rows from `y` on by what [`Raster::rows`] gave.
    pub fn put_rows(&mut self, y: usize, rows: &Self) {
        let shape = |raster: &Self| (raster.width, raster.samples_per_pixel(), raster.depth());
        assert_eq!(shape(self), shape(rows), "the rows are of another picture");
        let row = self.width * self.samples_per_pixel() * self.depth().bytes() as usize;
        let from = rows.samples.bytes();
        self.samples.bytes_mut()[y * row..][..from.len()].copy_from_slice(from);
    }

    /// In floats, with white at 1.
    #[must_use]
    pub fn into_float(self) -> Self {
        let samples = match self.samples {
            Samples::Float(s) => s,
            samples => each!(samples, s => s.into_iter().map(Sample::value).collect()),
        };
        Self { samples: Samples::Float(samples), ..self }
    }

    /// Whether its colours are stored as their product with alpha.
    pub(super) fn has_premultiplied_colours(&self) -> bool {
        self.alpha && matches!(&self.metadata.native.0, Kept::Tiff(kept) if kept.premultiplied)
    }

    /// Takes alpha out of colours that were multiplied by it, for formats that store them without.
    pub(super) fn divide_by_alpha(&mut self) {
        let count = self.samples_per_pixel();
        each!(&mut self.samples, s => for pixel in s.chunks_exact_mut(count) {
            if let Some((alpha, colours)) = pixel.split_last_mut() && alpha.value() > 0.0 {
                colours.iter_mut().for_each(|v| *v = Sample::of(v.value() / alpha.value()));
            }
        });
        if let Kept::Tiff(kept) = &mut self.metadata.native.0 {
            kept.premultiplied = false;
        }
    }

    /// Multiplies the samples of a float picture, alpha included. Panics when it is none.
    pub fn scale(&mut self, factor: f32) {
        let Samples::Float(samples) = &mut self.samples else { panic!("only floats can be scaled") };
        samples.iter_mut().for_each(|v| *v *= factor);
    }

    /// Samples in 8 bits, copied only if they are deeper.
    pub(super) fn eight(&self) -> std::borrow::Cow<'_, [u8]> {
        match &self.samples {
            Samples::Eight(s) => s.into(),
            Samples::Sixteen(s) => s.iter().map(|v| u8::of(v.value())).collect(),
            Samples::Float(s) => s.iter().map(|&v| u8::of(v)).collect(),
        }
    }

    /// Refuses NaN and infinite values, naming the first.
    pub(super) fn check_finite(&self) -> Decoded<()> {
        let Samples::Float(s) = &self.samples else { return Ok(()) };
        let Some(at) = s.iter().position(|v| !v.is_finite()) else { return Ok(()) };
        let (pixel, c) = (at / self.samples_per_pixel(), at % self.samples_per_pixel());
        let (y, x) = (pixel / self.width, pixel % self.width);
        let what = if c == self.channels.count() { "alpha".into() } else { format!("channel {c}") };
        Err(format!(
            "the pixel at row {y}, column {x}, {what} is {}; replace NaN and infinite values first",
            s[at]
        ))
    }

    /// The largest magnitude of a colour.
    pub fn largest(&self) -> f32 {
        let (count, channels) = (self.samples_per_pixel(), self.channels.count());
        each!(&self.samples, s => {
            let colours = s.chunks_exact(count).flat_map(|pixel| &pixel[..channels]);
            colours.fold(0.0, |most, v| v.value().abs().max(most))
        })
    }

    /// Turned as an orientation number asks.
    pub(super) fn upright(self, orientation: u16) -> Self {
        let turn = Symmetry::from_orientation(orientation);
        if turn == Symmetry::default() {
            return self;
        }
        let (count, size) = (self.samples_per_pixel(), (self.height, self.width));
        let samples = match self.samples {
            Samples::Eight(s) => Samples::Eight(turned(turn, &s, count, size)),
            Samples::Sixteen(s) => Samples::Sixteen(turned(turn, &s, count, size)),
            Samples::Float(s) => Samples::Float(turned(turn, &s, count, size)),
        };
        let (height, width) = if turn.transpose { (size.1, size.0) } else { size };
        let mut metadata = self.metadata;
        if let Some(resolution) = metadata.resolution.as_mut().filter(|_| turn.transpose) {
            std::mem::swap(&mut resolution.x, &mut resolution.y);
        }
        Self { height, width, samples, metadata, ..self }
    }
}

impl Picture {
    pub(super) fn check(&self) -> Result<()> {
        self.image.check_finite()?;
        match &self.alpha {
            Some(alpha) if alpha.len() != self.image.pixels() || alpha.iter().any(|a| !a.is_finite()) => {
                Err(Error::invalid("the alpha plane must have one finite value for each pixel"))
            }
            _ => Ok(()),
        }
    }
}
