//! The noise level that a picture is denoised for.

use super::pixels::Pixels;
use crate::image::Image;
use crate::noise::{NoiseKind, NoiseModel};
use std::fmt;

/// The noise level that a picture is denoised for.
///
/// It prints as `sigma 0.098 (25/255)`, or without the fraction where white need not be 1, and tells where it rises with
/// the intensity or is correlated.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// The standard deviation, on the picture's own scale.
    pub sigma: f64,
    /// What was found in the picture; none where the level was given.
    pub model: Option<NoiseModel>,
    /// Whether it was estimated and is less than a grey level of 8 bits: too little to be seen, or told from texture.
    pub faint: bool,
    /// Whether white is 1, as in all pictures but float ones.
    white_is_one: bool,
    /// How far black and white are apart.
    pub(super) range: f64,
}

/// Noise below this share of the picture's range is faint.
const FAINT: f64 = 1.0 / 255.0;

/// Where white is 1, a picture whose values are closer together than this is on another scale.
const DARK: f64 = 0.2;

/// A larger picture is estimated from bands of rows that have so many pixels in all.
const MOST_PIXELS: usize = 1 << 24;
pub(super) const BAND: usize = 64;

impl Noise {
    pub(super) fn given(sigma: f64, white_is_one: bool) -> Self {
        Self { sigma, model: None, faint: false, white_is_one, range: 1.0 }
    }

    pub(super) fn estimate(sample: &Image, white_is_one: bool, kind: Option<NoiseKind>) -> Self {
        let range = range(sample);
        // Counts may fill a small part of their 16 bits.
        let range = if white_is_one && range > DARK { 1.0 } else { range };
        let model = NoiseModel::of_kind(sample, range, kind);
        let faint = model.sigma <= FAINT * range && !model.is_counted();
        Self { sigma: model.sigma, model: Some(model), faint, white_is_one, range }
    }

    /// A level for people.
    fn level(&self, level: f64) -> String {
        let fraction =
            if self.white_is_one { format!(" ({}/255)", significant(255.0 * level)) } else { String::new() };
        significant(level) + &fraction
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
        match &self.model {
            Some(model) if model.is_counted() => {
                let slope =
                    model.variances.iter().map(|variance| significant(variance.b)).collect::<Vec<_>>();
                write!(f, "rising with intensity, gain {}", slope.join(", "))
            }
            Some(model) if model.kind == NoiseKind::Camera => {
                let levels = model.levels.iter().map(|level| significant(255.0 * level)).collect::<Vec<_>>();
                write!(f, "correlated, level {}/255", levels.join(", "))
            }
            _ => write!(f, "sigma {}", self.level(self.sigma)),
        }
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
