//! Writes what the noise estimator is trained on: features of photographs with noise of many kinds, and the levels of that
//! noise. `experiments/noise_estimator.py` trains on the output.
//!
//! ```text
//! cargo run --release --example noise_features -- OUT.csv grey|colour DRAWS FOLDER...
//! ```
//!
//! Each line has the kind of noise (0 none, 1 white, 2 of a camera), the number of the picture, the level of each
//! channel at middle frequencies, where white is 255, then the features.

use proxlift::dataset::ImageSet;
use proxlift::image::noise::{CameraNoise, add_gaussian, middle_level};
use proxlift::image::{Channels, Image};
use proxlift::noise::estimator_features;
use proxlift::random::{Purpose, below, stream, unit};
use rayon::prelude::*;
use std::io::Write;

/// Pictures are cut to this side at the most.
const SIDE: usize = 384;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (out, grey, draws) = (&arguments[1], arguments[2] == "grey", arguments[3].parse::<u64>()?);
    let mut file = std::io::BufWriter::new(std::fs::File::create(out)?);
    let mut number = 0;
    for folder in &arguments[4..] {
        let set = ImageSet::from_folder(folder, Channels::Rgb)?;
        for (i, image) in set.images().iter().enumerate() {
            let lines: Vec<String> =
                (0..draws).into_par_iter().filter_map(|draw| line(image, grey, number + i, draw)).collect();
            lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
        }
        number += set.len();
    }
    Ok(())
}

fn line(image: &Image, grey: bool, picture: usize, draw: u64) -> Option<String> {
    let mut rng = stream(1, Purpose::ImageNoise, draw, picture as u64);
    let (height, width) = (image.height().min(SIDE), image.width().min(SIDE));
    let (top, left) =
        (below(&mut rng, image.height() - height + 1), below(&mut rng, image.width() - width + 1));
    let clean = image.crop(top..top + height, left..left + width);
    let (kind, noisy) = match below(&mut rng, 10) {
        0..2 => (0, clean.clone()),
        2..4 => {
            let level = (1.0f32.ln() + (60.0f32).ln() * unit(&mut rng)).exp() / 255.0;
            let mut noisy = add_gaussian(&clean, level, draw, picture as u64).ok()?;
            noisy.data_mut().iter_mut().for_each(|v| *v = (255.0 * v.clamp(0.0, 1.0)).round() / 255.0);
            (1, noisy)
        }
        _ => (2, CameraNoise::draw(&mut rng).photograph(&mut rng, &clean)),
    };
    let (clean, noisy) = if grey { (clean.to_grey(), noisy.to_grey()) } else { (clean, noisy) };
    let pixels = height * width;
    let noise: Vec<f32> = noisy.data().iter().zip(clean.data()).map(|(z, x)| 255.0 * (z - x)).collect();
    let levels = noise.chunks_exact(pixels).map(|plane| middle_level(plane, (height, width)));
    let numbers = levels.chain(estimator_features(&noisy)?).map(|v| format!("{v:.4}"));
    Some(format!("{kind},{picture},{}", numbers.collect::<Vec<_>>().join(",")))
}
