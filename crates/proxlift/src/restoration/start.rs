//! The picture that the iteration begins with.

use super::Degradation;
use super::forward::Forward;
use crate::image::{Image, enlarge};
use crate::{Result, memory};

/// As large as the restored picture: the picture itself, or enlarged, or with its gaps filled.
pub(super) fn start(seen: &Image, degradation: &Degradation, forward: &Forward) -> Result<Image> {
    let factor = degradation.factor();
    if factor > 1 {
        return enlarged(seen, factor);
    }
    if !degradation.leaves_gaps() {
        return Ok(seen.clone());
    }
    // Ones through the mask and back: what is known.
    let ones = vec![1.0; seen.data().len()];
    let known = forward.apply(&ones);
    let (channels, height, width) = seen.shape();
    let planes = seen.data().chunks_exact(height * width).zip(known.chunks_exact(height * width));
    let data = planes.flat_map(|(plane, known)| filled(plane, known, (height, width))).collect();
    Image::new(channels, height, width, data)
}

/// By cubic interpolation, each pixel in the middle of those that it becomes.
fn enlarged(seen: &Image, factor: usize) -> Result<Image> {
    let (channels, height, width) = seen.shape();
    let (high, wide) = (height * factor, width * factor);
    // `enlarge` begins at the first pixel, but the middle of those that it becomes is `(factor - 1) / 2` further: twice as many
    // are made, every second one of which lies right.
    let (around, fine) = (2, 2 * factor);
    let first = around * fine + 1 - factor;
    let padded = seen.mirrored((around, around), (around, around));
    let (tall, broad) = ((height + 2 * around) * fine, (width + 2 * around) * fine);
    let mut data = Vec::with_capacity(channels * high * wide);
    for c in 0..channels {
        let mut plane: Vec<f32> = memory::zeros(tall * broad);
        for (row, from) in plane.chunks_exact_mut(broad).zip(padded.plane(c).chunks_exact(padded.width())) {
            row[..from.len()].copy_from_slice(from);
        }
        enlarge(&mut plane, (tall, broad), fine as f32);
        let rows = plane.chunks_exact(broad).skip(first).step_by(2).take(high);
        rows.for_each(|row| data.extend(row[first..].iter().step_by(2).take(wide)));
    }
    Image::new(channels, high, wide, data)
}

/// Gaps get the mean of what is known around them, from as near as there is any: a pyramid of means, down and up again.
fn filled(plane: &[f32], known: &[f32], (height, width): (usize, usize)) -> Vec<f32> {
    let weighed: Vec<(f32, f32)> = plane.iter().zip(known).map(|(v, w)| (v * w, *w)).collect();
    let coarse = if (height, width) == (1, 1) {
        let value = if weighed[0].1 > 0.0 { weighed[0].0 / weighed[0].1 } else { 0.5 };
        return vec![value];
    } else {
        let (low, small) = (height.div_ceil(2), width.div_ceil(2));
        let mut sums = vec![(0.0f32, 0.0f32); low * small];
        for (i, (v, w)) in weighed.iter().enumerate() {
            let sum = &mut sums[i / width / 2 * small + i % width / 2];
            *sum = (sum.0 + v, sum.1 + w);
        }
        let means: Vec<f32> = sums.iter().map(|(v, w)| if *w > 0.0 { v / w } else { 0.0 }).collect();
        let there: Vec<f32> = sums.iter().map(|(_, w)| f32::from(*w > 0.0)).collect();
        (filled(&means, &there, (low, small)), low, small)
    };
    let (means, low, small) = coarse;
    let at = |y: usize, x: usize| means[y.min(low - 1) * small + x.min(small - 1)];
    let between = |i: usize| {
        // Linear between the middles of the coarse pixels.
        let near = |p: usize| {
            if p.is_multiple_of(2) { (p / 2, (p / 2).saturating_sub(1)) } else { (p / 2, p / 2 + 1) }
        };
        let ((y, v), (x, u)) = (near(i / width), near(i % width));
        (9.0 * at(y, x) + 3.0 * at(v, x) + 3.0 * at(y, u) + at(v, u)) / 16.0
    };
    let value = |(i, (v, w)): (usize, &(f32, f32))| if *w > 0.0 { v / w } else { between(i) };
    weighed.iter().enumerate().map(value).collect()
}
