//! What the members of a team hold of a trainer's state, brought together.

use super::Snapshot;
use crate::team::Ranks;
use bytemuck::{cast_slice, pod_collect_to_vec};
use std::sync::Arc;

impl Snapshot {
    /// The whole state, for the first member of a team: with the arrays that only others have.
    pub(super) fn gathered(mut self, ranks: &Ranks) -> Self {
        if ranks.size() == 1 {
            return self;
        }
        let known: Vec<&str> = self.arrays.keys().map(String::as_str).collect();
        let known = ranks.text_of_first(&known.join("\n"));
        let mut known: Vec<&str> = known.lines().collect();
        known.sort_unstable();
        let foreign = self.arrays.iter().filter(|(name, _)| known.binary_search(&name.as_str()).is_err());
        let mut message = Vec::new();
        for (name, values) in foreign {
            for length in [name.len(), 4 * values.len()] {
                message.extend_from_slice(&(length as u64).to_le_bytes());
            }
            message.extend_from_slice(name.as_bytes());
            message.extend_from_slice(cast_slice(values));
        }
        for message in ranks.bytes_to_first(&message) {
            let mut rest = message.as_slice();
            let mut take = |length: usize| rest.split_off(..length).unwrap_or_default();
            while let Ok(header) = <[u8; 16]>::try_from(take(16)) {
                let length = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes")) as usize;
                let (name, values) = (take(length(&header[..8])), take(length(&header[8..])));
                let name = String::from_utf8_lossy(name).into_owned();
                self.arrays.insert(name, Arc::new(pod_collect_to_vec(values)));
            }
        }
        self
    }
}
