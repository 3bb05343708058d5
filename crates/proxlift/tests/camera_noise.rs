//! Noise as cameras make it, and what the denoiser finds of it.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::noise::{CameraNoise, Demosaicing, middle_level};
use proxlift::image::{Channels, Image};
use proxlift::random::seeded;

const SIZE: (usize, usize) = (96, 96);

/// A camera that does nothing but count.
const PLAIN: CameraNoise = CameraNoise {
    gain: 0.001,
    read_noise: 0.002,
    balance: [1.0; 3],
    demosaicing: Demosaicing::None,
    smoothing: [0.0; 2],
    colour: 1.0,
    jpeg: None,
};

fn grey(value: f32) -> Image {
    Image::new(3, SIZE.0, SIZE.1, vec![value; 3 * SIZE.0 * SIZE.1]).unwrap()
}

fn noise(camera: &CameraNoise, clean: &Image) -> Vec<f32> {
    let noisy = camera.photograph(&mut seeded(1), clean);
    noisy.data().iter().zip(clean.data()).map(|(z, x)| z - x).collect()
}

fn deviation(noise: &[f32]) -> f64 {
    let mean = noise.iter().map(|n| f64::from(*n)).sum::<f64>() / noise.len() as f64;
    (noise.iter().map(|n| (f64::from(*n) - mean).powi(2)).sum::<f64>() / noise.len() as f64).sqrt()
}

#[test]
fn without_photons_noise_a_picture_stays_but_for_8_bits() {
    let silent =
        CameraNoise { gain: 0.0, read_noise: 0.0, demosaicing: Demosaicing::GradientCorrected, ..PLAIN };
    let clean = dead_leaves(1, 0, SIZE.0, SIZE.1, Channels::Rgb).unwrap();
    assert!(noise(&silent, &clean).iter().all(|n| n.abs() <= 0.5001 / 255.0));
}

#[test]
fn the_variance_is_that_of_photons_in_linear_light() {
    // sRGB 0.5 is 0.2140 in linear light, which changes by 0.9256 for each unit that is displayed.
    let expected = (0.001 * 0.2140f64 + 0.002f64.powi(2)).sqrt() / 0.9256;
    let found = deviation(&noise(&PLAIN, &grey(0.5)));
    assert!((found / expected - 1.0).abs() < 0.05, "{found} and {expected}");
}

#[test]
fn smoothing_leaves_less_at_high_frequencies() {
    let white = noise(&PLAIN, &grey(0.5));
    let smoothed = noise(&CameraNoise { smoothing: [1.0, 1.0], ..PLAIN }, &grey(0.5));
    let share = |noise: &[f32]| f64::from(middle_level(noise, SIZE)) / deviation(noise);
    assert!(
        (share(&white) - 1.0).abs() < 0.05,
        "white noise has its level at all frequencies: {}",
        share(&white)
    );
    assert!(share(&smoothed) > 1.3, "{}", share(&smoothed));
}

#[test]
fn a_camera_that_removes_colour_noise_leaves_grey_noise() {
    let left = noise(&CameraNoise { colour: 0.0, ..PLAIN }, &grey(0.5));
    let (red, blue) = (&left[..SIZE.0 * SIZE.1], &left[2 * SIZE.0 * SIZE.1..]);
    assert!(red.iter().zip(blue).all(|(r, b)| (r - b).abs() <= 1.001 / 255.0));
    assert!(deviation(red) > 1.0 / 255.0);
}

#[test]
fn cameras_are_drawn_the_same_from_the_same_seed_and_differ() {
    let draw = |seed| CameraNoise::draw(&mut seeded(seed));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}
