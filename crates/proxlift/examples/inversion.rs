//! What was the network given? Inversion of a denoiser and of an encoder, lifted and by gradients through the network.
//!
//!     cargo run --release --example inversion [PICTURE]
//!
//! For an output `y`, both methods look for the input `z` with little of
//!
//! ```text
//! alpha R(z) + mu l(G(z), y)
//! ```
//!
//! from the same start and with the same number of passes through the network. The picture shows, from left to right, the
//! clean picture, the noisy one, what the denoiser makes of it, and the inputs that the two methods find for that.

use proxlift::dataset::ImageSet;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::io::{Depth, Picture, write};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::lifting::{
    Batch, ByProx, Dense, GradientDescent, Inversion, InversionOptions, Inverted, Loss, Network, Regulariser,
    Rows, Rule, Trainer, Variation,
};
use proxlift::prox::{BoxClip, Identity, Relu};
use proxlift::solver::TotalVariation;
use proxlift::training::{Config, Descent, EpochRecord, Metric, Rate, Schedule, Session, Settings};
use proxlift::{Image, Result, engine, laws::random_field};

const SIDE: usize = 32;
const SIGMA: f32 = 0.1;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "inversion.png".into());
    println!("| network | regulariser | method | passes | objective | misfit | distance to the input |");
    println!("|---|---|---|---|---|---|---|");
    of_the_denoiser(&path)?;
    of_the_encoder()?;
    println!("\nThe misfit is l(G(z), y), the distance ||z - truth|| / ||truth||. Picture: {path}");
    Ok(())
}

fn of_the_denoiser(path: &str) -> Result<()> {
    let denoiser = trained_denoiser()?;
    let network = Network::from_denoiser(&denoiser.cast::<f64>(), SIDE, SIDE)?;
    let clean = dead_leaves(5, 1, SIDE, SIDE, Channels::Grey)?;
    let noisy = add_gaussian(&clean, SIGMA, 6, 0)?;
    let z = rows(noisy.data());
    let y = network.forward(&z).output().clone();

    let variation = Variation::new((1, SIDE, SIDE), TotalVariation::Isotropic)?;
    let free = ByProx(Identity);
    let mut found = Vec::new();
    for (name, regulariser, alpha) in
        [("none", &free as &dyn Regulariser<f64>, 0.0), ("total variation", &variation, 1e-4)]
    {
        let options =
            InversionOptions { alpha, tolerance: 0.0, passes: 400.0, ..InversionOptions::default() };
        let problem = Inversion::new(&network, &y, regulariser, options)?;
        for (method, inverted) in [("lifted", problem.lifted(&y)?), ("gradient", problem.descent(&y)?)] {
            report(("denoiser", name, method), &inverted, &z);
            found.push(inverted.z);
        }
    }
    let output = image(&y)?;
    montage(path, &[&clean, &noisy, &output, &image(&found[0])?, &image(&found[1])?])
}

/// An autoencoder of dense layers for patches of 8 x 8 pixels; what picture has the code of this one?
fn of_the_encoder() -> Result<()> {
    let (patch, hidden, code) = (64, 96, 40);
    let picture = dead_leaves(7, 0, 128, 128, Channels::Grey)?;
    let patches: Vec<f32> = (0..256)
        .flat_map(|i| picture.crop(i / 16 * 8..i / 16 * 8 + 8, i % 16 * 8..i % 16 * 8 + 8).data().to_vec())
        .collect();
    let x = Rows::new(patch, patches)?;
    let sizes = [patch, hidden, code, hidden, patch];
    let dense = |k: usize| dense(sizes[k], sizes[k + 1], k as u64);
    let autoencoder = Network::new(Loss::Squared).layer(dense(0)?, Relu).layer(dense(1)?, Identity);
    let mut autoencoder = autoencoder.layer(dense(2)?, Relu).output(dense(3)?)?;
    let rate = Rate { start: 3e-3, schedule: Schedule::Cosine };
    let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
    let mut trainer = GradientDescent::new(&autoencoder, Rule::Lifted { mu: 0.1 }, descent)?;
    for step in 0..600 {
        trainer.step(&mut autoencoder, Batch { z: &x, x: &x, indices: &[] }, step as f64 / 600.0)?;
    }

    let parts = |k: usize| autoencoder.layers()[k].parameters();
    let copy = |k: usize| {
        let (weights, bias) = (double(parts(k)[0]), double(parts(k)[1]));
        Dense::new(sizes[k], weights, bias)
    };
    let encoder = Network::new(Loss::Squared).layer(copy(0)?, Relu).output(copy(1)?)?;
    let truth = Rows::new(patch, double(&x.data()[..16 * patch]))?;
    let y = encoder.forward(&truth).output().clone();
    let bounds = ByProx(BoxClip::interval(vec![0.0], vec![1.0])?);
    let variation = Variation::new((1, 8, 8), TotalVariation::Isotropic)?;
    let start = Rows::new(patch, vec![0.5; 16 * patch])?;
    for (name, regulariser, alpha) in
        [("0 to 1", &bounds as &dyn Regulariser<f64>, 1.0), ("total variation", &variation, 1e-3)]
    {
        let options =
            InversionOptions { alpha, tolerance: 0.0, passes: 1000.0, ..InversionOptions::default() };
        let problem = Inversion::new(&encoder, &y, regulariser, options)?;
        for (method, inverted) in
            [("lifted", problem.lifted(&start)?), ("gradient", problem.descent(&start)?)]
        {
            report(("encoder", name, method), &inverted, &truth);
        }
    }
    Ok(())
}

/// Some seconds of training.
fn trained_denoiser() -> Result<proxlift::network::Network<f32>> {
    let settings = Settings { depth: Some(6), features: Some(8), epochs: Some(10), ..Settings::default() };
    let settings = Settings { count: Some(200), sigma: Some(f64::from(SIGMA)), ..settings };
    let config = Config::resolve(&settings)?;
    let patches = config.patches(ImageSet::embedded_train(50, 64, Channels::Grey, 0)?.into())?;
    let mut session = Session::new(&config, config.network()?, &patches)?;
    session.run(&*engine::standard(), &mut |_: &EpochRecord| ())?;
    Ok(session.network)
}

fn dense(inputs: usize, outputs: usize, seed: u64) -> Result<Dense<f32>> {
    let scale = (2.0 / inputs as f64).sqrt();
    let weights = random_field::<f64>(inputs * outputs, seed).iter().map(|w| (scale * w) as f32).collect();
    Dense::new(inputs, weights, vec![0.0; outputs])
}

fn report((network, regulariser, method): (&str, &str, &str), found: &Inverted<f64>, truth: &Rows<f64>) {
    let last = found.history[found.history.len() - 1];
    let square = |a: f64| a * a;
    let apart: f64 = found.z.data().iter().zip(truth.data()).map(|(a, b)| square(a - b)).sum();
    let distance = (apart / truth.data().iter().map(|b| square(*b)).sum::<f64>()).sqrt();
    let (passes, objective, misfit) = (last.passes, last.objective, last.misfit);
    println!(
        "| {network} | {regulariser} | {method} | {passes:.0} | {objective:.3e} | {misfit:.2e} | {distance:.4} |"
    );
}

fn double(values: &[f32]) -> Vec<f64> {
    values.iter().map(|v| f64::from(*v)).collect()
}

fn rows(values: &[f32]) -> Rows<f64> {
    Rows::new(values.len(), double(values)).expect("one sample")
}

fn image(rows: &Rows<f64>) -> Result<Image> {
    Image::new(1, SIDE, SIDE, rows.data().iter().map(|v| (*v as f32).clamp(0.0, 1.0)).collect())
}

fn montage(path: &str, images: &[&Image]) -> Result<()> {
    let mut all = Image::zeros(1, SIDE, images.len() * (SIDE + 2))?;
    images.iter().enumerate().for_each(|(i, image)| all.put((0, i * (SIDE + 2)), image));
    write(path, &Picture::new(all, Depth::Eight))
}
