//! How far a network may change a pixel below the level of its training: the figures behind `MOST_CHANGE`.
//!
//!     cargo run --release --example change_bound -- FOLDER [EVERY]
//!
//! White noise of several levels is added to every EVERY-th picture of FOLDER (10th), in grey, and removed by the built-in
//! networks, whose thresholds follow the level; then no pixel is allowed to differ from the noisy one by more than so many times
//! the level. Printed are the PSNR for each bound, the share of pixels that a bound of 6 cuts, and by how many levels of 255 the
//! network without a bound changes a picture without noise.
#![allow(missing_docs)]

use proxlift::dataset::images_below;
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::{Channels, Image, io, noise::add_gaussian};
use proxlift::{Denoiser, Result, model::BuiltIn};
use rayon::prelude::*;

const LEVELS: [f32; 7] = [0.25, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0];
const BOUNDS: [f32; 8] = [2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, f32::INFINITY];

/// No pixel further from `noisy` than `most`.
fn bounded(estimate: &Image, noisy: &Image, most: f32) -> Image {
    let mut result = estimate.clone();
    let pixels = result.data_mut().iter_mut().zip(noisy.data());
    pixels.for_each(|(value, &noisy)| *value = value.clamp(noisy - most, noisy + most));
    result
}

fn largest(a: &Image, b: &Image) -> f32 {
    a.data().iter().zip(b.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let folder = words.first().expect("usage: change_bound FOLDER [EVERY]");
    let every = words.get(1).map_or(10, |text| text.parse().expect("EVERY is a number"));
    let paths = images_below(folder)?;
    let clean = paths.par_iter().step_by(every).map(|path| Ok(io::read(path)?.image.to_grey()));
    let clean = clean.collect::<Result<Vec<Image>>>()?;
    println!("{} pictures", clean.len());
    for built_in in [BuiltIn::Small, BuiltIn::Best] {
        print!("\n{:<8}", built_in.name());
        BOUNDS.iter().for_each(|bound| print!("{bound:>8}"));
        println!("{:>10}{:>12}", "cut at 6", "clean, 255");
        for level in LEVELS {
            let sigma = level / 255.0;
            // As trained there is no bound.
            let mut model = built_in.model(Channels::Grey).clone();
            model.network.scale_thresholds(sigma / model.sigma as f32);
            let denoiser = Denoiser::from(model).as_trained();
            let each = clean.par_iter().enumerate().map(|(i, clean)| {
                let noisy = add_gaussian(clean, sigma, 1, i as u64)?;
                let estimate = denoiser.denoise(&noisy)?;
                let mut numbers = Vec::new();
                for bound in BOUNDS {
                    numbers.push(psnr(clean, &bounded(&estimate, &noisy, bound * sigma), Peak::ONE)?);
                }
                let changes = estimate.data().iter().zip(noisy.data()).map(|(a, b)| (a - b).abs());
                let cut = changes.filter(|change| *change > 6.0 * sigma).count();
                numbers.push(100.0 * cut as f64 / estimate.data().len() as f64);
                numbers.push(255.0 * f64::from(largest(&denoiser.denoise(clean)?, clean)));
                Ok(numbers)
            });
            let each = each.collect::<Result<Vec<Vec<f64>>>>()?;
            let mean = |i: usize| each.iter().map(|numbers| numbers[i]).sum::<f64>() / each.len() as f64;
            print!("{:<8}", format!("{level}/255"));
            (0..BOUNDS.len()).for_each(|i| print!("{:>8.2}", mean(i)));
            let most = each.iter().map(|numbers| numbers[BOUNDS.len() + 1]).fold(0.0, f64::max);
            println!("{:>9.4}%{most:>12.1}", mean(BOUNDS.len()));
        }
    }
    Ok(())
}
