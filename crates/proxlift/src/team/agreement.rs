//! What the members of a team tell each other beside the numbers of a batch, and how they end.

use super::Ranks;
use crate::{Error, Result};
use bytemuck::{cast_slice, cast_slice_mut};
use serde::{Serialize, de::DeserializeOwned};
use std::sync::atomic::Ordering;

/// Bytes that one message of a large collection has at most.
const PIECE: usize = 1 << 26;

/// A message from one member to another, of which all know that it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who sends it.
    pub from: usize,
    /// Who gets it.
    pub to: usize,
    /// How long it is.
    pub bytes: usize,
}

/// How a team ends after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The others do not know of it: the team has to be ended.
    Unknown,
    /// All members have it, and this one tells of it.
    Ours,
    /// All members have it, and another one tells of it.
    Theirs,
}

impl Ranks {
    /// Everybody's bytes.
    pub fn bytes_of_all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0_u64; self.size()];
        let each = vec![8; self.size()];
        self.team.gather(cast_slice(&[own.len() as u64]), cast_slice_mut(&mut lengths), &each);
        let from: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
        let mut all = vec![0; from.iter().sum()];
        self.team.gather(own, &mut all, &from);
        let mut rest = all.as_slice();
        from.iter().map(|&length| rest.split_off(..length).expect("all were counted").to_vec()).collect()
    }

    /// Everybody's bytes, for the first member only.
    pub fn bytes_to_first(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let lengths = self.bytes_of_all(&(own.len() as u64).to_le_bytes());
        let length =
            |bytes: &Vec<u8>| u64::from_le_bytes(bytes[..].try_into().expect("eight bytes")) as usize;
        let lengths: Vec<usize> = lengths.iter().map(length).collect();
        let mut all: Vec<Vec<u8>> = vec![Vec::new(); if self.is_first() { self.size() } else { 0 }];
        // In pieces, so that no message is larger than MPI can count.
        for start in (0..lengths.iter().copied().max().unwrap_or(0)).step_by(PIECE) {
            let piece = |length: usize| length.saturating_sub(start).min(PIECE);
            let mine = &own[start.min(own.len())..][..piece(own.len())];
            let mut to = vec![0; self.size()];
            to[0] = mine.len();
            let first = self.is_first();
            let from: Vec<usize> =
                lengths.iter().map(|&length| if first { piece(length) } else { 0 }).collect();
            let mut received = vec![0; from.iter().sum()];
            self.team.exchange(mine, &to, &mut received, &from);
            let mut rest = received.as_slice();
            for (all, length) in all.iter_mut().zip(from) {
                all.extend_from_slice(rest.split_off(..length).expect("all were counted"));
            }
        }
        all
    }

    /// The first member's bytes; what the others give does not count.
    pub fn bytes_of_first(&self, own: Vec<u8>) -> Vec<u8> {
        if self.size() == 1 {
            return own;
        }
        let own = if self.is_first() { own } else { Vec::new() };
        let length = self.bytes_of_all(&(own.len() as u64).to_le_bytes())[0][..].try_into();
        let mut all = vec![0; u64::from_le_bytes(length.expect("eight bytes")) as usize];
        let mut from = vec![0; self.size()];
        for (i, piece) in all.chunks_mut(PIECE).enumerate() {
            from[0] = piece.len();
            let own = own.get(i * PIECE..).unwrap_or_default();
            self.team.gather(&own[..own.len().min(PIECE)], piece, &from);
        }
        all
    }

    /// Delivers messages. `give` adds the bytes of message `i`, which this member sends, `take` gets those of one to it.
    pub fn deliver(
        &self,
        messages: &[Message],
        mut give: impl FnMut(usize, &mut Vec<u8>),
        mut take: impl FnMut(usize, &[u8]),
    ) {
        if messages.is_empty() {
            return;
        }
        let (mut sent, mut to, mut from) = (Vec::new(), vec![0; self.size()], vec![0; self.size()]);
        let (mut received, rank) = (Vec::new(), self.rank());
        for r in 0..self.size() {
            for (i, message) in messages.iter().enumerate() {
                if (message.from, message.to) == (rank, r) {
                    give(i, &mut sent);
                    to[r] += message.bytes;
                }
                if (message.from, message.to) == (r, rank) {
                    from[r] += message.bytes;
                }
            }
        }
        received.resize(from.iter().sum(), 0);
        self.team.exchange(&sent, &to, &mut received, &from);
        let mut rest = received.as_slice();
        for r in 0..self.size() {
            for (i, message) in messages.iter().enumerate().filter(|(_, m)| (m.from, m.to) == (r, rank)) {
                take(i, rest.split_off(..message.bytes).expect("all were counted"));
            }
        }
    }

    /// The first member's text.
    pub fn text_of_first(&self, own: &str) -> String {
        String::from_utf8_lossy(&self.bytes_of_first(own.into())).into_owned()
    }

    /// Goes on if everybody can. Where one has an error, all get it, and the first that has one tells of it.
    pub fn agree<T>(&self, result: Result<T>) -> Result<T> {
        if self.size() == 1 {
            return result;
        }
        let sentence = result.as_ref().err().map(ToString::to_string);
        let all = self.bytes_of_all(sentence.as_deref().unwrap_or_default().as_bytes());
        let teller = all.iter().position(|sentence| !sentence.is_empty());
        let Some(teller) = teller else {
            self.ending.store(0, Ordering::Relaxed);
            return result;
        };
        let ours = teller == self.rank();
        self.ending.store(if ours { 1 } else { 2 }, Ordering::Relaxed);
        match result {
            Err(error) => Err(error),
            Ok(_) => Err(Error::Invalid(String::from_utf8_lossy(&all[teller]).into_owned())),
        }
    }

    /// Waits for all members: see [`Team::rest`](super::Team::rest).
    pub fn rest(&self) {
        self.team.rest();
    }

    /// Spreads independent work over the team: see [`Team::queue`].
    pub fn queue(&self, jobs: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        self.team.queue(jobs, work)
    }

    /// What the first member makes of it, for all; or its error.
    pub fn from_first<T: Serialize + DeserializeOwned>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.size() == 1 {
            return work();
        }
        let made = if self.is_first() { work().map(Some) } else { Ok(None) };
        let made = self.agree(made)?;
        let lost = |e: serde_json::Error| invalid!("the first member of the team was not understood: {e}");
        let text = made.as_ref().map(serde_json::to_string).transpose().map_err(lost)?;
        let text = self.text_of_first(&text.unwrap_or_default());
        made.map_or_else(|| serde_json::from_str(&text).map_err(lost), Ok)
    }

    /// What the others know of the error that this member ends with.
    pub fn ending(&self) -> Ending {
        match self.ending.load(Ordering::Relaxed) {
            1 => Ending::Ours,
            2 => Ending::Theirs,
            _ => Ending::Unknown,
        }
    }
}
