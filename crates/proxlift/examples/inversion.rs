//! What was the denoiser given? An input that explains its output, found by lifted inversion.
//!
//!     cargo run --release --example inversion [PICTURE]
//!
//! A small denoiser is trained for some seconds and shown a noisy picture; from its output `y` alone, the input `z` with little
//! of `alpha TV(z) + 1/2 ||G(z) - y||^2` is sought. The picture shows, from left to right, the clean picture, the noisy one, what
//! the denoiser makes of it, and the input that was found. `proxlift reproduce --only lifting` compares lifted inversion with
//! gradients through the network.

use proxlift::dataset::ImageSet;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::io::{Depth, Picture, write};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::lifting::{Inversion, InversionOptions, Network, Rows, Variation};
use proxlift::solver::TotalVariation;
use proxlift::training::{Config, EpochRecord, Session, Settings};
use proxlift::{Image, Result, engine};

const SIDE: usize = 32;
const SIGMA: f32 = 0.1;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "inversion.png".into());
    let network = Network::from_denoiser(&trained_denoiser()?.cast::<f64>(), SIDE, SIDE)?;
    let clean = dead_leaves(5, 1, SIDE, SIDE, Channels::Grey)?;
    let noisy = add_gaussian(&clean, SIGMA, 6, 0)?;
    let input = Rows::new(SIDE * SIDE, noisy.data().iter().map(|v| f64::from(*v)).collect())?;
    let y = network.forward(&input).output().clone();

    let variation = Variation::new((1, SIDE, SIDE), TotalVariation::Isotropic)?;
    let options = InversionOptions { alpha: 1e-4, passes: 400.0, ..InversionOptions::default() };
    let found = Inversion::new(&network, &y, &variation, options)?.lifted(&y)?;
    for record in found.history.iter().step_by(20).chain(found.history.last()) {
        println!("{:6.1} passes: misfit {:.2e}", record.passes, record.misfit);
    }
    let (output, found) = (image(&y)?, image(&found.z)?);
    let mut all = Image::zeros(1, SIDE, 4 * (SIDE + 2))?;
    for (i, one) in [&clean, &noisy, &output, &found].into_iter().enumerate() {
        all.put((0, i * (SIDE + 2)), one);
    }
    write(&path, &Picture::new(all, Depth::Eight))
}

fn trained_denoiser() -> Result<proxlift::network::Network<f32>> {
    let settings = Settings { depth: Some(6), features: Some(8), epochs: Some(10), ..Settings::default() };
    let settings = Settings { count: Some(200), sigma: Some(f64::from(SIGMA)), ..settings };
    let config = Config::resolve(&settings)?;
    let patches = config.patches(ImageSet::embedded_train(50, 64, Channels::Grey, 0)?.into())?;
    let mut session = Session::new(&config, config.network()?, &patches)?;
    session.run(&*engine::standard(), &mut |_: &EpochRecord| ())?;
    Ok(session.network)
}

fn image(rows: &Rows<f64>) -> Result<Image> {
    Image::new(1, SIDE, SIDE, rows.data().iter().map(|v| (*v as f32).clamp(0.0, 1.0)).collect())
}
