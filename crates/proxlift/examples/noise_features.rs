//! Writes what the noise estimator is trained on: features of pictures with noise of many kinds, and the levels of that
//! noise. `experiments/noise_estimator.py` trains on the output.
//!
//! ```text
//! cargo run --release --example noise_features -- OUT.csv grey|colour DRAWS FOLDER|NOISY=CLEAN...
//! ```
//!
//! Pictures of a FOLDER are clean and get noise of each kind; NOISY=CLEAN are two folders of real photographs with the same
//! names. Each line has the kind of noise (0 none, 1 white, 2 of a camera, 3 real), the number of the picture, the level
//! of each channel at middle frequencies, where white is 255, then the features.

use proxlift::dataset::{ImageSet, synthetic::caption};
use proxlift::image::noise::{CameraNoise, add_gaussian, middle_level};
use proxlift::image::{Channels, Image, enlarge};
use proxlift::noise::estimator_features;
use proxlift::random::{Purpose, below, stream, unit};
use rand::Rng;
use rand_distr::{Distribution, Poisson};
use rayon::prelude::*;
use std::io::Write;

/// Pictures are cut to this side at the most.
const SIDE: usize = 384;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (out, grey, draws) = (&arguments[1], arguments[2] == "grey", arguments[3].parse::<u64>()?);
    let mut file = std::io::BufWriter::new(std::fs::File::create(out)?);
    let mut number = 0;
    for folders in &arguments[4..] {
        let (noisy, clean) = folders.split_once('=').unwrap_or((folders, folders));
        let set = ImageSet::from_folder(clean, Channels::Rgb)?;
        let pairs = if noisy == clean { None } else { Some(ImageSet::from_folder(noisy, Channels::Rgb)?) };
        for (i, image) in set.images().iter().enumerate() {
            let photograph = pairs.as_ref().map(|pairs| &pairs.images()[i]);
            let lines = (0..draws).into_par_iter();
            let lines: Vec<String> =
                lines.filter_map(|draw| line(image, photograph, grey, number + i, draw)).collect();
            lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
        }
        number += set.len();
    }
    Ok(())
}

fn line(image: &Image, real: Option<&Image>, grey: bool, picture: usize, draw: u64) -> Option<String> {
    let mut rng = stream(1, Purpose::ImageNoise, draw, picture as u64);
    let (height, width) = (image.height().min(SIDE), image.width().min(SIDE));
    let (top, left) =
        (below(&mut rng, image.height() - height + 1), below(&mut rng, image.width() - width + 1));
    let mut clean = image.crop(top..top + height, left..left + width);
    let (kind, noisy) = match (real, below(&mut rng, 20)) {
        (Some(real), kind) => {
            let noisy = real.crop(top..top + height, left..left + width);
            // People make photographs smaller.
            if kind < 6 {
                clean = half(&clean);
            }
            (3, if kind < 6 { half(&noisy) } else { noisy })
        }
        (None, kind) => {
            let factor = 1.0 + 1.5 * (1.5 * unit(&mut rng) - 0.5).max(0.0);
            clean
                .data_mut()
                .chunks_exact_mut(height * width)
                .for_each(|p| enlarge(p, (height, width), factor));
            clean.data_mut().iter_mut().for_each(|v| *v = (255.0 * v.clamp(0.0, 1.0)).round() / 255.0);
            if kind == 0 {
                clean = page(&mut rng, height, width);
            }
            let noisy = match kind {
                0..5 => clean.clone(),
                5..7 => counted(&mut rng, &mut clean),
                7..9 => {
                    let level = (60.0f32.ln() * unit(&mut rng)).exp() / 255.0;
                    let mut noisy = add_gaussian(&clean, level, draw, picture as u64).ok()?;
                    noisy
                        .data_mut()
                        .iter_mut()
                        .for_each(|v| *v = (255.0 * v.clamp(0.0, 1.0)).round() / 255.0);
                    noisy
                }
                _ => CameraNoise::draw(&mut rng).photograph(&mut rng, &clean),
            };
            (usize::from(kind >= 5) + usize::from(kind >= 9), noisy)
        }
    };
    let (clean, noisy) = if grey { (clean.to_grey(), noisy.to_grey()) } else { (clean, noisy) };
    let (height, width) = (clean.height(), clean.width());
    let pixels = height * width;
    let noise: Vec<f32> = noisy.data().iter().zip(clean.data()).map(|(z, x)| 255.0 * (z - x)).collect();
    let levels = noise.chunks_exact(pixels).map(|plane| middle_level(plane, (height, width)));
    let numbers = levels.chain(estimator_features(&noisy)?).map(|v| format!("{v:.4}"));
    Some(format!("{kind},{picture},{}", numbers.collect::<Vec<_>>().join(",")))
}

/// A picture of photons, few or many, at the scale at which the largest count is white; `clean` is brought to it too.
fn counted(rng: &mut impl Rng, clean: &mut Image) -> Image {
    let peak = (4.0f32.ln() + (500.0f32).ln() * unit(rng)).exp();
    let mut counts = clean.clone();
    for v in counts.data_mut() {
        *v = if *v > 0.0 { Poisson::new(peak * *v).expect("a mean").sample(rng) } else { 0.0 };
    }
    let most = counts.data().iter().copied().fold(1.0, f32::max);
    counts.data_mut().iter_mut().for_each(|v| *v /= most);
    clean.data_mut().iter_mut().for_each(|v| *v *= peak / most);
    counts
}

/// Half the size: the means of four pixels, in 8 bits.
fn half(image: &Image) -> Image {
    let (channels, height, width) = image.shape();
    let mut half = Image::zeros(channels, height / 2, width / 2).expect("a picture has pixels");
    for (i, v) in half.data_mut().iter_mut().enumerate() {
        let (c, y, x) = (i / (width / 2) / (height / 2), i / (width / 2) % (height / 2), i % (width / 2));
        let sum: f32 = [(0, 0), (0, 1), (1, 0), (1, 1)]
            .map(|(dy, dx)| image.plane(c)[(2 * y + dy) * width + 2 * x + dx])
            .iter()
            .sum();
        *v = (255.0 * sum / 4.0).round() / 255.0;
    }
    half
}

/// A page on a screen: boxes of one colour each, and lines of text.
fn page(rng: &mut impl Rng, height: usize, width: usize) -> Image {
    let mut page = Image::zeros(3, height, width).expect("a page has pixels");
    let colour = |rng: &mut _| [unit(rng), unit(rng), unit(rng)].map(|v: f32| (255.0 * v).round() / 255.0);
    for k in 0..2 + below(rng, 12) {
        let ink = colour(rng);
        let (top, left) = if k == 0 { (0, 0) } else { (below(rng, height), below(rng, width)) };
        let rows = if k == 0 { height } else { below(rng, height - top) };
        let columns = if k == 0 { width } else { below(rng, width - left) };
        for (c, ink) in ink.into_iter().enumerate() {
            for y in top..top + rows {
                page.data_mut()[(c * height + y) * width + left..][..columns].fill(ink);
            }
        }
    }
    let (ink, size) = (colour(rng), 7.0 + 14.0 * unit(rng));
    let mut text = Image::zeros(1, height, width).expect("a page has pixels");
    for i in 0..below(rng, (height as f32 / (1.6 * size)) as usize) {
        let line: String = (0..40).map(|_| b"ABCDEFGHIJKLMNOPRSTU   ."[below(rng, 24)] as char).collect();
        caption(&mut text, &line, (4.0, 1.6 * size * i as f32), size, 1.0);
    }
    for (c, ink) in ink.into_iter().enumerate() {
        let blend = |(v, t): (&mut f32, &f32)| *v = (255.0 * (*v + t * (ink - *v))).round() / 255.0;
        page.data_mut()[c * height * width..].iter_mut().zip(text.plane(0)).for_each(blend);
    }
    page
}
