//! The noise level that is found in an image, against the one that was put in.
#![allow(missing_docs)]

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::noise::add_gaussian;
use proxlift::image::{Channels, Image};
use proxlift::noise::white_level as level;

fn leaves(channels: Channels, index: u64) -> Image {
    dead_leaves(1, index, 200, 240, channels).unwrap()
}

fn map(image: &Image, f: impl Fn(f32) -> f32) -> Image {
    let (channels, height, width) = image.shape();
    Image::new(channels, height, width, image.data().iter().map(|&v| f(v)).collect()).unwrap()
}

/// As a file with this many levels holds it.
fn stored(image: &Image, levels: f32) -> Image {
    map(image, |v| (v.clamp(0.0, 1.0) * levels).round() / levels)
}

fn flat(value: f32, height: usize, width: usize) -> Image {
    Image::new(1, height, width, vec![value; height * width]).unwrap()
}

fn assert_close(found: f64, sigma: f32, tolerance: f64, what: &str) {
    let error = found / f64::from(sigma) - 1.0;
    assert!(error.abs() < tolerance, "{what}: {found:.4} for {sigma} ({:+.1} %)", 100.0 * error);
}

#[test]
fn every_level_is_found_in_grey_and_colour_at_every_depth() {
    for channels in [Channels::Grey, Channels::Rgb] {
        for (index, sigma) in [0.02, 0.05, 0.1, 0.2, 0.3].into_iter().enumerate() {
            let noisy = add_gaussian(&leaves(channels, index as u64), sigma, 2, index as u64).unwrap();
            assert_close(level(&noisy), sigma, 0.08, &format!("{channels:?}, float"));
            for levels in [255.0, 65_535.0] {
                let found = level(&stored(&noisy, levels));
                assert_close(found, sigma, 0.1, &format!("{channels:?}, {levels} levels"));
            }
        }
    }
}

#[test]
fn the_scale_of_the_image_is_that_of_the_level() {
    let noisy = add_gaussian(&leaves(Channels::Grey, 0), 0.1, 2, 0).unwrap();
    let counts = map(&noisy, |v| 4096.0 * v - 700.0);
    assert_close(level(&counts) / 4096.0, level(&noisy) as f32, 1e-3, "counts");
}

#[test]
fn a_clean_image_has_little_and_a_flat_one_none() {
    for channels in [Channels::Grey, Channels::Rgb] {
        for index in 0..4 {
            let clean = leaves(channels, index);
            assert!(level(&clean) < 0.012, "{}", level(&clean));
            assert!(level(&stored(&clean, 255.0)) < 0.012);
        }
    }
    for value in [0.0, 0.3, 1.0, -7.0] {
        assert_eq!(level(&flat(value, 40, 50)), 0.0);
    }
}

#[test]
fn tiny_images_get_a_sensible_guess() {
    for (height, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (7, 5), (5, 7), (1, 40), (40, 1), (8, 8)]
    {
        assert_eq!(level(&flat(0.5, height, width)), 0.0);
        let guesses = (0..50).map(|i| level(&add_gaussian(&flat(0.5, height, width), 0.1, 3, i).unwrap()));
        let guess = (guesses.map(|g| g * g).sum::<f64>() / 50.0).sqrt();
        match height * width {
            1 => assert_eq!(guess, 0.0),
            // A single block: the correction for the median is rough.
            2..9 => assert!((0.165..0.19).contains(&guess), "{height} x {width}: {guess:.4}"),
            _ => assert_close(guess, 0.1, 0.16, &format!("{height} x {width}")),
        }
    }
}

#[test]
fn noise_that_was_clipped_away_does_not_count() {
    // Mostly black, mostly white: half of the noise is gone in most places, all of it in some.
    let clean = leaves(Channels::Grey, 1);
    for sigma in [0.03, 0.1] {
        for (what, contrast) in [("dark", 0.0), ("white", 0.7)] {
            let extreme = map(&clean, |v| contrast + 0.3 * v);
            let found = level(&stored(&add_gaussian(&extreme, sigma, 4, 0).unwrap(), 255.0));
            assert_close(found, sigma, 0.15, what);
        }
        let night = map(&clean, |v| if v < 0.5 { -1.0 } else { v });
        let found = level(&stored(&add_gaussian(&night, sigma, 4, 1).unwrap(), 255.0));
        assert_close(found, sigma, 0.15, "black areas");
    }
}

#[test]
fn painted_borders_do_not_count() {
    let noisy = stored(&add_gaussian(&leaves(Channels::Grey, 2), 0.1, 5, 0).unwrap(), 255.0);
    for border in [0.0, 1.0] {
        let mut data = vec![border; 400 * 500];
        for (y, line) in noisy.data().chunks(240).enumerate() {
            data[(y + 90) * 500 + 60..][..240].copy_from_slice(line);
        }
        assert_close(level(&Image::new(1, 400, 500, data).unwrap()), 0.1, 0.1, "a frame");
    }
}

#[test]
fn drawings_are_clean() {
    let mut page = flat(1.0, 200, 240);
    for (at, v) in page.data_mut().iter_mut().enumerate() {
        let (x, y) = (at % 240 / 3, at / 240 / 2);
        if y % 8 < 4 && (7 * x + 5 * y + x * y) % 4 == 0 {
            *v = if x % 3 == 0 { 0.3 } else { 0.0 };
        }
    }
    assert!(level(&page) < 0.004, "{}", level(&page));
    let noisy = stored(&add_gaussian(&page, 0.1, 8, 0).unwrap(), 255.0);
    assert!((0.05..0.15).contains(&level(&noisy)), "{}", level(&noisy));
}

#[test]
fn a_strong_texture_is_not_taken_for_noise() {
    let mut image = leaves(Channels::Grey, 3);
    for (at, v) in image.data_mut().iter_mut().enumerate() {
        let (y, x) = ((at / 240) as f32, (at % 240) as f32);
        *v = 0.5 + 0.3 * (*v - 0.5) + 0.3 * (1.1 * x + 0.4 * y).sin();
    }
    for sigma in [0.03, 0.1] {
        assert_close(level(&add_gaussian(&image, sigma, 6, 0).unwrap()), sigma, 0.25, "gratings");
    }
}

#[test]
fn a_large_image_is_sampled_and_values_that_are_no_numbers_are_passed_over() {
    let mut noisy = add_gaussian(&flat(0.5, 1500, 2000), 0.1, 7, 0).unwrap();
    for v in noisy.data_mut().iter_mut().step_by(5003) {
        *v = f32::NAN;
    }
    noisy.data_mut()[7] = f32::INFINITY;
    assert_close(level(&noisy), 0.1, 0.05, "large");
    assert_eq!(level(&flat(f32::NAN, 20, 20)), 0.0);
}
