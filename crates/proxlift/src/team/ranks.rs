//! A batch that is spread over a team.

use super::{Alone, Team, ordered::add_rows, places::Places};
use bytemuck::{cast_slice, cast_slice_mut};
use std::ops::Range;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The members of a team with the batch that they work on.
pub struct Ranks {
    pub(super) team: Arc<dyn Team>,
    state: Mutex<State>,
    pub(super) ending: AtomicU8,
}

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
        if self.size() == 1 {
            return (0..homes.count()).collect();
        }
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
