//! The level of the noise in an image, from the image alone.
//!
//! The model is `z = x + sigma n` with white Gaussian `n` of variance 1. An orthonormal transform leaves white noise
//! white: in the discrete cosine transform of a block all coefficients carry independent noise of variance `sigma^2`,
//! while the image `x` is mostly in the low frequencies. So
//!
//! 1. blocks are ordered by their energy at low frequencies: the weakest hold least of `x`;
//! 2. for each high frequency, `sigma^2` is the mean square of its coefficients in the weakest blocks;
//! 3. the median over the high frequencies is taken: a regular texture that fills some of them does no harm.
//!
//! What step 1 chooses by is independent of what step 2 measures, so that the choice does not favour blocks whose
//! noise happens to be weak. N. N. Ponomarenko, V. V. Lukin, M. S. Zriakhov, A. Kaarna, J. Astola, "An automatic
//! approach to lossy compression of AVIRIS images", IGARSS 2007; M. Colom, A. Buades, "Analysis and extension of the
//! Ponomarenko et al. method", Image Processing On Line 3, 2013.
//!
//! Pictures from files need more. Where noise was clipped, it is weaker than elsewhere, and so are the blocks: if many
//! values are the least or the largest of all, blocks count only if their mean (another independent coefficient) is
//! [`MARGIN`] levels away from that limit, the level being estimated in turn. And where a block is mostly flat, it was
//! painted, masked or clipped: noise leaves few neighbours equal. Such blocks do not count, unless all is drawn so.

use crate::image::Image;
use rayon::prelude::*;
use std::f64::consts::PI;

const SIDE: usize = 8;
/// Blocks looked at, at the most: a large image is sampled on a grid.
const BLOCKS: usize = 20_000;
/// The share of blocks that are measured, and the least number of them.
const WEAKEST: (f64, usize) = (0.01, 64);
/// A frequency is high from here on, as a share of the highest in both directions: `i + j >= 9` of 14 for 8 x 8.
const HIGH: f64 = 0.62;
/// Values at the least or largest value of the image, as a share of all, that make it a limit where noise was clipped.
const PILE: f64 = 0.001;
/// A block with a larger share of equal neighbours is flat.
const FLAT: f64 = 0.5;
/// How far from such a limit a block must be, in noise levels, for clipping not to matter.
const MARGIN: f64 = 2.0;
/// Clipping takes no more than this factor from the first estimate: noise around black keeps 0.58 of its level.
const CLIPPED: f64 = 2.0;
/// Estimates with the margin that belongs to the last one.
const ROUNDS: usize = 8;

/// The standard deviation of white Gaussian noise in an image, on the image's own scale; one for all channels.
///
/// Values that are not finite are passed over. Of an image of fewer than 8 x 8 pixels it is a rough guess, of a single
/// pixel or a flat image 0. A large image is sampled, in the same places each time.
///
/// ```
/// # use proxlift::{dataset::synthetic::dead_leaves, noise::white_level, image::{Channels, noise::add_gaussian}};
/// let clean = dead_leaves(1, 0, 96, 96, Channels::Grey)?;
/// let noisy = add_gaussian(&clean, 0.1, 1, 0)?;
/// assert!((white_level(&noisy) - 0.1).abs() < 0.01);
/// # Ok::<(), proxlift::Error>(())
/// ```
pub fn white_level(image: &Image) -> f64 {
    let (channels, height, width) = image.shape();
    let dct = Dct::new(SIDE.min(height), SIDE.min(width));
    let (places_y, places_x) = (height - dct.rows + 1, width - dct.columns + 1);
    let step = step(channels, places_y, places_x);
    let rows: Vec<(usize, usize)> =
        (0..channels).flat_map(|c| (0..places_y).step_by(step).map(move |y| (c, y))).collect();
    let row = |&(c, y): &(usize, usize)| -> Vec<Block> {
        let row = &image.plane(c)[y * width..];
        (0..places_x).step_by(step).filter_map(|x| dct.block(&row[x..], width)).collect()
    };
    let mut blocks: Vec<Block> = rows.par_iter().flat_map_iter(row).collect();
    if !is_drawn(&blocks) {
        blocks.retain(|block| block.equal <= FLAT);
    }
    blocks.sort_by(|a, b| a.texture.total_cmp(&b.texture));
    away_from_limits(&blocks, &Limits::of(image.data()))
}

/// The least odd distance between blocks, so that they start at all places of a grid that a codec may have left.
fn step(channels: usize, places_y: usize, places_x: usize) -> usize {
    let count =
        |step| channels.saturating_mul(places_y.div_ceil(step)).saturating_mul(places_x.div_ceil(step));
    let mut step = 1;
    while count(step) > BLOCKS {
        // Far away at first, where images are long.
        step += 2 * (step / 16).max(1);
    }
    step
}

/// Whether flat blocks belong to the image, as in text and drawings, and say that it is clean: then most are flat, and
/// the others partly. Noise leaves no flat parts, or where black clips half of it, a quarter.
fn is_drawn(blocks: &[Block]) -> bool {
    let others = blocks.iter().filter(|block| block.equal <= FLAT);
    let (count, equal) = others.fold((0, 0.0), |(count, equal), block| (count + 1, equal + block.equal));
    count == 0 || 2 * count < blocks.len() && equal > 0.5 * FLAT * count as f64
}

/// Estimates, leaving out blocks within a margin of the limits that grows with the estimate.
fn away_from_limits(blocks: &[Block], limits: &Limits) -> f64 {
    let mut sigma = level(blocks.iter(), blocks.len());
    if limits.low.is_none() && limits.high.is_none() {
        return sigma;
    }
    let most = CLIPPED * sigma;
    let mut distances: Vec<f64> = blocks.iter().map(|block| limits.distance(block.mean)).collect();
    distances.sort_by(f64::total_cmp);
    let kept = WEAKEST.1.max(blocks.len() / 50).min(blocks.len());
    let farthest = distances.get(blocks.len() - kept).copied().unwrap_or(0.0);
    for _ in 0..ROUNDS {
        let margin = farthest.min(MARGIN * sigma);
        let inside = || blocks.iter().filter(|block| limits.distance(block.mean) >= margin);
        let next = level(inside(), inside().count()).min(most);
        // Clipping only ever weakens noise.
        if next.is_nan() || next <= sigma {
            break;
        }
        sigma = next;
    }
    sigma
}

/// The level in the weakest of `count` blocks, which come in the order of their texture.
fn level<'a>(blocks: impl Iterator<Item = &'a Block>, count: usize) -> f64 {
    let weakest = WEAKEST.1.max((WEAKEST.0 * count as f64) as usize).min(count);
    let mut squares: Vec<f64> = Vec::new();
    for block in blocks.take(weakest) {
        squares.resize(block.squares.len(), 0.0);
        squares.iter_mut().zip(&block.squares).for_each(|(sum, square)| *sum += square);
    }
    if squares.is_empty() {
        return 0.0;
    }
    squares.sort_by(f64::total_cmp);
    let (below, above) = (squares[(squares.len() - 1) / 2], squares[squares.len() / 2]);
    // The median of a chi-square variable is less than its mean (Wilson and Hilferty 1931): for few blocks it matters.
    let share = (1.0 - 2.0 / (9.0 * weakest as f64)).powi(3);
    (0.5 * (below + above) / (share * weakest as f64)).sqrt()
}

struct Limits {
    low: Option<f64>,
    high: Option<f64>,
}

impl Limits {
    fn of(values: &[f32]) -> Self {
        let (mut low, mut high) = ((f32::INFINITY, 0), (f32::NEG_INFINITY, 0));
        for &v in values.iter().filter(|v| v.is_finite()) {
            if v <= low.0 {
                low = if v < low.0 { (v, 1) } else { (v, low.1 + 1) };
            }
            if v >= high.0 {
                high = if v > high.0 { (v, 1) } else { (v, high.1 + 1) };
            }
        }
        let piled = |(limit, count): (f32, usize)| {
            (count > SIDE && count as f64 > PILE * values.len() as f64).then_some(f64::from(limit))
        };
        Self { low: piled(low), high: piled(high) }
    }

    fn distance(&self, mean: f64) -> f64 {
        let below = self.low.map_or(f64::INFINITY, |low| mean - low);
        let above = self.high.map_or(f64::INFINITY, |high| high - mean);
        below.min(above)
    }
}

struct Block {
    mean: f64,
    /// The energy of its low frequencies, without the mean.
    texture: f64,
    squares: Vec<f64>,
    equal: f64,
}

/// The orthonormal cosine transform of blocks of `rows` x `columns` values; what is beyond them is 0.
struct Dct {
    rows: usize,
    columns: usize,
    vertical: Square<f64>,
    /// Transposed: by place, then by frequency.
    horizontal: Square<f64>,
    high: Square<bool>,
}

type Square<T> = [[T; SIDE]; SIDE];

impl Dct {
    fn new(rows: usize, columns: usize) -> Self {
        let waves = basis(columns);
        let horizontal = std::array::from_fn(|x| std::array::from_fn(|k| waves[k][x]));
        // Each frequency as a share of the highest in its direction; a single pixel has no direction.
        let share = |k: usize, size: usize| if size > 1 { k as f64 / (size - 1) as f64 } else { 0.0 };
        let directions = usize::from(rows > 1) + usize::from(columns > 1);
        let is_high = |i, j| directions > 0 && share(i, rows) + share(j, columns) >= HIGH * directions as f64;
        let high = std::array::from_fn(|i| std::array::from_fn(|j| is_high(i, j)));
        Self { rows, columns, vertical: basis(rows), horizontal, high }
    }

    /// The block whose first value is that of `plane`, unless a value is not finite.
    fn block(&self, plane: &[f32], width: usize) -> Option<Block> {
        let (rows, columns) = (self.rows, self.columns);
        // Relative to one of its values: a constant block has zeros and no rounding errors.
        let origin = f64::from(*plane.first()?);
        let (mut equal, mut sum) = (0_u32, 0.0);
        let mut values: Square<f64> = Default::default();
        for (line, values) in plane.chunks(width).zip(&mut values).take(rows) {
            let line = &line[..columns];
            if !line.iter().all(|v| v.is_finite()) {
                return None;
            }
            equal += line.windows(2).filter(|pair| pair[0] == pair[1]).count() as u32;
            values.iter_mut().zip(line).for_each(|(value, &v)| *value = f64::from(v) - origin);
            sum += values.iter().sum::<f64>();
        }
        let coefficients = product(&product(&self.vertical, &values), &self.horizontal);
        let mut block = Block {
            mean: origin + sum / (rows * columns) as f64,
            texture: 0.0,
            squares: Vec::with_capacity(SIDE * SIDE / 2),
            equal: f64::from(equal) / (rows * (columns - 1)).max(1) as f64,
        };
        for (i, line) in coefficients.iter().enumerate().take(rows) {
            for (j, coefficient) in line.iter().enumerate().take(columns) {
                if self.high[i][j] {
                    block.squares.push(coefficient * coefficient);
                } else if i + j > 0 {
                    block.texture += coefficient * coefficient;
                }
            }
        }
        Some(block)
    }
}

fn product(a: &Square<f64>, b: &Square<f64>) -> Square<f64> {
    let mut product: Square<f64> = Default::default();
    for (line, weights) in product.iter_mut().zip(a) {
        for (weight, row) in weights.iter().zip(b) {
            line.iter_mut().zip(row).for_each(|(sum, v)| *sum += weight * v);
        }
    }
    product
}

/// `basis[k][x] = c_k cos(pi (x + 1/2) k / size)`, rows of norm 1.
fn basis(size: usize) -> Square<f64> {
    let mut basis: Square<f64> = Default::default();
    for (k, wave) in basis.iter_mut().enumerate().take(size) {
        let norm = if k == 0 { 1.0 } else { 2.0 } / size as f64;
        for (x, value) in wave.iter_mut().enumerate().take(size) {
            *value = norm.sqrt() * (PI * (x as f64 + 0.5) * k as f64 / size as f64).cos();
        }
    }
    basis
}
