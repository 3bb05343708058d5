//! The painted scene: the same bits everywhere, at any size, with the features that make it a test of denoisers.

use proxlift::dataset::synthetic::{caption, scene};
use proxlift::image::{Channels, Image};

fn hash(image: &Image) -> u64 {
    image
        .data()
        .iter()
        .flat_map(|v| v.to_bits().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Mean absolute difference of neighbours in a row, within a rectangle given in shares of the picture.
fn roughness(image: &Image, (left, right): (f32, f32), (top, bottom): (f32, f32)) -> f32 {
    let (h, w) = (image.height() as f32, image.width() as f32);
    let (mut sum, mut count) = (0.0, 0.0);
    for y in (top * h) as usize..(bottom * h) as usize {
        let row = &image.plane(1)[y * image.width()..][(left * w) as usize..(right * w) as usize];
        sum += row.windows(2).map(|p| (p[1] - p[0]).abs()).sum::<f32>();
        count += (row.len() - 1) as f32;
    }
    sum / count
}

#[test]
fn a_scene_has_the_same_bits_everywhere() {
    let picture = scene(1, 64, 96, Channels::Rgb).unwrap();
    assert_eq!(
        hash(&picture),
        5_317_305_766_928_876_627,
        "the scene was changed: look at it, then change this number"
    );
    assert!(scene(1, 64, 96, Channels::Grey).unwrap() == picture.to_grey());
    assert!(scene(2, 64, 96, Channels::Rgb).unwrap() != picture);
}

#[test]
fn any_size_is_painted() {
    for (height, width) in [(1, 1), (3, 200), (200, 3), (17, 31)] {
        let picture = scene(3, height, width, Channels::Rgb).unwrap();
        assert_eq!(picture.shape(), (3, height, width));
        assert!(picture.data().iter().all(|v| (0.0..=1.0).contains(v)), "{width} x {height}");
    }
    assert!(scene(1, 0, 5, Channels::Grey).is_err());
}

#[test]
fn sky_is_smooth_and_surfaces_are_rough() {
    let picture = scene(1, 256, 384, Channels::Rgb).unwrap();
    let sky = roughness(&picture, (0.55, 0.65), (0.02, 0.14));
    let bark = roughness(&picture, (0.02, 0.13), (0.4, 0.8));
    let leaves = roughness(&picture, (0.05, 0.35), (0.02, 0.15));
    assert!(sky < 0.004 && bark > 0.03 && leaves > 0.03, "{sky} {bark} {leaves}");
    let (low, high) = picture.data().iter().fold((1.0_f32, 0.0_f32), |(a, b), v| (a.min(*v), b.max(*v)));
    assert!(low < 0.05 && high > 0.9, "{low} {high}");
}

#[test]
fn captions_are_written_where_they_are_asked_for() {
    let mut image = Image::zeros(3, 20, 60).unwrap();
    caption(&mut image, "I 1", (4.5, 4.0), 12.0, 1.0);
    // The stem of the I runs down at x = 4.5; nothing is written above, below or at the end of the line.
    for c in 0..3 {
        let plane = image.plane(c);
        assert!((5..15).all(|y| plane[y * 60 + 4] > 0.9), "channel {c}");
        assert!((0..60).all(|x| plane[60 + x] == 0.0 && plane[18 * 60 + x] == 0.0));
        assert!((0..20).all(|y| plane[y * 60 + 40] == 0.0));
        assert!(plane.iter().any(|v| *v > 0.0 && *v < 1.0), "edges are soft");
    }
}
