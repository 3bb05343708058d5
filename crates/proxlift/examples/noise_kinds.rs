//! Draws the picture of `docs/noise.md`: a scene with three kinds of noise, before and after, and leaves the noisy ones as
//! files for `proxlift denoise --plot`.
//!
//! ```text
//! cargo run --release --example noise_kinds -- SHEET.png FOLDER
//! ```

use proxlift::Denoiser;
use proxlift::dataset::synthetic::{caption, scene};
use proxlift::image::io::{self, Depth, Picture, Raster};
use proxlift::image::noise::{CameraNoise, Demosaicing, add_gaussian};
use proxlift::image::{Channels, Image};
use proxlift::random::seeded;
use rand_distr::{Distribution, Poisson};
use std::ops::ControlFlow;
use std::path::Path;

/// The scene, and the part of it that is shown.
const SIZE: (usize, usize) = (960, 1440);
const SHOWN: (std::ops::Range<usize>, std::ops::Range<usize>) = (330..570, 560..840);
/// Counts of white.
const PEAK: f32 = 20.0;
const GAP: usize = 6;
const WORDS: f32 = 12.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = Path::new(&arguments[2]);
    std::fs::create_dir_all(folder)?;
    let clean = scene(0, SIZE.0, SIZE.1, Channels::Rgb)?;
    let white = Picture::new(add_gaussian(&clean, 25.0 / 255.0, 1, 0)?, Depth::Eight);
    let mut rng = seeded(1);
    let mut counts = clean.clone();
    for v in counts.data_mut() {
        *v = Poisson::new(PEAK * v.max(1e-6)).expect("a mean").sample(&mut rng) / 65_535.0;
    }
    let camera = CameraNoise {
        gain: 0.008,
        read_noise: 0.008,
        balance: [1.9, 1.0, 1.6],
        demosaicing: Demosaicing::GradientCorrected,
        smoothing: [0.8, 1.8],
        colour: 0.7,
        jpeg: Some((94, true)),
    };
    let camera = camera.photograph(&mut rng, &clean);
    let (rows, columns) = (SHOWN.0.len(), SHOWN.1.len());
    let (height, width) = (2 * (rows + GAP) + WORDS as usize + 2 * GAP, 3 * (columns + GAP) + GAP);
    let mut sheet = Image::new(3, height, width, vec![1.0; 3 * height * width])?;
    let pictures = [
        ("white", white, 1.0),
        ("counts", Picture::new(counts, Depth::Sixteen), 65_535.0 / PEAK),
        ("camera", Picture::new(camera, Depth::Eight), 1.0),
    ];
    for (i, (name, picture, scale)) in pictures.into_iter().enumerate() {
        let path = folder.join(format!("{name}.png"));
        io::write(&path, &picture)?;
        let mut raster = Raster::of_picture(&picture)?;
        let left = GAP + i * (columns + GAP);
        caption(&mut sheet, &name.to_uppercase(), (left as f32, GAP as f32), WORDS, 0.2);
        for row in 0..2 {
            let mut part = raster.crop(SHOWN.0.clone(), SHOWN.1.clone());
            part.data_mut().iter_mut().for_each(|v| *v *= scale);
            sheet.put((WORDS as usize + 2 * GAP + row * (rows + GAP), left), &part);
            if row == 0 {
                let noise =
                    Denoiser::best().denoise_raster(&mut raster, &mut |_, _| ControlFlow::Continue(()))?;
                println!("{name}: {}", noise.expect("it is estimated"));
            }
        }
    }
    io::write(&arguments[1], &Picture::new(sheet, Depth::Eight))?;
    Ok(())
}
