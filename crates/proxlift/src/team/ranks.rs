//! A batch that is spread over a team.

use super::{Alone, Team, ordered::add_rows, places::Places};
use crate::{Error, Result};
use bytemuck::{cast_slice, cast_slice_mut};
use serde::{Serialize, de::DeserializeOwned};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

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

/// The members of a team with the batch that they work on.
pub struct Ranks {
    team: Arc<dyn Team>,
    state: Mutex<State>,
    ending: AtomicU8,
}

/// Bytes that one message of a large collection has at most.
const PIECE: usize = 1 << 26;

#[derive(Default)]
struct State {
    places: Places,
    sent: Vec<f32>,
    received: Vec<f32>,
    total: Vec<f32>,
}

static ALONE: LazyLock<Ranks> = LazyLock::new(|| Ranks::new(Arc::new(Alone)));

impl Ranks {
    /// The members of `team`.
    pub fn new(team: Arc<dyn Team>) -> Self {
        Self { team, state: Mutex::default(), ending: AtomicU8::new(0) }
    }

    /// A process of its own.
    pub fn alone() -> &'static Self {
        &ALONE
    }

    /// Which member this is, from 0; the first one has the folder of a run, and speaks.
    pub fn rank(&self) -> usize {
        self.team.rank()
    }

    /// How many members there are.
    pub fn size(&self) -> usize {
        self.team.size()
    }

    /// Whether this is the first member.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a batch whose samples have these homes, and returns the places in it of those that this member works on.
    pub fn spread(&self, homes: impl Iterator<Item = usize>) -> Vec<usize> {
        let places = Places::new(homes.map(|home| home % self.size()).collect(), self.size());
        let own = places.of(self.rank()).collect();
        self.state().places = places;
        own
    }

    /// The samples of the batch, of which this member has `own`.
    pub fn samples(&self, own: usize) -> usize {
        if self.size() == 1 { own } else { self.state().places.at.len() }
    }

    /// The places in the batch of this member's `own` samples.
    pub fn places(&self, own: usize) -> Vec<usize> {
        if self.size() == 1 { (0..own).collect() } else { self.state().places.of(self.rank()).collect() }
    }

    /// `sum += gradients of all samples`, in the order of the batch, those of this member's samples being the rows of `own`.
    /// Every member adds up a part of the numbers, and gets those of the others.
    pub fn add_samples(&self, own: &[f32], sum: &mut [f32]) {
        let (weights, size, rank) = (sum.len(), self.size(), self.rank());
        if size == 1 || weights == 0 {
            return add_rows(own.len() / weights.max(1), |s| &own[s * weights..][..weights], sum);
        }
        let State { places, sent, received, total } = &mut *self.state();
        let part = |r: usize| self.part(weights, r);
        let width = |r: usize| part(r).len();
        sent.clear();
        for r in 0..size {
            own.chunks_exact(weights).for_each(|row| sent.extend_from_slice(&row[part(r)]));
        }
        let (counts, mine) = (&places.counts, width(rank));
        received.resize(places.at.len() * mine, 0.0);
        let to: Vec<usize> = (0..size).map(|r| 4 * counts[rank] * width(r)).collect();
        let from: Vec<usize> = counts.iter().map(|count| 4 * count * mine).collect();
        self.team.exchange(cast_slice(sent), &to, cast_slice_mut(received), &from);
        let first: Vec<usize> = starts(counts);
        total.clear();
        total.extend_from_slice(&sum[part(rank)]);
        let row = |s: usize| &received[(first[places.at[s]] + places.local[s]) * mine..][..mine];
        add_rows(places.at.len(), row, total);
        let from: Vec<usize> = (0..size).map(|r| 4 * width(r)).collect();
        self.team.gather(cast_slice(total), cast_slice_mut(sum), &from);
    }

    /// The numbers of all samples in the order of the batch, `width` for each, those of this member's samples being `own`.
    pub fn of_samples(&self, own: Vec<f64>, width: usize) -> Vec<f64> {
        if self.size() == 1 {
            return own;
        }
        let places = self.state().places.clone();
        let mut all = vec![0.0; places.at.len() * width];
        let from: Vec<usize> = places.counts.iter().map(|count| 8 * count * width).collect();
        self.team.gather(cast_slice(&own), cast_slice_mut(&mut all), &from);
        let first = starts(&places.counts);
        let samples = places.at.iter().zip(&places.local);
        samples.flat_map(|(&at, local)| &all[(first[at] + local) * width..][..width]).copied().collect()
    }

    /// The rows of all samples in the order of the batch, one after the other; they may have any lengths.
    pub fn rows_of_samples(&self, own: Vec<Vec<f32>>) -> Vec<f32> {
        if self.size() == 1 {
            return own.concat();
        }
        let lengths = self.of_samples(own.iter().map(|row| row.len() as f64).collect(), 1);
        let places = self.state().places.clone();
        let (mut from, mut first) = (vec![0; self.size()], Vec::with_capacity(lengths.len()));
        for (&at, length) in places.at.iter().zip(&lengths) {
            first.push(from[at]);
            from[at] += *length as usize;
        }
        let starts = starts(&from);
        let mut all = vec![0.0; from.iter().sum()];
        let bytes: Vec<usize> = from.iter().map(|numbers| 4 * numbers).collect();
        self.team.gather(cast_slice(&own.concat()), cast_slice_mut(&mut all), &bytes);
        let rows = places.at.iter().zip(first).zip(lengths);
        rows.flat_map(|((&at, first), length)| &all[starts[at] + first..][..length as usize])
            .copied()
            .collect()
    }

    /// Brings `length` numbers of each sample of the batch that `has` some from its home to where it is worked on. `give` adds
    /// those of the sample at a place of the batch, `take` gets those of this member's sample of that number.
    pub fn to_places(
        &self,
        length: usize,
        samples: usize,
        has: impl Fn(usize) -> bool,
        mut give: impl FnMut(usize, &mut Vec<f32>),
        mut take: impl FnMut(usize, &[f32]),
    ) {
        let places = self.places_of_all(samples);
        self.carry(&places.home, &places.at, length, has, &mut give, |s, row| take(places.local[s], row));
    }

    /// Brings `length` numbers of each sample of the batch home from where it was worked on.
    pub fn to_homes(
        &self,
        length: usize,
        samples: usize,
        mut give: impl FnMut(usize, &mut Vec<f32>),
        take: impl FnMut(usize, &[f32]),
    ) {
        let places = self.places_of_all(samples);
        let mut give = |s: usize, to: &mut Vec<f32>| give(places.local[s], to);
        self.carry(&places.at, &places.home, length, |_| true, &mut give, take);
    }

    fn places_of_all(&self, samples: usize) -> Places {
        if self.size() == 1 { Places::new(vec![0; samples], 1) } else { self.state().places.clone() }
    }

    fn carry(
        &self,
        home: &[usize],
        goal: &[usize],
        length: usize,
        has: impl Fn(usize) -> bool,
        give: &mut dyn FnMut(usize, &mut Vec<f32>),
        mut take: impl FnMut(usize, &[f32]),
    ) {
        let (size, rank) = (self.size(), self.rank());
        let between = |a: usize, b: usize| {
            (0..home.len()).filter(move |&s| home[s] == a && goal[s] == b).filter(|&s| has(s))
        };
        let (mut sent, mut own) = (Vec::new(), Vec::new());
        between(rank, rank).for_each(|s| {
            own.clear();
            give(s, &mut own);
            take(s, &own);
        });
        let moved = |s: &usize| home[*s] != goal[*s] && has(*s);
        if (0..home.len()).filter(moved).count() == 0 {
            return;
        }
        let others = |r: usize| r != rank;
        (0..size).filter(|&r| others(r)).for_each(|r| between(rank, r).for_each(|s| give(s, &mut sent)));
        let bytes = |a, b| if a == b { 0 } else { 4 * length * between(a, b).count() };
        let to: Vec<usize> = (0..size).map(|r| bytes(rank, r)).collect();
        let from: Vec<usize> = (0..size).map(|r| bytes(r, rank)).collect();
        let mut received = vec![0.0_f32; from.iter().sum::<usize>() / 4];
        self.team.exchange(cast_slice(&sent), &to, cast_slice_mut(&mut received), &from);
        let mut rows = received.chunks_exact(length);
        for r in (0..size).filter(|&r| others(r)) {
            between(r, rank).zip(&mut rows).for_each(|(s, row)| take(s, row));
        }
    }

    /// The part of `number` pieces of work that is a member's.
    pub fn part(&self, number: usize, rank: usize) -> Range<usize> {
        rank * number / self.size()..(rank + 1) * number / self.size()
    }

    /// The results of `number` pieces of work, this member's being its [part](Self::part).
    pub fn of_parts(&self, own: Vec<f64>, number: usize) -> Vec<f64> {
        if self.size() == 1 {
            return own;
        }
        let from: Vec<usize> = (0..self.size()).map(|rank| 8 * self.part(number, rank).len()).collect();
        let mut all = vec![0.0; number];
        self.team.gather(cast_slice(&own), cast_slice_mut(&mut all), &from);
        all
    }

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

impl std::fmt::Debug for Ranks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "member {} of {}", self.rank(), self.size())
    }
}

/// Where each of several parts starts, one after the other.
fn starts(lengths: &[usize]) -> Vec<usize> {
    let mut next = 0;
    let start = |&length: &usize| {
        next += length;
        next - length
    };
    lengths.iter().map(start).collect()
}
