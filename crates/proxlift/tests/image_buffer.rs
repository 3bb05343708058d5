//! Buffers of images and of batches, and their noise.

use proxlift::field::{Field, Grid};
use proxlift::image::noise::{add_gaussian, add_gaussian_in_place, check_sigma, check_sigma_below_white};
use proxlift::image::{Channels, Image};
use proxlift::random::{Purpose, below, shuffle, stream};

#[test]
fn shapes_are_checked() {
    for (channels, height, width, len) in [(2, 4, 4, 32), (1, 0, 4, 0), (1, 4, 0, 0), (3, 2, 2, 11)] {
        assert!(Image::new(channels, height, width, vec![0.0; len]).is_err());
    }
    assert!(Image::zeros(3, usize::MAX / 2, 3).is_err());
    let image = Image::zeros(3, 2, 5).unwrap();
    assert_eq!((image.shape(), image.plane(2).len()), ((3, 2, 5), 10));
}

#[test]
fn luma_is_rec_601_and_not_rounded() {
    let image = Image::new(3, 1, 2, vec![1.0, 0.1, 0.0, 0.2, 0.0, 0.3]).unwrap();
    let grey = image.to_grey();
    assert_eq!(grey.channels(), 1);
    assert!((grey.data()[0] - 0.299).abs() < 1e-7 && (grey.data()[1] - 0.1815).abs() < 1e-7);
    assert_eq!(grey.to_grey(), grey);
    assert_eq!(grey.clone().into_channels(Channels::Rgb).plane(2), grey.data());
}

#[test]
fn mirrors_stand_at_every_side_and_repeat() {
    let image = Image::new(1, 2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let mirrored = image.mirrored((1, 3), (2, 0));
    let rows = [[2.0, 1.0, 1.0, 2.0, 3.0], [5.0, 4.0, 4.0, 5.0, 6.0]];
    assert_eq!(mirrored.shape(), (1, 6, 5));
    assert_eq!(mirrored.data(), [0, 0, 1, 1, 0, 0].map(|y: usize| rows[y]).as_flattened());
    assert_eq!(image.mirrored((0, 0), (0, 0)), image);
}

#[test]
fn nan_is_named() {
    let mut image = Image::zeros(3, 4, 5).unwrap();
    image.check_finite().unwrap();
    image.data_mut()[20 + 7] = f32::NAN;
    let error = image.check_finite().unwrap_err().to_string();
    assert!(error.contains("row 1, column 2, channel 1 is NaN"), "{error}");
}

#[test]
fn noise_has_its_level_and_its_bits() {
    let clean = Image::zeros(1, 200, 300).unwrap();
    let noisy = add_gaussian(&clean, 0.1, 7, 3).unwrap();
    let n = noisy.data().len() as f64;
    let mean = noisy.data().iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let std = (noisy.data().iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n - mean * mean).sqrt();
    assert!(mean.abs() < 0.002 && (std - 0.1).abs() < 0.001, "mean {mean}, standard deviation {std}");

    assert_eq!(add_gaussian(&clean, 0.1, 7, 3).unwrap(), noisy);
    assert_ne!(add_gaussian(&clean, 0.1, 7, 4).unwrap(), noisy);
    assert_ne!(add_gaussian(&clean, 0.1, 8, 3).unwrap(), noisy);
    for sigma in [-0.1, f32::NAN, f32::INFINITY] {
        assert!(add_gaussian(&clean, sigma, 7, 3).is_err());
    }
    assert_eq!(add_gaussian(&clean, 0.0, 7, 3).unwrap(), clean);
}

/// Published figures depend on these bits: a change of generator must be a decision, not an accident.
#[test]
fn noise_bits_are_pinned() {
    let noisy = add_gaussian(&Image::zeros(1, 64, 64).unwrap(), 1.0, 2024, 5).unwrap();
    let first: Vec<u32> = noisy.data()[..4].iter().map(|v| v.to_bits()).collect();
    let hash = noisy
        .data()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, v| (h ^ u64::from(v.to_bits())).wrapping_mul(0x0100_0000_01b3));
    assert_eq!(first, [0x3d51_56c0, 0x3ecc_7684, 0xbfae_5314, 0xbfd4_1cbe]);
    assert_eq!(hash, 0x2591_c37b_7b07_af8e);
}

#[test]
fn streams_are_independent_of_each_other() {
    let draw = |purpose, epoch, index| {
        let mut out = [0.0; 8];
        add_gaussian_in_place(&mut stream(1, purpose, epoch, index), 1.0, &mut out);
        out
    };
    let base = draw(Purpose::PatchNoise, 0, 0);
    assert_eq!(base, draw(Purpose::PatchNoise, 0, 0));
    for other in [(Purpose::PatchPlace, 0, 0), (Purpose::PatchNoise, 1, 0), (Purpose::PatchNoise, 0, 1)] {
        assert_ne!(base, draw(other.0, other.1, other.2));
    }
}

#[test]
fn integers_are_even_and_shuffles_complete() {
    let mut rng = stream(5, Purpose::Shuffle, 0, 0);
    let mut counts = [0; 7];
    (0..70_000).for_each(|_| counts[below(&mut rng, 7)] += 1);
    assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
    let mut items: Vec<usize> = (0..100).collect();
    shuffle(&mut rng, &mut items);
    assert_ne!(items, (0..100).collect::<Vec<_>>());
    items.sort_unstable();
    assert_eq!(items, (0..100).collect::<Vec<_>>());
}

#[test]
fn planar_round_trip_keeps_gaps_zero() {
    let grid = Grid::new(3, 5, 2).unwrap();
    let planar: Vec<f32> = (1..=60).map(|i| i as f32).collect();
    let field = Field::from_planar(2, 2, grid, &planar).unwrap();
    assert_eq!(field.to_planar(), planar);
    assert_eq!(field.data().iter().filter(|&&x| x == 0.0).count(), field.data().len() - 60);
    assert_eq!(field.at(1, 0, 2, 4), 45.0);
    assert_eq!(field.at(1, 0, 2, 5), 0.0);
    assert_eq!(field.at(1, 0, -1, 0), 0.0);
}

#[test]
fn a_batch_starts_on_a_cache_line_also_when_cloned() {
    let field = Field::<f32>::zeros(1, 1, Grid::new(1, 1, 1).unwrap());
    assert_eq!(field.data().as_ptr() as usize % 64, 0);
    assert_eq!(field.clone().data().as_ptr() as usize % 64, 0);
}

#[test]
fn empty_images_and_wrong_counts_are_refused() {
    assert!(Grid::new(0, 4, 1).unwrap_err().to_string().contains("at least one pixel"));
    let grid = Grid::new(2, 2, 1).unwrap();
    assert!(Field::from_planar(1, 1, grid, &[0.0f32; 3]).is_err());
}

#[test]
fn levels_without_meaning_are_refused() {
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(check_sigma(bad).is_err() && check_sigma_below_white(bad).is_err(), "{bad}");
    }
    assert!(check_sigma(25.0).is_ok() && check_sigma_below_white(0.0).is_ok());
    assert!(check_sigma_below_white(25.0).unwrap_err().to_string().contains("25/255"));
}
