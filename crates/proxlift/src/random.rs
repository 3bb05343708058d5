//! Random numbers that repeat: one ChaCha stream per item, so that neither threads nor order matter.
//!
//! Every generator of the library is made here: by [`stream`]`(seed, purpose, epoch, index)` for data, where purposes never
//! share numbers, so that one seed can drive positions, noise and shuffling at once, and by [`seeded`] for the rest.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a stream is for; streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Noise added to a whole image.
    ImageNoise,
    /// Noise added to a training patch.
    PatchNoise,
    /// Position and symmetry of a training patch.
    PatchPlace,
    /// Order of the mini-batches.
    Shuffle,
    /// Procedural images to train on.
    SyntheticTrain,
    /// Procedural images to test on.
    SyntheticTest,
    /// Pixels at which a metric is observed.
    Metric,
    /// Drawn digits.
    Digits,
    /// Weights that a training starts from.
    Weights,
    /// Noise of arithmetic that is not exact.
    Arithmetic,
}

/// The generator of a seed alone, for starts that are of no kind of data: a power iteration, the vectors of a law.
pub fn seeded(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// The generator for item `index` of `epoch`.
pub fn stream(seed: u64, purpose: Purpose, epoch: u64, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&epoch.to_le_bytes());
    key[16] = purpose as u8;
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(index);
    rng
}

/// A uniform integer in `0..n`, by multiply and shift (bias below `n / 2^64`).
pub fn below(rng: &mut impl Rng, n: usize) -> usize {
    assert!(n > 0, "a random choice among nothing");
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// A uniform number in `[0, 1)`, a multiple of `2^-24`.
pub fn unit(rng: &mut impl Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Shuffles in place (Fisher-Yates).
pub fn shuffle<T>(rng: &mut impl Rng, items: &mut [T]) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i + 1));
    }
}
