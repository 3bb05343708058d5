//! What is taken of large pictures, and what is refused.

use super::noise::sample;
use super::pixels::BAND;
use super::variation::check_memory;
use crate::image::{Channels, Image};

#[test]
fn a_large_picture_is_sampled_in_bands_of_its_rows() {
    // Rows that hold their own number.
    let (height, width) = (3000, 8000);
    let data: Vec<f32> = (0..height * width).map(|i| (i / width) as f32).collect();
    let image = Image::new(1, height, width, data).unwrap();
    let sample = sample(&image);
    assert_eq!(sample.shape(), (1, 8 * BAND, width));
    for (i, band) in sample.data().chunks_exact(BAND * width).enumerate() {
        let first = (i * (height - BAND) / 8) as f32;
        assert_eq!((band[0], band[BAND * width - 1]), (first, first + (BAND - 1) as f32));
    }
}

#[test]
fn what_there_is_no_memory_for_is_refused() {
    assert!(check_memory(Channels::Rgb, (6000, 8000)).is_ok());
    let refused = check_memory(Channels::Grey, (20_000, 20_000)).unwrap_err().to_string();
    assert!(refused.contains("12.8 GB") && refused.contains("use a network"), "{refused}");
}
