//! Restoration in figures: PSNR and seconds of what `proxlift restore` does, in the protocol of the plug-and-play literature.
//!
//! ```text
//! cargo run --release -p proxlift --example restoration -- PICTURES [--kernels FOLDER] [--task NAME] [--noise 12.75]
//!     [--in-turn] [--prior best|convex|tv] [--strength X] [--tolerance X] [--most N] [--every N] [--side 256] [--steps N --first S --last S --lambda X]
//! ```
//!
//! Tasks: `levin` (the kernels of FOLDER, `.npy`, with circular borders), `gaussian:1.6` and other kernels by name, `inpaint`
//! (80 % of the pixels missing), `x2` and `x3` (cubic, smaller by so much), `demosaic`. The noise is white, where white is 255.
//! With `--in-turn`, each picture has one of the kernels, else all. Results are clipped and rounded to 8 bits; the scores are means
//! over pictures and kernels.
#![allow(missing_docs)]

use proxlift::evaluation::{Peak, psnr};
use proxlift::image::{Image, io, noise::add_gaussian};
use proxlift::restoration::{Border, Degradation, Kernel, Prior, Restorer, Schedule};
use proxlift::solver::Until;
use proxlift::{Result, dataset::images_below};
use rand::RngExt;
use std::path::Path;
use std::time::Instant;

/// The value of a flag.
fn flag(name: &str) -> Option<String> {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1)
}

fn number(name: &str) -> Option<f64> {
    flag(name).map(|text| text.parse().expect("a number"))
}

/// What is done to a picture of this size, one way or several.
fn degradations(task: &str, size: (usize, usize)) -> Result<Vec<Degradation>> {
    Ok(match task {
        "levin" => {
            let folder = flag("--kernels").expect("--kernels FOLDER");
            let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
            paths.sort();
            let kernels = paths.iter().map(|path| Kernel::open(path).map(Degradation::Blur));
            kernels.collect::<Result<_>>()?
        }
        "inpaint" => {
            let mut random = proxlift::random::seeded(1);
            let known = (0..size.0 * size.1).map(|_| random.random::<f64>() >= 0.8).collect();
            vec![Degradation::Missing { known, size }]
        }
        "x2" => vec![Degradation::Small { factor: 2, kernel: Kernel::cubic(2) }],
        "x3" => vec![Degradation::Small { factor: 3, kernel: Kernel::cubic(3) }],
        "demosaic" => vec![Degradation::Mosaic("rggb".into())],
        kernel => vec![Degradation::Blur(kernel.parse()?)],
    })
}

fn rounded(image: &Image) -> Image {
    let mut image = image.clone();
    image.data_mut().iter_mut().for_each(|v| *v = (255.0 * v.clamp(0.0, 1.0)).round() / 255.0);
    image
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("a folder of pictures");
    let task = flag("--task").unwrap_or("levin".into());
    let sigma = number("--noise").unwrap_or(12.75) / 255.0;
    let prior: Prior = flag("--prior").unwrap_or("best".into()).parse()?;
    let (side, most) = (number("--side").unwrap_or(1e6) as usize, number("--most").unwrap_or(1e6) as usize);
    let every = number("--every").unwrap_or(1.0) as usize;
    let paths = images_below(Path::new(&folder))?;
    let (mut scores, mut seconds, mut before, mut iterations) = (Vec::new(), 0.0, Vec::new(), 0);
    for (index, path) in paths.iter().step_by(every).take(most).enumerate() {
        let clean = io::read(path)?.image.centre(side);
        // Only where pixels are left out do sides have to be divided.
        let unit = if task.starts_with('x') { 6 } else { 1 };
        let multiple = |n: usize| n / unit * unit;
        let clean = clean.crop(0..multiple(clean.height()), 0..multiple(clean.width()));
        let mut degradations = degradations(&task, (clean.height(), clean.width()))?;
        if std::env::args().any(|word| word == "--in-turn") {
            let turn = index % degradations.len();
            degradations = vec![degradations.swap_remove(turn)];
        }
        for degradation in degradations {
            let mut restorer = Restorer::new(degradation).border(Border::Circular).prior(prior.clone());
            let seen = restorer.degrade(&clean)?;
            let seen = add_gaussian(&seen, sigma as f32, 1, index as u64)?;
            restorer = restorer.sigma(sigma).strength(number("--strength").unwrap_or(1.0));
            if let Some(tolerance) = number("--tolerance") {
                restorer = restorer.until(Until { tolerance, most: 2000 });
            }
            if let Some(lambda) = number("--lambda") {
                let first = number("--first").unwrap_or(49.0) / 255.0;
                let last = number("--last").map_or(sigma, |last| last / 255.0);
                let steps = number("--steps").unwrap_or(8.0) as usize;
                restorer = restorer.schedule(Schedule { steps, first, last, lambda });
            }
            let start = Instant::now();
            let restored = restorer.restore(&seen)?;
            seconds += start.elapsed().as_secs_f64();
            iterations += restored.iterations;
            scores.push(psnr(&clean, &rounded(&restored.image), Peak::ONE)?);
            if seen.shape() == clean.shape() {
                before.push(psnr(&clean, &seen, Peak::ONE)?);
            }
        }
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
    let seconds = seconds / scores.len() as f64;
    let iterations = iterations / scores.len();
    println!(
        "{task}, noise {:.2}: {} pictures, before {:.2}, after {:.2} dB, {iterations} iterations, {seconds:.2} s each",
        255.0 * sigma,
        scores.len(),
        mean(&before),
        mean(&scores)
    );
    Ok(())
}
