//! The order in which samples are visited.

use crate::image::random::{Purpose, shuffle, stream};
use crate::{Error, Result};

/// How an epoch runs through the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `0, 1, 2, ...` in every epoch.
    Fixed,
    /// A new permutation in each epoch, from this seed.
    Shuffled(u64),
}

/// Mini-batches of sample indices; each epoch visits every sample once.
#[derive(Clone, Debug)]
pub struct Batches {
    indices: Vec<usize>,
    size: usize,
    order: Order,
}

impl Batches {
    /// Batches of `size` out of `count` samples; the last one is smaller where `size` does not divide `count`.
    pub fn new(count: usize, size: usize, order: Order) -> Result<Self> {
        if count == 0 || size == 0 {
            return Err(Error::invalid(format!(
                "{count} samples in batches of {size} give nothing to train on"
            )));
        }
        Ok(Self { indices: (0..count).collect(), size, order })
    }

    /// The batches of `epoch`; the same epoch always gives the same batches, whatever was asked before.
    pub fn epoch(&mut self, epoch: u64) -> impl ExactSizeIterator<Item = &[usize]> {
        self.indices.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
        if let Order::Shuffled(seed) = self.order {
            shuffle(&mut stream(seed, Purpose::Shuffle, epoch, 0), &mut self.indices);
        }
        self.indices.chunks(self.size)
    }

    /// Batches in an epoch.
    pub fn per_epoch(&self) -> usize {
        self.indices.len().div_ceil(self.size)
    }

    /// The size of all batches but perhaps the last.
    pub fn size(&self) -> usize {
        self.size
    }
}
