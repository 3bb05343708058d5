//! Restoration in figures: PSNR and seconds of what `proxlift restore` does, in the protocol of the plug-and-play literature.
//!
//! ```text
//! cargo run --release -p proxlift --example restoration -- PICTURES [--kernels FOLDER] [--task NAME] [--noise 12.75]
//!     [--in-turn] [--prior best|convex|tv] [--strength X] [--weight X,Y,...] [--tolerance X] [--most N] [--every N] [--side 256]
//!     [--steps N --first S --last S --lambda X [--remembers]] [--export FOLDER]
//! ```
//!
//! Tasks: `levin` (the kernels of FOLDER, `.npy`, with circular borders), `shake` (eight paths of a shaking camera, to tune with),
//! `gaussian:1.6` and other kernels by name, `inpaint` (80 % of the pixels missing), `x2` and `x3` (cubic, smaller by so much),
//! `demosaic`. The noise is white, where white is 255. `--weight` is that of a convex prior, several for a line each, `usual` for the one
//! that follows from the kernel and the noise. `--export` writes what is restored for other software.
//! With `--in-turn`, each picture has one of the kernels, else all. Results are clipped and rounded to 8 bits; the scores are means
//! over pictures and kernels.
#![allow(missing_docs)]

use proxlift::evaluation::{Peak, psnr};
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::{Image, noise::add_gaussian};
use proxlift::restoration::{Border, Degradation, Kernel, Prior, Restorer, Schedule};
use proxlift::solver::Until;
use proxlift::{Result, dataset::images_below};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
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

/// The path of a shaking camera: a walk whose velocity changes by and by, for kernels of 13 to 27 pixels.
fn shake(seed: u64) -> Result<Kernel> {
    let mut random = proxlift::random::seeded(seed);
    let mut normal = || StandardNormal.sample(&mut random);
    let (mut place, mut velocity, mut path) = ([0.0f64; 2], [0.0f64; 2], Vec::new());
    for _ in 0..2000 {
        for axis in 0..2 {
            let push: f64 = normal();
            velocity[axis] += 0.06 * push - 0.01 * velocity[axis];
            place[axis] += velocity[axis];
        }
        path.push(place);
    }
    let side = 13 + 2 * (seed as usize % 8);
    let bounds = |axis: usize| {
        let values = path.iter().map(|p| p[axis]);
        (values.clone().fold(f64::MAX, f64::min), values.fold(f64::MIN, f64::max))
    };
    let ((top, bottom), (left, right)) = (bounds(0), bounds(1));
    let scale = (side - 3) as f64 / (bottom - top).max(right - left);
    let mut weights = vec![0.0; side * side];
    for [y, x] in path {
        let y = 0.5 * (side - 1) as f64 + scale * (y - 0.5 * (top + bottom));
        let x = 0.5 * (side - 1) as f64 + scale * (x - 0.5 * (left + right));
        for (dy, dx) in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)] {
            let share = (1.0 - (y - y.floor() - dy).abs()) * (1.0 - (x - x.floor() - dx).abs());
            weights[(y.floor() + dy) as usize * side + (x.floor() + dx) as usize] += share;
        }
    }
    Kernel::new(side, side, weights)
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
        "shake" => (1..=8).map(|seed| Ok(Degradation::Blur(shake(seed)?))).collect::<Result<_>>()?,
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

/// The picture, what became of it in floating point, and which pixels are known: for other software (`peers/restoration.py`).
fn export(
    folder: &Path,
    (index, number): (usize, usize),
    (clean, seen): (&Image, &Image),
    degradation: &Degradation,
) -> Result<()> {
    std::fs::create_dir_all(folder).expect("a folder");
    let put = |name: &str, image: &Image, depth| {
        let name = format!("{index:03}-{number:03}-{name}");
        io::write(folder.join(name), &Picture::new(image.clone(), depth))
    };
    put("clean.png", clean, Depth::Eight)?;
    put("seen.tif", seen, Depth::Float)?;
    if let Degradation::Missing { known, size: (height, width) } = degradation {
        let known = known.iter().map(|known| f32::from(*known)).collect();
        put("known.png", &Image::new(1, *height, *width, known)?, Depth::Eight)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).expect("a folder of pictures");
    let task = flag("--task").unwrap_or("levin".into());
    let sigma = number("--noise").unwrap_or(12.75) / 255.0;
    let prior: Prior = flag("--prior").unwrap_or("best".into()).parse()?;
    let (side, most) = (number("--side").unwrap_or(1e6) as usize, number("--most").unwrap_or(1e6) as usize);
    let every = number("--every").unwrap_or(1.0) as usize;
    let paths = images_below(Path::new(&folder))?;
    for weight in flag("--weight").unwrap_or("usual".into()).split(',') {
        let weight: Option<f64> = (weight != "usual").then(|| weight.parse().expect("a number"));
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
                if let Some(folder) = flag("--export") {
                    export(
                        Path::new(&folder),
                        (index, scores.len()),
                        (&clean, &seen),
                        restorer.degradation(),
                    )?;
                }
                restorer = restorer.sigma(sigma).strength(number("--strength").unwrap_or(1.0));
                if let Some(weight) = weight {
                    restorer = restorer.weight(weight);
                }
                if let Some(tolerance) = number("--tolerance") {
                    restorer = restorer.until(Until { tolerance, most: 2000 });
                }
                if let Some(lambda) = number("--lambda") {
                    let first = number("--first").unwrap_or(49.0) / 255.0;
                    let last = number("--last").map_or(sigma, |last| last / 255.0);
                    let remembers = std::env::args().any(|word| word == "--remembers");
                    let steps = number("--steps").unwrap_or(8.0) as usize;
                    restorer = restorer.schedule(Schedule { steps, first, last, lambda, remembers });
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
        let words = weight.map(|weight| format!(", weight {weight}")).unwrap_or_default();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let seconds = seconds / scores.len() as f64;
        let iterations = iterations / scores.len();
        println!(
            "{task}, noise {:.2}{words}: {} pictures, before {:.2}, after {:.2} dB, {iterations} iterations, {seconds:.2} s each",
            255.0 * sigma,
            scores.len(),
            mean(&before),
            mean(&scores)
        );
    }
    Ok(())
}
