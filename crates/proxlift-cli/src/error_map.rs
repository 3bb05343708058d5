//! What is left of a picture after denoising, drawn.

use proxlift::Result;
use proxlift::image::Image;

/// The error that is drawn in full colour.
pub const FULL: f32 = 0.2;
/// The colours of estimates that are too dark and too bright.
pub const BELOW: [f32; 3] = [0.0, 0.35, 0.70];
pub const ABOVE: [f32; 3] = [0.80, 0.33, 0.0];

/// The error in colour, the mean over channels: white at zero, blue below, orange above.
pub fn error_map(clean: &Image, estimate: &Image) -> Result<Image> {
    let mut errors = vec![0.0f32; clean.pixels()];
    for c in 0..clean.channels() {
        let pairs = estimate.plane(c).iter().zip(clean.plane(c));
        errors.iter_mut().zip(pairs).for_each(|(error, (e, c))| *error += e - c);
    }
    let full = FULL * clean.channels() as f32;
    errors.iter_mut().for_each(|error| *error = (*error / full).clamp(-1.0, 1.0));
    let channel = |c: usize| {
        errors.iter().map(move |&e| {
            let full = if e < 0.0 { BELOW[c] } else { ABOVE[c] };
            1.0 + e.abs() * (full - 1.0)
        })
    };
    let data: Vec<f32> = (0..3).flat_map(channel).collect();
    Image::new(3, clean.height(), clean.width(), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_white() {
        let image = Image::new(1, 1, 3, vec![0.1, 0.5, 0.9]).unwrap();
        assert!(error_map(&image, &image).unwrap().data().iter().all(|&v| v == 1.0));
        let above = Image::new(1, 1, 3, vec![0.1, 0.5, 9.0]).unwrap();
        let map = error_map(&image, &above).unwrap();
        assert_eq!((map.plane(0)[2], map.plane(2)[2]), (0.8, 0.0));
        // In colour, errors that cancel are none.
        let grey = Image::new(3, 1, 1, vec![0.5; 3]).unwrap();
        let tinted = Image::new(3, 1, 1, vec![0.6, 0.4, 0.5]).unwrap();
        assert!(error_map(&grey, &tinted).unwrap().data().iter().all(|&v| (v - 1.0).abs() < 1e-6));
    }
}
