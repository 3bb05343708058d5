//! What a denoiser finds in a picture and does about it: white noise, counts, cameras, nothing.

use proxlift::Denoiser;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::dataset::{ImageSet, Pairs, PatchNoise, PatchSpec, Patches, Visit};
use proxlift::denoiser::{Counts, Standard};
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::io::{self, Depth, Picture, Raster};
use proxlift::image::noise::{CameraNoise, Demosaicing, add_gaussian};
use proxlift::image::{Channels, Image, enlarge};
use proxlift::model::BuiltIn;
use proxlift::noise::{NoiseKind, NoiseModel};
use proxlift::random::seeded;
use rand_distr::{Distribution, Poisson};
use std::ops::ControlFlow;
use std::sync::Arc;

fn leaves(channels: Channels) -> Image {
    dead_leaves(5, 0, 192, 192, channels).unwrap()
}

/// Poisson counts of a picture with this peak, and what they are without noise.
fn counts(peak: f32) -> (Image, Image) {
    let (mut clean, mut rng) = (leaves(Channels::Grey), seeded(4));
    clean.data_mut().iter_mut().for_each(|v| *v *= peak);
    let mut noisy = clean.clone();
    for v in noisy.data_mut() {
        *v = Poisson::new(f64::from(*v) + 1e-9).unwrap().sample(&mut rng) as f32;
    }
    (clean, noisy)
}

/// A photograph with smooth noise, and the same without: not as sharp as leaves are.
fn photograph() -> (Image, Image) {
    let mut clean = dead_leaves(7, 0, 256, 256, Channels::Rgb).unwrap();
    clean.data_mut().chunks_exact_mut(256 * 256).for_each(|plane| enlarge(plane, (256, 256), 2.2));
    let camera = CameraNoise {
        gain: 0.02,
        read_noise: 0.02,
        balance: [1.8, 1.0, 1.6],
        demosaicing: Demosaicing::GradientCorrected,
        smoothing: [1.0, 2.0],
        colour: 0.5,
        jpeg: Some((95, false)),
    };
    let noisy = camera.photograph(&mut seeded(3), &clean);
    (clean, noisy)
}

#[test]
fn the_kind_of_noise_is_found() {
    let white = add_gaussian(&leaves(Channels::Rgb), 0.08, 1, 0).unwrap();
    assert_eq!(NoiseModel::estimate(&white, 1.0).kind, NoiseKind::Gaussian);
    let (_, noisy) = counts(60.0);
    let most = f64::from(noisy.data().iter().copied().fold(0.0, f32::max));
    let found = NoiseModel::estimate(&noisy, most);
    assert_eq!(found.kind, NoiseKind::Poisson);
    assert!((found.variances[0].b - 1.0).abs() < 0.15, "{found:?}");
    let camera = NoiseModel::estimate(&photograph().1, 1.0);
    assert_eq!(camera.kind, NoiseKind::Camera, "{camera:?}");
    assert!(camera.spectrum.iter().all(|levels| levels[2] > 2.0 * levels[11]), "{camera:?}");
}

#[test]
fn counts_that_are_found_are_denoised_nearly_as_well_as_known_ones() {
    for peak in [10.0, 100.0] {
        let (clean, noisy) = counts(peak);
        let score = |image: &Image| psnr(&clean, image, Peak::Value(peak.into())).unwrap();
        let known = Counts { gain: Some(1.0), offset: Some(0.0), read_noise: Some(0.0) };
        let known = Denoiser::best().noise(NoiseKind::Poisson).counts(known).denoise(&noisy).unwrap();
        let found = Denoiser::best().denoise(&noisy).unwrap();
        let white = Denoiser::best().noise(NoiseKind::Gaussian).denoise(&noisy).unwrap();
        assert!(score(&found) > score(&known) - 0.3, "{peak}: {} and {}", score(&found), score(&known));
        assert!(score(&known) > score(&noisy) + 4.0, "{peak}: {}", score(&known));
        assert!(score(&known) > score(&white), "{peak}: {} and {}", score(&known), score(&white));
    }
}

#[test]
fn a_photograph_gets_the_model_for_photographs_and_strength_acts_on_it() {
    let (clean, noisy) = photograph();
    let raster = Raster::of_picture(&Picture::new(noisy.clone(), Depth::Eight)).unwrap();
    let best = Denoiser::best();
    assert_eq!(best.prepare(&raster).unwrap().built_in, Some(BuiltIn::Photo));
    let as_white = best.clone().noise(NoiseKind::Gaussian);
    assert_eq!(as_white.prepare(&raster).unwrap().built_in, Some(BuiltIn::Best));
    let score = |image: &Image| psnr(&clean, image, Peak::ONE).unwrap();
    let denoised = best.denoise(&noisy).unwrap();
    assert!(score(&denoised) > score(&noisy) + 0.5, "{} and {}", score(&denoised), score(&noisy));
    assert!(score(&denoised) > score(&as_white.denoise(&noisy).unwrap()) + 0.5);
    let change = |strength: f64| {
        let result = best.clone().strength(strength).denoise(&noisy).unwrap();
        result.data().iter().zip(noisy.data()).map(|(a, b)| (a - b).abs()).sum::<f32>()
    };
    assert!(change(0.0) == 0.0 && change(0.5) < 0.9 * change(1.0) && change(2.0) > 1.05 * change(1.0));
}

#[test]
fn eight_bits_without_visible_noise_stay_as_they_are() {
    let clean = Picture::new(leaves(Channels::Rgb), Depth::Eight);
    let mut raster = Raster::of_picture(&clean).unwrap();
    let before = raster.clone();
    let noise =
        Denoiser::best().denoise_raster(&mut raster, &mut |_, _| ControlFlow::Continue(())).unwrap().unwrap();
    assert!(noise.faint && raster == before, "{noise}");
}

#[test]
fn a_level_for_counts_is_refused() {
    let wrong = Denoiser::best().noise(NoiseKind::Poisson).sigma(0.1).check().unwrap_err().to_string();
    assert!(wrong.contains("gain"), "{wrong}");
}

#[test]
fn pictures_are_brought_to_the_level_of_the_training() {
    let clean = leaves(Channels::Grey);
    let noisy = add_gaussian(&clean, 0.05, 1, 0).unwrap();
    let standard = Standard::of(&noisy, 0.1).unwrap();
    let [z, x] = [standard.noisy(noisy), standard.partner(clean.clone())];
    let contrast = x.data()[0] / clean.data()[0];
    assert!((1.5..2.5).contains(&contrast), "about twice: {contrast}");
    assert!(x.data().iter().zip(clean.data()).all(|(x, clean)| (x - contrast * clean).abs() < 1e-5));
    let squares: f32 = z.data().iter().zip(x.data()).map(|(z, x)| (z - x) * (z - x)).sum();
    assert!(((squares / z.data().len() as f32).sqrt() / (0.05 * contrast) - 1.0).abs() < 0.02);
    // Counts: the mean over many noisy versions is where the clean partner comes to lie.
    let (clean, noisy) = counts(8.0);
    let standard = Standard::of(&noisy, 0.1).unwrap();
    let mean =
        |image: &Image| image.data().iter().map(|v| f64::from(*v)).sum::<f64>() / image.data().len() as f64;
    let (z, x) = (mean(&standard.noisy(noisy)), mean(&standard.partner(clean)));
    assert!((z - x).abs() < 0.02 * 0.1, "{z} and {x}");
}

fn spec(noise: PatchNoise) -> PatchSpec {
    PatchSpec { size: 32, count: 40, augment: true, sigma: 0.1, levels: None, noise, seed: 3 }
}

#[test]
fn patches_of_pairs_lie_at_the_same_places() {
    let clean = ImageSet::from_images(vec![leaves(Channels::Grey)], Channels::Grey).unwrap();
    let noisy: Vec<Image> =
        clean.images().iter().map(|image| add_gaussian(image, 0.01, 1, 0).unwrap()).collect();
    let noisy = ImageSet::from_images(noisy, Channels::Grey).unwrap();
    let patches = Patches::of_pairs(Pairs { noisy, partners: clean }, spec(PatchNoise::Own)).unwrap();
    let (mut x, mut z) = (vec![0.0; 4 * 32 * 32], vec![0.0; 4 * 32 * 32]);
    patches.fill(&[0, 7, 9, 3], Visit { place: 2, noise: 5 }, &mut x, &mut z);
    assert!(x.iter().zip(&z).all(|(x, z)| (x - z).abs() < 0.06));
    assert!(x != z);
}

#[test]
fn partners_belong_together_by_name_whatever_their_extensions() {
    let folder = tempfile::tempdir().unwrap();
    let grey = |value: f32| Picture::new(Image::new(1, 9, 9, vec![value; 81]).unwrap(), Depth::Sixteen);
    // As whole names, `a.q.tif` comes before `a.tif`, but `a.png` before `a.q.png`.
    for (name, value) in
        [("noisy/a.png", 0.2), ("noisy/a.q.png", 0.7), ("clean/a.tif", 0.2), ("clean/a.q.tif", 0.7)]
    {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        io::write(path, &grey(value)).unwrap();
    }
    let [noisy, clean] = ["noisy", "clean"].map(|name| folder.path().join(name));
    let pairs = Pairs::from_folders(noisy, clean, Channels::Grey).unwrap();
    let values = |set: &ImageSet| set.images().iter().map(|image| image.data()[0]).collect::<Vec<_>>();
    assert_eq!(values(&pairs.noisy), values(&pairs.partners));
}

#[test]
fn noisy_pictures_alone_give_two_versions_with_independent_noise() {
    // Of a flat picture all that is left is noise.
    let flat = Image::new(1, 64, 64, vec![0.5; 64 * 64]).unwrap();
    let noisy = add_gaussian(&flat, 0.1, 1, 0).unwrap();
    let set = Arc::new(ImageSet::from_images(vec![noisy], Channels::Grey).unwrap());
    let patches = Patches::new(set, PatchSpec { size: 64, ..spec(PatchNoise::Own) }).unwrap();
    let (mut xs, mut zs) = (Vec::new(), Vec::new());
    for noise in 0..20 {
        let (mut x, mut z) = (vec![0.0; 64 * 64], vec![0.0; 64 * 64]);
        patches.fill(&[0], Visit { place: 0, noise }, &mut x, &mut z);
        xs.append(&mut x);
        zs.append(&mut z);
    }
    let mean = |v: &[f32]| v.iter().map(|v| f64::from(*v)).sum::<f64>() / v.len() as f64;
    let (mx, mz) = (mean(&xs), mean(&zs));
    let covariance = |a: &[f32], ma: f64, b: &[f32], mb: f64| {
        a.iter().zip(b).map(|(a, b)| (f64::from(*a) - ma) * (f64::from(*b) - mb)).sum::<f64>()
            / a.len() as f64
    };
    let (own, both) = (covariance(&zs, mz, &zs, mz), covariance(&xs, mx, &zs, mz));
    assert!(
        (own.sqrt() / 0.1 - 1.0).abs() < 0.03,
        "the network sees the level that it is trained for: {own}"
    );
    assert!(both.abs() < 0.05 * own, "{both} and {own}");
    assert!((mx - mz).abs() < 0.01);
}
