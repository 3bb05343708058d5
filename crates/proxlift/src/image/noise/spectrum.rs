//! The spectrum of noise in cosine transforms of blocks.

use std::f64::consts::PI;

/// The side of a block.
const SIDE: usize = 8;
/// The middle frequencies of a block: those whose two numbers add up to this.
const MIDDLE: std::ops::RangeInclusive<usize> = 2..=5;

/// The level of white noise that is as strong as the noise in `planes` at middle frequencies, where pictures and the noise
/// of cameras are told apart by a denoiser: for white noise its standard deviation.
///
/// Noise that was smoothed or compressed lacks high frequencies, so its standard deviation says too little.
pub fn middle_level(planes: &[f32], (height, width): (usize, usize)) -> f32 {
    let wave = |k: usize, x: usize| {
        let scale = if k == 0 { 1.0 } else { 2.0f64.sqrt() } / (SIDE as f64).sqrt();
        (scale * (PI * (x as f64 + 0.5) * k as f64 / SIDE as f64).cos()) as f32
    };
    let waves: [[f32; SIDE]; SIDE] = std::array::from_fn(|k| std::array::from_fn(|x| wave(k, x)));
    let (mut sum, mut count) = (0.0f64, 0);
    for plane in planes.chunks_exact(height * width) {
        for (top, left) in
            (0..height / SIDE).flat_map(|y| (0..width / SIDE).map(move |x| (SIDE * y, SIDE * x)))
        {
            let rows: [[f32; SIDE]; SIDE] = std::array::from_fn(|y| {
                let row = &plane[(top + y) * width + left..][..SIDE];
                waves.map(|wave| wave.iter().zip(row).map(|(w, v)| w * v).sum())
            });
            for (i, wave) in waves.iter().enumerate() {
                for j in (0..SIDE).filter(|j| MIDDLE.contains(&(i + j))) {
                    let coefficient: f32 = wave.iter().zip(&rows).map(|(w, row)| w * row[j]).sum();
                    sum += f64::from(coefficient * coefficient);
                    count += 1;
                }
            }
        }
    }
    (sum / f64::from(count.max(1))).sqrt() as f32
}
