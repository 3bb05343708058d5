//! The denoiser of the library: right at every noise level, for every kind of picture.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::Channels::{self, Grey, Rgb};
use proxlift::image::io::{Depth, Picture, Raster};
use proxlift::image::noise::add_gaussian;
use proxlift::model::{BuiltIn, Model, Provenance};
use proxlift::network::{Architecture, Network};
use proxlift::{Denoiser, Error, Image};
use std::ops::ControlFlow;
use std::sync::Arc;

fn leaves(channels: Channels, side: usize) -> Image {
    dead_leaves(11, 0, side, side, channels).unwrap()
}

fn model(channels: usize) -> Model {
    let architecture = Architecture { depth: 4, features: 6, kernel: 3, channels };
    let network = Network::glorot(architecture, 0.1, 1).unwrap();
    Model { network, sigma: 0.1, noise: Default::default(), provenance: Provenance::new() }
}

fn scaled(image: &Image, factor: f32) -> Image {
    let mut image = image.clone();
    image.data_mut().iter_mut().for_each(|v| *v *= factor);
    image
}

fn on(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn raster(image: &Image, depth: Depth) -> Raster {
    Raster::of_picture(&Picture::new(image.clone(), depth)).unwrap()
}

/// Built-in networks are trained for 25/255. At other levels they are right only if their thresholds follow: with
/// thresholds twice or half as large they fall behind, and so they do as they were trained.
#[test]
fn every_built_in_network_is_right_at_every_level() {
    let for_white_noise = [BuiltIn::Small, BuiltIn::Best];
    for (built_in, channels) in for_white_noise.into_iter().flat_map(|b| [(b, Grey), (b, Rgb)]) {
        let clean = leaves(channels, 128);
        for (level, gain, lead) in [(10.0, 2.5, 0.0), (25.0, 4.5, 0.5), (50.0, 6.5, 0.5), (75.0, 7.5, 0.5)] {
            let sigma = level / 255.0;
            let noisy = add_gaussian(&clean, sigma as f32, 1, 0).unwrap();
            let score = |image: &Image| psnr(&clean, image, Peak::ONE).unwrap();
            let by = |denoiser: Denoiser| score(&denoiser.denoise(&noisy).unwrap());
            let (before, given) = (score(&noisy), by(Denoiser::from(built_in).sigma(sigma)));
            let [half, double] = [0.5, 2.0].map(|wrong| by(Denoiser::from(built_in).sigma(wrong * sigma)));
            let (estimated, trained) = (by(built_in.into()), by(Denoiser::from(built_in).as_trained()));
            let what = format!(
                "{built_in:?} {channels:?} at {level}/255: noisy {before:.2}, given {given:.2}, estimated \
                 {estimated:.2}, half {half:.2}, double {double:.2}, as trained {trained:.2} dB"
            );
            println!("{what}");
            assert!(given > before + gain && (estimated - given).abs() < 0.3, "{what}");
            assert!(given > half + lead && given > double + lead, "{what}");
            if level == 25.0 {
                assert_eq!(given, trained, "{what}");
            } else {
                assert!(given > trained + 2.0, "{what}");
            }
        }
    }
}

#[test]
fn a_picture_on_another_scale_gives_the_result_on_that_scale() {
    let noisy = add_gaussian(&leaves(Grey, 96), 0.1, 1, 0).unwrap();
    for denoiser in [Denoiser::best(), Denoiser::total_variation(), model(1).into()] {
        let (once, much) =
            (denoiser.denoise(&noisy).unwrap(), denoiser.denoise(&scaled(&noisy, 4096.0)).unwrap());
        let far = |(a, b): (&f32, &f32)| (a - b / 4096.0).abs() > 1e-4;
        assert!(!once.data().iter().zip(much.data()).any(far));
        assert_ne!(once, noisy);
    }
}

#[test]
fn a_grey_network_takes_colour_channel_by_channel() {
    let picture = leaves(Rgb, 40);
    let denoiser = Denoiser::from(model(1)).as_trained();
    let whole = denoiser.denoise(&picture).unwrap();
    for c in 0..3 {
        let plane = Image::new(1, 40, 40, picture.plane(c).to_vec()).unwrap();
        assert_eq!(denoiser.denoise(&plane).unwrap().data(), whole.plane(c));
    }
    assert_eq!((denoiser.channels(), Denoiser::best().channels()), (Some(Grey), None));
    let refused = Denoiser::from(model(3)).denoise(&leaves(Grey, 40)).unwrap_err().to_string();
    assert!(refused.contains("grey") && refused.contains("colour"), "{refused}");
}

/// The activations of the built-in networks keep a slope beyond their last knot, which would change the picture even
/// with all knots at zero.
#[test]
fn no_strength_or_no_noise_changes_nothing() {
    let picture = leaves(Rgb, 40);
    let kinds = [Denoiser::best(), BuiltIn::Small.into(), model(3).into(), Denoiser::total_variation()];
    for denoiser in kinds {
        assert_eq!(denoiser.clone().strength(0.0).denoise(&picture).unwrap(), picture);
        assert_eq!(denoiser.clone().sigma(0.0).denoise(&picture).unwrap(), picture);
        assert_ne!(denoiser.sigma(0.1).denoise(&picture).unwrap(), picture);
    }
}

#[test]
fn the_noise_that_a_raster_was_denoised_for_is_told() {
    let noisy = add_gaussian(&leaves(Grey, 96), 0.1, 1, 0).unwrap();
    let found = |denoiser: &Denoiser, image: &Image, depth| {
        denoiser.denoise_raster(&mut raster(image, depth), &mut on).unwrap()
    };
    let best = Denoiser::best();
    let noise = found(&best, &noisy, Depth::Eight).unwrap();
    assert!(noise.model.is_some() && !noise.faint && (noise.sigma - 0.1).abs() < 0.01, "{noise:?}");
    assert!(noise.to_string().contains("/255)"), "{noise}");
    let noise = found(&best, &scaled(&noisy, 1000.0), Depth::Float).unwrap();
    assert!(noise.model.is_some() && !noise.faint && (noise.sigma - 100.0).abs() < 10.0, "{noise:?}");
    assert!(!noise.to_string().contains("255"), "{noise}");
    let flat = Image::new(1, 40, 40, vec![0.5; 1600]).unwrap();
    assert!(found(&best, &flat, Depth::Eight).unwrap().faint);
    let given = found(&best.clone().sigma(0.2), &noisy, Depth::Eight).unwrap();
    assert!(given.sigma == 0.2 && given.model.is_none());
    assert_eq!(found(&best.as_trained(), &noisy, Depth::Eight), None);
    assert_eq!(found(&Denoiser::total_variation_with(0.1), &noisy, Depth::Eight), None);
}

#[test]
fn a_model_that_does_not_know_its_noise_is_used_as_it_is_or_refused() {
    let noisy = add_gaussian(&leaves(Grey, 40), 0.1, 1, 0).unwrap();
    let (known, network) = (model(1), model(1).network);
    let unknown = Model { sigma: 0.0, ..model(1) };
    let expected = Denoiser::from(known).as_trained().denoise(&noisy).unwrap();
    assert_eq!(Denoiser::from(unknown.clone()).denoise(&noisy).unwrap(), expected);
    assert_eq!(Denoiser::from(network).denoise(&noisy).unwrap(), expected);
    let refused = Denoiser::from(unknown).sigma(0.1).denoise(&noisy).unwrap_err().to_string();
    assert!(refused.contains("sigma is 0") && refused.contains("strength"), "{refused}");
}

#[test]
fn numbers_without_meaning_are_refused() {
    let picture = leaves(Grey, 20);
    let refused = |denoiser: Denoiser| denoiser.denoise(&picture).unwrap_err().to_string();
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(refused(Denoiser::best().sigma(bad)).contains("sigma"));
        assert!(refused(Denoiser::best().strength(bad)).contains("strength"));
        assert!(refused(Denoiser::total_variation_with(bad)).contains("lambda"));
    }
    assert!(refused(Denoiser::best().sigma(1e39)).contains("more than"));
    let raster = |depth| Denoiser::best().sigma(25.0).prepare(&raster(&picture, depth)).map(drop);
    assert!(raster(Depth::Eight).unwrap_err().to_string().contains("25/255"));
    assert!(raster(Depth::Float).is_ok(), "a float picture may have any scale");
    let mut bad = picture.clone();
    bad.data_mut()[7] = f32::NAN;
    assert!(Denoiser::best().denoise(&bad).unwrap_err().to_string().contains("row 0, column 7"));
}

#[test]
fn a_network_that_gives_no_number_is_told() {
    let mut network = model(1).network;
    network.theta.iter_mut().for_each(|theta| theta.weights_mut().fill(1e38));
    let refused = Denoiser::from(network).denoise(&leaves(Grey, 20)).unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");
}

#[test]
fn whoever_watches_may_end_the_work() {
    for denoiser in [Denoiser::from(model(1)), Denoiser::total_variation()] {
        let before = raster(&leaves(Grey, 40), Depth::Eight);
        let mut after = before.clone();
        let ended = denoiser.denoise_raster(&mut after, &mut |_, _| ControlFlow::Break(()));
        assert!(matches!(ended, Err(Error::Cancelled)));
        assert_eq!(before, after);
    }
}

#[test]
fn any_engine_will_do_and_may_be_shared() {
    let noisy = add_gaussian(&leaves(Rgb, 40), 0.1, 1, 0).unwrap();
    let slow: Arc<dyn Engine<f32>> = Arc::new(Reference);
    let shared: Arc<dyn Engine<f32>> = Arc::new(Cpu::new());
    for built_in in BuiltIn::ALL {
        let by = |engine: &Arc<dyn Engine<f32>>| {
            Denoiser::from(built_in).engine(engine.clone()).denoise(&noisy).unwrap()
        };
        let (slow, fast) = (by(&slow), by(&shared));
        assert!(slow.data().iter().zip(fast.data()).all(|(a, b)| (a - b).abs() < 1e-4), "{built_in:?}");
        assert_eq!(fast, Denoiser::from(built_in).denoise(&noisy).unwrap());
    }
}

#[test]
fn several_pictures_have_the_results_of_each() {
    let noisy: Vec<Image> = (0..5)
        .map(|i| add_gaussian(&leaves([Grey, Rgb][i % 2], 30 + i), 0.1, 1, i as u64).unwrap())
        .collect();
    let denoiser = Denoiser::from(BuiltIn::Small).clipped(true);
    let together = denoiser.denoise_all(&noisy).unwrap();
    for (one, together) in noisy.iter().zip(&together) {
        assert_eq!(denoiser.denoise(one).unwrap(), *together);
        assert!(together.data().iter().all(|v| (0.0..=1.0).contains(v)));
    }
}

#[test]
fn levels_are_told_in_few_digits() {
    let told = |sigma: f64, depth: Depth| {
        let denoiser = Denoiser::total_variation().sigma(sigma);
        denoiser.prepare(&raster(&leaves(Grey, 16), depth)).unwrap().noise.unwrap().to_string()
    };
    for (sigma, text) in [
        (0.0, "0"),
        (0.0984, "0.098"),
        (25.1, "25"),
        (0.00123, "0.0012"),
        (5.04, "5.0"),
        (98.4, "98"),
        (1234.5, "1234"),
        (1e-9, "1.0e-9"),
    ] {
        assert_eq!(told(sigma, Depth::Float), format!("sigma {text}"));
    }
    assert_eq!(told(0.0984, Depth::Eight), "sigma 0.098 (25/255)");
}
