//! Blocks of a picture in the cosine basis.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The side of a block.
pub(super) const SIDE: usize = 8;

/// The values or coefficients of a block.
pub(super) type Block = [[f32; SIDE]; SIDE];

/// The orthonormal cosine transform of blocks: white noise stays white.
pub(super) struct Cosines(Block);

impl Cosines {
    pub fn new() -> Self {
        let wave = |k: usize, x: usize| {
            let scale = if k == 0 { FRAC_1_SQRT_2 } else { 1.0 } * (2.0 / SIDE as f64).sqrt();
            (scale * (PI * (x as f64 + 0.5) * k as f64 / SIDE as f64).cos()) as f32
        };
        Self(std::array::from_fn(|k| std::array::from_fn(|x| wave(k, x))))
    }

    /// The coefficients of a block: row `i` and column `j` count the half waves down and along it.
    pub fn transform(&self, block: &Block) -> Block {
        let mut down = [[0.0; SIDE]; SIDE];
        for (down, wave) in down.iter_mut().zip(&self.0) {
            for (row, w) in block.iter().zip(wave) {
                down.iter_mut().zip(row).for_each(|(d, v)| *d += w * v);
            }
        }
        let along = |row: &[f32; SIDE], wave: &[f32; SIDE]| row.iter().zip(wave).map(|(v, w)| v * w).sum();
        down.map(|row| std::array::from_fn(|j| along(&row, &self.0[j])))
    }
}

/// The block of a plane at `(top, left)`.
pub(super) fn block(plane: &[f32], width: usize, (top, left): (usize, usize)) -> Block {
    std::array::from_fn(|y| {
        let row = &plane[(top + y) * width + left..][..SIDE];
        std::array::from_fn(|x| row[x])
    })
}

/// The places of blocks of `side` pixels, evenly spaced by an odd number of pixels, `most` at the most.
pub(super) fn places((height, width): (usize, usize), side: usize, most: usize) -> Vec<(usize, usize)> {
    let (rows, columns) = ((height + 1).saturating_sub(side), (width + 1).saturating_sub(side));
    let mut step = 1;
    while rows.div_ceil(step).saturating_mul(columns.div_ceil(step)) > most {
        step += 2 * (step / 16).max(1);
    }
    let columns = (0..columns).step_by(step);
    (0..rows).step_by(step).flat_map(|y| columns.clone().map(move |x| (y, x))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_orthonormal() {
        let cosines = Cosines::new();
        let block: Block =
            std::array::from_fn(|y| std::array::from_fn(|x| ((3 * y * y + 5 * x) % 7) as f32 - 2.5));
        let coefficients = cosines.transform(&block);
        let energy = |block: &Block| block.iter().flatten().map(|v| v * v).sum::<f32>();
        assert!((energy(&coefficients) / energy(&block) - 1.0).abs() < 1e-5);
        let mean = block.iter().flatten().sum::<f32>() / 64.0;
        assert!((coefficients[0][0] - 8.0 * mean).abs() < 1e-4);
        // A wave of three half periods along the rows is one coefficient.
        let wave = std::array::from_fn(|_| {
            std::array::from_fn(|x| (PI * (x as f64 + 0.5) * 3.0 / 8.0).cos() as f32)
        });
        let coefficients = cosines.transform(&wave);
        let others = energy(&coefficients) - coefficients[0][3].powi(2);
        assert!(coefficients[0][3] > 5.0 && others < 1e-6, "{coefficients:?}");
    }

    #[test]
    fn places_are_spread_and_few() {
        assert_eq!(places((8, 9), 8, 100), [(0, 0), (0, 1)]);
        assert_eq!(places((7, 100), 8, 100), []);
        let many = places((1000, 2000), 8, 4000);
        assert!(many.len() <= 4000 && many.len() > 3000, "{}", many.len());
        assert!(many.iter().any(|&(y, x)| y > 950 && x > 1950));
    }
}
