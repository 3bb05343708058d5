//! Pictures in parts, with a level for every pixel, and gradients through them.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::denoiser::{Pixels, Settled, sample_rows};
use proxlift::image::{Channels, Image, noise::add_gaussian};
use proxlift::model::BuiltIn;
use proxlift::noise::NoiseKind;
use proxlift::solver::{TotalVariation, TvParams, watched_total_variation};
use proxlift::{Denoiser, Error, Result};
use std::ops::ControlFlow;

fn noisy(channels: Channels, (height, width): (usize, usize)) -> Image {
    add_gaussian(&dead_leaves(3, 0, height, width, channels).unwrap(), 0.1, 1, 0).unwrap()
}

fn collected(
    like: &Image,
    run: impl FnOnce(&mut dyn FnMut((usize, usize), &Image)) -> Result<()>,
) -> Result<Image> {
    let mut result = like.clone();
    run(&mut |at: (usize, usize), tile: &Image| result.put(at, tile))?;
    Ok(result)
}

fn with_map(denoiser: &Denoiser, picture: &Image, map: &Image) -> Result<Image> {
    let go = &mut |_: usize, _: usize| ControlFlow::Continue(());
    collected(picture, |put| denoiser.denoise_with_map(picture, map, put, go))
}

fn settled(denoiser: &Denoiser, part: &Image, settled: &Settled) -> Image {
    let go = &mut |_: usize, _: usize| ControlFlow::Continue(());
    let ready = denoiser.prepare_settled(part.kind(), settled).unwrap();
    collected(part, |put| ready.denoise_pixels(part, put, go)).unwrap()
}

#[test]
fn a_part_with_all_that_it_sees_comes_out_as_in_the_whole() {
    for channels in [Channels::Grey, Channels::Rgb] {
        let mut counts = noisy(channels, (110, 80));
        counts.data_mut().iter_mut().for_each(|v| *v = (40.0 * v.max(0.0)).round());
        for (denoiser, picture) in [
            (Denoiser::from(BuiltIn::Small), noisy(channels, (110, 80))),
            (Denoiser::from(BuiltIn::Small).noise(NoiseKind::Camera), noisy(channels, (110, 80))),
            (Denoiser::from(BuiltIn::Small).noise(NoiseKind::Poisson), counts),
        ] {
            let whole = denoiser.denoise(&picture).unwrap();
            let numbers = denoiser.settle(&picture).unwrap();
            let radius = BuiltIn::Small.model(channels).network.architecture().receptive_radius();
            // Parts begin at an even row of what the layers see, since rows are computed in pairs.
            let (top, bottom) = (4, 4 + 2 * radius + 20);
            let part = settled(&denoiser, &picture.crop(top..bottom, 0..80), &numbers);
            let inside = (top + radius)..(bottom - radius);
            assert_eq!(
                part.crop(radius..radius + inside.len(), 0..80).data(),
                whole.crop(inside, 0..80).data()
            );
        }
    }
}

#[test]
fn all_rows_of_small_pictures_are_looked_at_and_bands_of_large_ones() {
    assert!(sample_rows(500, 500).iter().eq(&[0..500; 1]));
    let bands = sample_rows(8000, 4096);
    assert!(bands.iter().all(|band| band.len() == 64 && band.end <= 8000));
    assert!(bands.len() == 16 && bands.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

#[test]
fn a_map_of_one_level_is_that_level_unless_it_is_a_part() {
    let picture = noisy(Channels::Rgb, (40, 36));
    let map = Image::new(1, 40, 36, vec![0.11; 40 * 36]).unwrap();
    let denoiser = Denoiser::from(BuiltIn::Small);
    let given = denoiser.clone().sigma(0.11f32.into()).denoise(&picture).unwrap();
    assert_eq!(with_map(&denoiser, &picture, &map).unwrap(), given);
    let part = with_map(&denoiser.clone().part_of_map(true), &picture, &map).unwrap();
    let mut other = map;
    other.data_mut()[0] = 0.2;
    let blended = with_map(&denoiser, &picture, &other).unwrap();
    assert_ne!(part, given);
    assert_eq!(part.data()[1..40 * 36], blended.data()[1..40 * 36]);
    let error = |a: &Image| a.data().iter().zip(given.data()).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
    assert!((error(&part) / (3 * 40 * 36) as f32).sqrt() < 1e-3);
}

#[test]
fn levels_of_the_grid_are_exact_and_zero_changes_nothing() {
    let picture = noisy(Channels::Grey, (32, 48));
    let levels = [0.0f32, 0.0625, 0.125, 0.25];
    let map = Image::new(1, 32, 48, (0..32 * 48).map(|i| levels[i % 48 / 12]).collect()).unwrap();
    for denoiser in [Denoiser::from(BuiltIn::Small), Denoiser::total_variation()] {
        let result = with_map(&denoiser, &picture, &map).unwrap();
        for (i, &level) in levels.iter().enumerate() {
            let expected = denoiser.clone().sigma(level.into()).denoise(&picture).unwrap();
            let columns = 12 * i..12 * (i + 1);
            assert_eq!(result.crop(0..32, columns.clone()), expected.crop(0..32, columns), "{level}");
        }
    }
}

#[test]
fn wrong_maps_are_refused() {
    let (picture, denoiser) = (noisy(Channels::Grey, (16, 16)), Denoiser::from(BuiltIn::Small));
    let refused = |map: &Image| with_map(&denoiser, &picture, map).unwrap_err().to_string();
    assert!(refused(&Image::zeros(1, 16, 15).unwrap()).contains("15 x 16"));
    assert!(refused(&Image::zeros(3, 16, 16).unwrap()).contains("map"));
    assert!(refused(&Image::new(1, 16, 16, vec![-0.1; 256]).unwrap()).contains("-0.1"));
    assert!(refused(&Image::new(1, 16, 16, vec![f32::NAN; 256]).unwrap()).contains("NaN"));
}

#[test]
fn gradients_go_back_through_border_and_channels() {
    for (channels, model) in [
        (Channels::Grey, BuiltIn::Small.model(Channels::Grey).clone()),
        (Channels::Rgb, BuiltIn::Small.model(Channels::Rgb).clone()),
        // Channel by channel.
        (Channels::Rgb, BuiltIn::Small.model(Channels::Grey).clone()),
    ] {
        let denoiser = Denoiser::from(model).sigma(0.1);
        // Smaller than the border, too.
        for size in [(18, 15), (3, 5)] {
            let picture = noisy(channels, size);
            let g = noisy(channels, (size.0, size.1));
            let (estimate, gradient) = denoiser.pull_back(&picture, &g).unwrap();
            let whole = denoiser.denoise(&picture).unwrap();
            let close =
                |a: &Image, b: &Image| a.data().iter().zip(b.data()).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(close(&estimate, &whole));
            let dot = |a: &Image, b: &Image| -> f64 {
                a.data().iter().zip(b.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            // <g, D(z + h d) - D(z - h d)> / 2h = <J* g, d>
            let (mut d, mut above, mut below) = (noisy(channels, size), picture.clone(), picture.clone());
            d.data_mut().iter_mut().enumerate().for_each(|(i, v)| *v = ((i * 37 % 11) as f32 - 5.0) / 5.0);
            let h = 1e-3;
            above.data_mut().iter_mut().zip(d.data()).for_each(|(v, d)| *v += h * d);
            below.data_mut().iter_mut().zip(d.data()).for_each(|(v, d)| *v -= h * d);
            let change =
                dot(&g, &denoiser.denoise(&above).unwrap()) - dot(&g, &denoiser.denoise(&below).unwrap());
            let (measured, told) = (change / (2.0 * f64::from(h)), dot(&gradient, &d));
            let scale = dot(&g, &g).sqrt() * dot(&d, &d).sqrt();
            assert!((measured - told).abs() < 0.02 * scale, "{channels:?} {size:?}: {measured} and {told}");
        }
    }
    let picture = noisy(Channels::Grey, (8, 8));
    let (estimate, gradient) = Denoiser::best().sigma(0.0).pull_back(&picture, &picture).unwrap();
    assert!(estimate == picture && gradient == picture);
    for denoiser in [Denoiser::total_variation().sigma(0.1), Denoiser::best().sigma(0.1).clipped(true)] {
        assert!(denoiser.pull_back(&picture, &picture).unwrap_err().to_string().contains("derivative"));
    }
}

#[test]
fn folding_is_the_adjoint_of_mirroring() {
    let (x, y) = (noisy(Channels::Rgb, (5, 7)), noisy(Channels::Rgb, (5 + 16, 7 + 16)));
    let dot = |a: &Image, b: &Image| -> f64 {
        a.data().iter().zip(b.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let (left, right) = (dot(&x.mirrored((8, 8), (8, 8)), &y), dot(&x, &y.folded((8, 8), (8, 8))));
    assert!((left - right).abs() < 1e-4 * left.abs());
}

#[test]
fn whoever_watches_can_end_the_work() {
    let picture = noisy(Channels::Grey, (40, 40));
    let stop = &mut |_: usize, _: usize| ControlFlow::Break(());
    for denoiser in [Denoiser::best().sigma(0.1), Denoiser::total_variation_with(0.1)] {
        let ended = collected(&picture, |put| denoiser.denoise_pixels(&picture, put, stop).map(drop));
        assert!(matches!(ended, Err(Error::Cancelled)));
    }
    let (mut seen, params) = (0, TvParams::default());
    let watch = &mut |done| {
        seen = done;
        if done == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let kind = TotalVariation::Isotropic;
    let ended = watched_total_variation(picture.data(), picture.shape(), 1.0, kind, &params, watch);
    assert!(matches!(ended, Err(Error::Cancelled)) && seen == 7);
}

#[test]
fn values_that_are_not_finite_are_named_below_the_first_band_too() {
    let mut picture = Image::zeros(1, 200, 3).unwrap();
    picture.data_mut()[130 * 3 + 2] = f32::NAN;
    let said = Pixels::check_finite(&picture).unwrap_err().to_string();
    assert!(said.contains("row 130, column 2"), "{said}");
}

#[test]
fn a_blank_picture_of_counts_stays() {
    let blank = Image::zeros(1, 64, 64).unwrap();
    for kind in [NoiseKind::Poisson, NoiseKind::PoissonGaussian] {
        assert_eq!(Denoiser::best().noise(kind).denoise(&blank).unwrap(), blank);
    }
}
