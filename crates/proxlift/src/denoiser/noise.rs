//! The noise level that a picture is denoised for.

use super::pixels::{BAND, EIGHT_BITS, Pixels};
use crate::image::Image;
use crate::noise::{NoiseKind, NoiseModel, root_mean_square};
use std::{fmt, ops::Range};

/// The noise level that a picture is denoised for.
///
/// It prints as `white, sigma 0.098 (25/255)`, as `correlated, level 6.1/255 red, 4.5/255 green, 9.0/255 blue` or as `of
/// counts, gain 1.2, read noise 4.0`; without fractions where white need not be 1, and without `white` where it was given.
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
    /// The unit of the file.
    unit: f64,
}

/// Noise below this share of the picture's range is faint.
const FAINT: f64 = 1.0 / 255.0;

/// Where white is 1, a picture whose values are closer together than this is on another scale.
const DARK: f64 = 0.2;

/// A larger picture is estimated from bands of rows that have so many pixels in all.
const MOST_PIXELS: usize = 1 << 22;

impl Noise {
    pub(super) fn given(sigma: f64, white_is_one: bool) -> Self {
        Self { sigma, model: None, faint: false, white_is_one, range: 1.0, unit: 1.0 }
    }

    pub(super) fn estimate(sample: &Image, white_is_one: bool, unit: f64, kind: Option<NoiseKind>) -> Self {
        let range = range(sample);
        // Counts may fill a small part of their 16 bits.
        let range = if white_is_one && range > DARK { 1.0 } else { range };
        let model = NoiseModel::of_kind(sample, range, kind);
        let faint = model.sigma <= FAINT * range && (!model.is_counted() || unit == EIGHT_BITS);
        Self { sigma: model.sigma, model: Some(model), faint, white_is_one, range, unit }
    }

    /// Whether there is none to remove: less than a grey level of a picture that was rounded to 8 bits.
    pub(super) fn is_none(&self) -> bool {
        self.faint && self.unit == EIGHT_BITS
    }

    /// The unit of the picture's file: values of the model, divided by it, are on the scale of the file.
    pub fn unit(&self) -> f64 {
        self.unit
    }

    /// The levels of channels for people.
    fn levels(&self, levels: &[f64]) -> String {
        let [red, green, blue] = levels else { return self.level(root_mean_square(levels)) };
        let text = |level: &f64| {
            if self.white_is_one {
                format!("{}/255", significant(255.0 * level))
            } else {
                significant(*level)
            }
        };
        let texts = [red, green, blue].map(text);
        if texts[0] == texts[1] && texts[1] == texts[2] {
            return self.level(*red);
        }
        format!("{} red, {} green, {} blue", texts[0], texts[1], texts[2])
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

/// The rows that the noise of a picture is estimated from: all, or bands, evenly spaced.
pub fn sample_rows(height: usize, width: usize) -> Vec<Range<usize>> {
    let bands = (MOST_PIXELS / (BAND * width.max(1))).max(1);
    if height <= bands * BAND {
        return std::iter::once(0..height).collect();
    }
    let start = |i| i * (height - BAND) / bands;
    (0..bands).map(|i| start(i)..start(i) + BAND).collect()
}

/// The noise of a picture, of this kind if it is known.
pub fn estimate_pixels(picture: &impl Pixels, kind: Option<NoiseKind>) -> Noise {
    Noise::estimate(&sample(picture), picture.unit() != 1.0, picture.unit(), kind)
}

/// The [rows](sample_rows) of a picture that its noise is estimated from, one below the other.
pub(super) fn sample(picture: &impl Pixels) -> Image {
    let (height, width) = picture.size();
    let bands = sample_rows(height, width);
    if let [all] = &bands[..] {
        return picture.crop(all.clone(), 0..width);
    }
    let rows = bands.len() * BAND;
    let mut sample = Image::zeros(picture.kind().count(), rows, width).expect("a band has pixels");
    for (i, band) in bands.into_iter().enumerate() {
        sample.put((i * BAND, 0), &picture.crop(band, 0..width));
    }
    sample
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(model) = &self.model else { return write!(f, "sigma {}", self.level(self.sigma)) };
        match model.kind {
            NoiseKind::Gaussian => write!(f, "white, sigma {}", self.level(self.sigma)),
            NoiseKind::Camera => write!(f, "correlated, level {}", self.levels(&model.levels)),
            NoiseKind::Poisson | NoiseKind::PoissonGaussian => {
                let of_file = |value: f64| significant(value / self.unit);
                let gains: Vec<String> = model.variances.iter().map(|v| of_file(v.b)).collect();
                write!(f, "of counts, gain {}", gains.join(", "))?;
                let read = model.variances.iter().map(|v| v.a.max(0.0)).sum::<f64>() / gains.len() as f64;
                if read > 0.0 { write!(f, ", read noise {}", of_file(read.sqrt())) } else { Ok(()) }
            }
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
