//! The noise that was found in pictures, and how users are told.

use proxlift::Result;
use proxlift::evaluation::noise_level;
use proxlift::image::Image;
use proxlift::image::io::{Depth, Raster};

/// The noise of one picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Its standard deviation, on the picture's own scale.
    pub sigma: f64,
    /// Whether white is 1, as in all pictures but float ones.
    white_is_one: bool,
    /// Whether it is less than a grey level of 8 bits.
    faint: bool,
}

/// Noise below this share of the picture's range is hardly seen, nor told from texture.
const FAINT: f64 = 1.0 / 255.0;

impl Noise {
    /// Estimates the noise of a picture, a large one by bands of its rows.
    pub fn of(picture: &Raster) -> Result<Self> {
        let image = sample(picture)?;
        let (channels, height, width) = image.shape();
        let sigma = noise_level(image.data(), channels, height, width)?;
        let white_is_one = picture.depth() != Depth::Float;
        let range = if white_is_one {
            1.0
        } else {
            let (least, most) = image
                .data()
                .iter()
                .fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), &v| (least.min(v), most.max(v)));
            f64::from(most) - f64::from(least)
        };
        Ok(Self { sigma, white_is_one, faint: sigma <= FAINT * range })
    }

    /// `0.098 (25/255)`.
    fn describe(&self) -> String {
        let sigma = significant(self.sigma);
        if self.white_is_one { format!("{sigma} ({}/255)", significant(255.0 * self.sigma)) } else { sigma }
    }
}

/// Of a picture with more pixels, bands are looked at that have so many in all.
const MOST_PIXELS: usize = 1 << 24;
/// Rows of a band.
const BAND: usize = 64;

/// The picture, or bands of it, evenly spaced, one below the other.
fn sample(picture: &Raster) -> Result<Image> {
    let (height, width) = (picture.height(), picture.width());
    let bands = (MOST_PIXELS / (BAND * width)).max(1);
    if height <= bands * BAND {
        return Ok(picture.crop(0..height, 0..width));
    }
    let starts = (0..bands).map(|i| i * (height - BAND) / bands);
    let bands: Vec<Image> = starts.map(|y| picture.crop(y..y + BAND, 0..width)).collect();
    let channels = picture.kind().count();
    let planes = (0..channels).flat_map(|c| bands.iter().flat_map(move |band| band.plane(c)));
    Image::new(channels, bands.len() * BAND, width, planes.copied().collect())
}

/// What was estimated, to follow a line that tells what was written; nothing if nothing was.
pub fn summary(found: &[Noise]) -> String {
    let faint = found.iter().filter(|noise| noise.faint).count();
    match found {
        [] => String::new(),
        [one] if one.faint => {
            format!(
                "; noise estimated at sigma {}: hardly any, so little is changed (--sigma S sets another level)",
                one.describe()
            )
        }
        [one] => format!("; noise estimated at sigma {}", one.describe()),
        [first, ..] => {
            let least = found.iter().fold(first, |a, b| if b.sigma < a.sigma { b } else { a });
            let most = found.iter().fold(first, |a, b| if b.sigma > a.sigma { b } else { a });
            let clean = if faint == 0 { String::new() } else { format!(", hardly any in {faint}") };
            format!("; noise estimated at sigma {} to {}{clean}", least.describe(), most.describe())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_told_in_few_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.0984, "0.098"),
            (25.1, "25"),
            (0.00123, "0.0012"),
            (5.04, "5.0"),
            (1234.5, "1234"),
            (1e-9, "1.0e-9"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn many_pictures_share_one_line() {
        let noise = |sigma, faint| Noise { sigma, white_is_one: true, faint };
        assert_eq!(summary(&[]), "");
        assert_eq!(summary(&[noise(0.098, false)]), "; noise estimated at sigma 0.098 (25/255)");
        let several = [noise(0.1, false), noise(0.001, true), noise(0.2, false)];
        assert_eq!(
            summary(&several),
            "; noise estimated at sigma 0.0010 (0.26/255) to 0.20 (51/255), hardly any in 1"
        );
    }
}
