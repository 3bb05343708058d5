//! What is left of a picture after denoising, drawn.

use proxlift::{Result, image::Image};

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
