//! The spectrum of a picture in its quiet places, where there is least but noise.
//!
//! Of the two halves of a block's frequencies, those whose numbers add up to an even and to an odd sum, one chooses the
//! quiet blocks and the other one is measured there: so the choice does not favour weak noise.

use super::blocks::{Cosines, SIDE, block, places};
use crate::image::Image;
use rayon::prelude::*;

/// Blocks looked at, at the most.
const BLOCKS: usize = 800;
/// The share of them that is quiet.
const QUIET: usize = 20;
/// The sums of a frequency's two numbers, from 1 on.
pub(super) const SUMS: usize = 2 * SIDE - 2;

/// For each channel the level at each sum of a frequency's two numbers, from 1 to 14; white noise has the same at all.
pub(super) fn spectrum(image: &Image) -> Vec<Vec<f64>> {
    let (height, width) = (image.height(), image.width());
    let places = places((height, width), SIDE, BLOCKS);
    let cosines = Cosines::new();
    let of_plane = |plane: &[f32]| -> Vec<f64> {
        let energies = |&place: &(usize, usize)| {
            let mut energies = [0.0f32; SUMS + 1];
            for (i, row) in cosines.transform(&block(plane, width, place)).iter().enumerate() {
                row.iter().enumerate().for_each(|(j, c)| energies[i + j] += c * c);
            }
            energies
        };
        let mut blocks: Vec<[f32; SUMS + 1]> = places.par_iter().map(energies).collect();
        let mut levels = vec![0.0; SUMS];
        for parity in 0..2 {
            let loud = |block: &[f32; SUMS + 1]| {
                (1..=SUMS).filter(|k| k % 2 != parity).map(|k| block[k]).sum::<f32>()
            };
            blocks.sort_by(|a, b| loud(a).total_cmp(&loud(b)));
            let quiet = &blocks[..(blocks.len() / QUIET).max(1).min(blocks.len())];
            for k in (1..=SUMS).filter(|k| k % 2 == parity) {
                let frequencies = k.min(SUMS - k) + 1;
                let sum: f64 = quiet.iter().map(|block| f64::from(block[k])).sum();
                levels[k - 1] = (sum / (quiet.len().max(1) * frequencies) as f64).sqrt();
            }
        }
        levels
    };
    image.data().chunks_exact(image.pixels()).map(of_plane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::noise::add_gaussian;

    #[test]
    fn white_noise_is_as_strong_at_all_frequencies() {
        let flat = Image::new(1, 128, 128, vec![0.5; 128 * 128]).unwrap();
        let spectrum = spectrum(&add_gaussian(&flat, 0.1, 1, 0).unwrap());
        assert_eq!((spectrum.len(), spectrum[0].len()), (1, SUMS));
        // A few blocks measure: the corners of the spectrum have one frequency each.
        assert!(spectrum[0].iter().all(|level| (level / 0.1 - 1.0).abs() < 0.25), "{spectrum:?}");
    }

    #[test]
    fn a_picture_without_a_block_has_no_level() {
        let small = Image::new(1, 5, 5, vec![0.5; 25]).unwrap();
        assert_eq!(spectrum(&small), [vec![0.0; SUMS]]);
    }
}
