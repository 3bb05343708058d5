//! The order in which samples are visited.

use crate::Result;
use crate::random::{Purpose, shuffle, stream};

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
    order: Order,
}

impl Batches {
    /// Batches out of `count` samples.
    pub fn new(count: usize, order: Order) -> Result<Self> {
        refuse!(count == 0 => "no samples give nothing to train on");
        Ok(Self { indices: (0..count).collect(), order })
    }

    /// The batches of `size` samples of `epoch`, the last one smaller where `size` does not divide their number; the
    /// same epoch always gives the same batches, whatever was asked before.
    pub fn epoch(&mut self, epoch: u64, size: usize) -> impl ExactSizeIterator<Item = &[usize]> {
        self.indices.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
        if let Order::Shuffled(seed) = self.order {
            shuffle(&mut stream(seed, Purpose::Shuffle, epoch, 0), &mut self.indices);
        }
        self.indices.chunks(size.max(1))
    }
}
