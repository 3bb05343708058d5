//! What tells noise from texture: how strong a picture is at each frequency, in brightness and in colour, in its quiet
//! places and elsewhere.
//!
//! Texture comes and goes and is nearly the same in all channels; noise is everywhere and differs between channels. So
//! the picture is turned into brightness and two colour differences (orthonormal, white noise stays white), and the
//! energies of its blocks in bands of frequencies, at full and at half size, are told by their quantiles.

use super::blocks::{Block, Cosines, SIDE, places};
use crate::image::Image;
use rayon::prelude::*;

/// Blocks looked at, at the most.
const BLOCKS: usize = 4000;
/// Bands of frequencies: those of a block whose two numbers add up to at least this, and less than the next.
const BANDS: [usize; 6] = [1, 3, 5, 7, 9, 15];
/// The quantiles of full and half size.
const QUANTILES: [&[f32]; 2] = [&[0.01, 0.05, 0.15, 0.35, 0.6, 0.85], &[0.05, 0.3, 0.6]];
/// The least energy that counts, of values where white is 255.
const LEAST: f32 = 1e-4;
/// A value that near to black or white was clipped.
const CLIPPED: f32 = 0.5 / 255.0;
/// Brightness and two colour differences.
const OPPONENTS: usize = 3;
/// Energies of a block; those of colour are 0 in grey.
type Energies = [[f32; BANDS.len() - 1]; OPPONENTS];

/// The features of a picture where white is 1; none if it has no block of 16 x 16 pixels that is not clipped.
pub(super) fn features(image: &Image) -> Option<Vec<f32>> {
    let mut features = Vec::new();
    for (scale, quantiles) in [1, 2].into_iter().zip(QUANTILES) {
        let blocks = energies(image, scale);
        if blocks.is_empty() {
            return None;
        }
        for (c, band) in (0..image.channels()).flat_map(|c| (0..BANDS.len() - 1).map(move |band| (c, band))) {
            let mut column: Vec<f32> = blocks.iter().map(|block| block[c][band]).collect();
            column.sort_unstable_by(f32::total_cmp);
            let at = |q: &f32| column[(q * column.len() as f32) as usize].max(LEAST).ln();
            features.extend(quantiles.iter().map(at));
        }
    }
    Some(features)
}

/// The energies of blocks, evenly spaced, of the picture scaled down by `scale`.
fn energies(image: &Image, scale: usize) -> Vec<Energies> {
    let cosines = Cosines::new();
    let places = places((image.height(), image.width()), scale * SIDE, BLOCKS);
    places.par_iter().filter_map(|&place| energy(image, place, scale, &cosines)).collect()
}

/// The energies of one block, unless it was clipped.
fn energy(image: &Image, (top, left): (usize, usize), scale: usize, cosines: &Cosines) -> Option<Energies> {
    let mut block: [Block; OPPONENTS] = Default::default();
    let (channels, mut clipped) = (image.channels(), 0);
    for (c, plane) in block.iter_mut().enumerate().take(channels) {
        let values = image.plane(c);
        for y in 0..scale * SIDE {
            let row = &values[(top + y) * image.width() + left..][..scale * SIDE];
            for (x, &v) in row.iter().enumerate() {
                clipped += usize::from(!(CLIPPED..=1.0 - CLIPPED).contains(&v));
                plane[y / scale][x / scale] += 255.0 * v / (scale * scale) as f32;
            }
        }
    }
    if 10 * clipped > channels * scale * scale * SIDE * SIDE {
        return None;
    }
    if channels == OPPONENTS {
        for (y, x) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x))) {
            let [r, g, b] = block.map(|plane| plane[y][x]);
            block[0][y][x] = (r + g + b) / 3f32.sqrt();
            block[1][y][x] = (r - b) / 2f32.sqrt();
            block[2][y][x] = (r - 2.0 * g + b) / 6f32.sqrt();
        }
    }
    let mut energies = Energies::default();
    for (plane, energies) in block.iter().zip(&mut energies).take(channels) {
        let mut counts = [0.0; BANDS.len() - 1];
        for (i, row) in cosines.transform(plane).iter().enumerate() {
            for (j, coefficient) in row.iter().enumerate().filter(|(j, _)| i + j > 0) {
                let band = BANDS.iter().rposition(|&first| first <= i + j).unwrap_or(0);
                energies[band] += coefficient * coefficient;
                counts[band] += 1.0;
            }
        }
        energies.iter_mut().zip(counts).for_each(|(energy, count)| *energy /= count);
    }
    Some(energies)
}
