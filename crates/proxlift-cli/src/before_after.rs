//! Before and after, side by side: the middle of each picture, pixel by pixel.

use proxlift::dataset::synthetic::caption;
use proxlift::image::Image;
use proxlift::image::io::{Depth, Raster};

/// The side of what is shown of a picture, and how many pictures are shown.
const SIDE: usize = 384;
pub const MOST: usize = 12;
/// Between pictures, and the height of the words above them.
const GAP: usize = 8;
const WORDS: f32 = 14.0;
/// Pictures whose values are closer together than this, or beyond white, are shown from their least to their largest value.
const DARK: f32 = 0.2;
/// The share of values that is beyond either end then.
const BEYOND: f64 = 0.002;

/// The middle of a picture before and after.
pub struct BeforeAfter {
    before: Image,
    after: Option<Image>,
}

impl BeforeAfter {
    pub fn new(noisy: &Raster) -> Self {
        Self { before: middle(noisy), after: None }
    }

    /// Of two pictures, of which the one before may be smaller by a whole factor: its pixels are shown as squares.
    pub fn of(before: &Image, after: &Image) -> proxlift::Result<Self> {
        let (factor, (channels, height, width)) = (after.width() / before.width(), after.shape());
        let row = |c: usize, y: usize| &before.plane(c)[y / factor * before.width()..][..before.width()];
        let rows = (0..channels).flat_map(|c| (0..height).map(move |y| (c, y)));
        let data = rows.flat_map(|(c, y)| (0..width).map(move |x| row(c, y)[x / factor])).collect();
        let large = Image::new(channels, height, width, data)?;
        Ok(Self { before: large.centre(SIDE), after: Some(after.centre(SIDE)) })
    }

    /// `white` is what the value 1 of the original has become.
    pub fn add(&mut self, denoised: &Raster, white: f32) {
        let mut after = middle(denoised);
        if denoised.depth() == Depth::Float {
            after.data_mut().iter_mut().for_each(|v| *v /= white);
        }
        self.after = Some(after);
    }
}

fn middle(raster: &Raster) -> Image {
    let of = |length: usize| {
        let kept = length.min(SIDE);
        (length - kept) / 2..(length - kept) / 2 + kept
    };
    raster.crop(of(raster.height()), of(raster.width()))
}

/// All pictures, one below the other.
pub fn sheet(pictures: &[BeforeAfter]) -> proxlift::Result<Image> {
    let rows: Vec<[Image; 2]> = pictures.iter().filter_map(shown).collect();
    let widest = rows.iter().map(|row| row[0].width()).max().unwrap_or(1);
    let heights: usize = rows.iter().map(|row| row[0].height() + GAP).sum();
    let top = 2 * GAP + WORDS as usize;
    let (height, width) = (top + heights, 2 * widest + 3 * GAP);
    let mut sheet = Image::new(3, height, width, vec![1.0; 3 * height * width])?;
    caption(&mut sheet, "BEFORE", (GAP as f32, GAP as f32), WORDS, 0.2);
    caption(&mut sheet, "AFTER", ((2 * GAP + widest) as f32, GAP as f32), WORDS, 0.2);
    let mut y = top;
    for [before, after] in &rows {
        sheet.put((y, GAP), before);
        sheet.put((y, 2 * GAP + widest), after);
        y += before.height() + GAP;
    }
    Ok(sheet)
}

/// Both as they are shown: in three channels, from black to white.
fn shown(picture: &BeforeAfter) -> Option<[Image; 2]> {
    let after = picture.after.as_ref()?;
    let mut values = after.data().to_vec();
    values.sort_unstable_by(f32::total_cmp);
    let beyond = (BEYOND * values.len() as f64) as usize;
    let (low, high) = (values[beyond], values[values.len() - 1 - beyond]);
    let own_scale = high > 1.5 || low < -0.5 || high - low < DARK;
    let (low, high) = if own_scale { (low, high.max(low + f32::MIN_POSITIVE)) } else { (0.0, 1.0) };
    Some([&picture.before, after].map(|image| {
        let mut image = image.clone();
        image.data_mut().iter_mut().for_each(|v| *v = (*v - low) / (high - low));
        image.into_channels(proxlift::image::Channels::Rgb)
    }))
}
