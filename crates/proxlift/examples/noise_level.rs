//! How well the noise level of photographs is estimated, and how long it takes.
//!
//! ```text
//! cargo run --release --example noise_level -- DIR
//! ```
//!
//! Adds noise to every picture of the folder, in grey and in colour, as it is and as an 8-bit file would hold it, and
//! prints the mean of the relative errors, their bias, and the share of pictures within 8 %.

use proxlift::dataset::ImageSet;
use proxlift::image::{Channels, Image, noise::add_gaussian};
use proxlift::noise::white_level;
use std::time::Instant;

fn main() -> proxlift::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    println!("pictures  stored  sigma   mean error      bias  within 8 %     ms");
    for channels in [Channels::Grey, Channels::Rgb] {
        let set = ImageSet::from_folder(&folder, channels)?;
        for stored in [false, true] {
            for sigma in [0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3] {
                row(&set, channels, stored, sigma)?;
            }
        }
    }
    Ok(())
}

fn row(set: &ImageSet, channels: Channels, stored: bool, sigma: f32) -> proxlift::Result<()> {
    let (mut found, mut seconds) = (Vec::new(), 0.0);
    for (index, clean) in set.images().iter().enumerate() {
        let mut noisy: Image = add_gaussian(clean, sigma, 0, index as u64)?;
        if stored {
            noisy.data_mut().iter_mut().for_each(|v| *v = (v.clamp(0.0, 1.0) * 255.0).round() / 255.0);
        }
        let start = Instant::now();
        found.push(white_level(&noisy));
        seconds += start.elapsed().as_secs_f64();
    }
    let count = found.len() as f64;
    let mean = |of: &dyn Fn(f64) -> f64| found.iter().map(|&v| of(v)).sum::<f64>() / count;
    let ms = 1e3 * seconds / count;
    let kind = if channels == Channels::Grey { "grey" } else { "colour" };
    let depth = if stored { "8 bits" } else { "float" };
    let sigma = f64::from(sigma);
    if sigma == 0.0 {
        let most = found.iter().fold(0.0f64, |a, &b| a.max(b));
        println!(
            "{kind:<8}  {depth:<6}  clean   {:.4} on average, {most:.4} at most  {ms:>8.1}",
            mean(&|v| v)
        );
    } else {
        let error = |v: f64| v / sigma - 1.0;
        let within = mean(&|v| f64::from(u8::from(error(v).abs() < 0.08)));
        println!(
            "{kind:<8}  {depth:<6}  {sigma:<5.2}  {:>9.1} %  {:>+6.1} %  {:>8.0} %  {ms:>6.1}",
            100.0 * mean(&|v| error(v).abs()),
            100.0 * mean(&error),
            100.0 * within
        );
    }
    Ok(())
}
