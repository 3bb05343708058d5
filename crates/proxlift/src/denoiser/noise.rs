//! The noise level that a picture is denoised for.

use super::pixels::Pixels;
use crate::{evaluation::noise_level, image::Image};
use std::fmt;

/// The noise level that a picture is denoised for.
///
/// It prints as `0.098 (25/255)`, or without the fraction where white need not be 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The standard deviation, on the picture's own scale.
    pub sigma: f64,
    /// Whether it was estimated from the picture, and not given.
    pub estimated: bool,
    /// Whether it was estimated and is less than a grey level of 8 bits: too little to be seen, or told from texture.
    pub faint: bool,
    /// Whether white is 1, as in all pictures but float ones.
    white_is_one: bool,
}

/// Noise below this share of the picture's range is faint.
const FAINT: f64 = 1.0 / 255.0;

/// A larger picture is estimated from bands of rows that have so many pixels in all.
const MOST_PIXELS: usize = 1 << 24;
pub(super) const BAND: usize = 64;

impl Noise {
    pub(super) fn given(sigma: f64, white_is_one: bool) -> Self {
        Self { sigma, estimated: false, faint: false, white_is_one }
    }

    pub(super) fn estimate(picture: &impl Pixels, white_is_one: bool) -> Self {
        let image = sample(picture);
        let sigma = noise_level(&image);
        let range = if white_is_one { 1.0 } else { range(&image) };
        Self { sigma, estimated: true, faint: sigma <= FAINT * range, white_is_one }
    }
}

fn range(image: &Image) -> f64 {
    let ends = (f32::INFINITY, f32::NEG_INFINITY);
    let (least, most) = image.data().iter().fold(ends, |(least, most), &v| (least.min(v), most.max(v)));
    f64::from(most) - f64::from(least)
}

/// The picture, or bands of it, evenly spaced, one below the other.
pub(super) fn sample(picture: &impl Pixels) -> Image {
    let (height, width) = picture.size();
    let bands = (MOST_PIXELS / (BAND * width)).max(1);
    if height <= bands * BAND {
        return picture.crop(0..height, 0..width);
    }
    let mut sample = Image::zeros(picture.kind().count(), bands * BAND, width).expect("a band has pixels");
    for i in 0..bands {
        let y = i * (height - BAND) / bands;
        sample.put((i * BAND, 0), &picture.crop(y..y + BAND, 0..width));
    }
    sample
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&significant(self.sigma))?;
        if self.white_is_one {
            write!(f, " ({}/255)", significant(255.0 * self.sigma))?;
        }
        Ok(())
    }
}

/// Two digits that matter, or as many as whole numbers have.
fn significant(value: f64) -> String {
    if value > 0.0 && value < 1e-4 {
        return format!("{value:.1e}");
    }
    let decimals = if value > 0.0 { (1.0 - value.log10().floor()).max(0.0) as usize } else { 0 };
    format!("{value:.decimals$}")
}
