//! What a trainer keeps of every sample from visit to visit: `u`, and whatever else it calls auxiliary.

use crate::lifting::Rows;
use crate::training::Auxiliary;
use crate::{Real, Result};

/// The variables of every sample that was visited; of none, where they start at the forward pass.
pub(super) struct Kept<T>(Vec<Option<Vec<Vec<T>>>>);

impl<T: Real> Kept<T> {
    /// Nothing yet, of a set of `samples`.
    pub fn new(auxiliary: Auxiliary, samples: usize) -> Self {
        Self(vec![None; if auxiliary == Auxiliary::Persistent { samples } else { 0 }])
    }

    /// Puts what is kept of the samples `indices` in place of `variables`; tells whether anything is kept at all.
    /// Fails when the indices are not those of a batch of `count` samples of the set.
    pub fn recall<'r>(
        &self,
        variables: impl Iterator<Item = &'r mut Rows<T>>,
        indices: &[usize],
        count: usize,
    ) -> Result<bool> {
        let Self(kept) = self;
        if kept.is_empty() {
            return Ok(false);
        }
        refuse!(indices.len() != count =>
            "{} indices are given for {count} samples, but what is kept of a sample is found by its own", indices.len());
        let outside = indices.iter().find(|index| **index >= kept.len());
        refuse!(outside.is_some() =>
            "a batch holds sample {}, but the trainer was made for a set of {}", outside.unwrap_or(&0), kept.len());
        for (j, rows) in variables.enumerate() {
            let width = rows.width();
            for (row, &index) in rows.data_mut().chunks_exact_mut(width).zip(indices) {
                kept[index].iter().for_each(|kept| row.copy_from_slice(&kept[j]));
            }
        }
        Ok(true)
    }

    /// Keeps the variables of the samples `indices`.
    pub fn remember(&mut self, variables: &[&Rows<T>], indices: &[usize]) {
        for (i, &index) in indices.iter().enumerate() {
            if let Some(kept) = self.0.get_mut(index) {
                *kept = Some(variables.iter().map(|rows| rows.row(i).to_vec()).collect());
            }
        }
    }
}
