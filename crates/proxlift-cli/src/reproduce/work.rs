//! The work: independent trainings side by side, each on one thread, the longest first.
//!
//! Mini-batches are small, and two trainings on a thread each take less time than one after the other on two threads.
//! Results are the same bits for any number of threads; the time of a training is that of one thread.

use super::{pictures::Pictures, training::Training};
use crate::output::{self, Progress};
use crate::train::announce::duration;
use crate::{flags::pool, train::interrupt, workers::side_by_side};
use anyhow::Result;
use proxlift::image::Image;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const STEPS: f64 = 1000.0;

/// Does all that are not done yet, until Ctrl-C. After a failure, those that are under way are finished first.
pub fn carry_out(trainings: &[Training], pictures: &Pictures, noisy: &[Image], threads: usize) -> Result<()> {
    let numbered = trainings.iter().enumerate();
    let mut waiting: Vec<(usize, &Training)> = numbered.filter(|(_, training)| !training.is_done()).collect();
    waiting.sort_by(|(_, a), (_, b)| b.run.cost.total_cmp(&a.run.cost));
    let (all, done) = (trainings.len(), trainings.len() - waiting.len());
    if done > 0 {
        output::note(format_args!("{done} of {all} runs are done already"));
    }
    let board = Board::new(trainings);
    side_by_side(&waiting, threads, |&(i, training)| {
        if !interrupt::asked() {
            let advance = |share: f64| drop(board.advance(i, share));
            pool(Some(1))?.install(|| training.train(pictures, noisy, &advance))?;
            board.finish(i);
        }
        Ok(())
    })
}

/// How far all trainings are, weighed by what they cost.
struct Board<'a> {
    trainings: &'a [Training],
    /// The share of each that is done.
    shares: Mutex<Vec<f64>>,
    /// The share of all work that was done before.
    before: f64,
    start: Instant,
    bar: Progress,
}

impl<'a> Board<'a> {
    fn new(trainings: &'a [Training]) -> Self {
        let shares: Vec<f64> = trainings.iter().map(|t| if t.is_done() { 1.0 } else { 0.0 }).collect();
        let before = share(trainings, &shares);
        let bar = Progress::with_text((STEPS * before) as usize, STEPS as usize);
        Self { trainings, shares: Mutex::new(shares), before, start: Instant::now(), bar }
    }

    /// Shows that this share of training `i` is done; the share of all work that is, and how many trainings are.
    fn advance(&self, i: usize, done: f64) -> (f64, String) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares[i] = done;
        let share = share(self.trainings, &shares);
        let count = self.trainings.iter().filter(|training| training.is_done()).count();
        let count = format!("{count:>3} of {}", self.trainings.len());
        self.bar.show((STEPS * share) as usize, format!("{} trainings", count.trim_start()));
        (share, count)
    }

    fn finish(&self, i: usize) {
        let training = &self.trainings[i];
        if !training.is_done() {
            return;
        }
        let (share, count) = self.advance(i, 1.0);
        let left = self.start.elapsed().as_secs_f64() * (1.0 - share) / (share - self.before).max(1e-9);
        let (name, loss) = (&training.run.name, training.outcome().final_loss());
        let loss = if loss.is_finite() { format!("loss {loss:.3}") } else { "diverged".into() };
        let (took, left) = (duration(training.outcome().seconds()), duration(left));
        output::note(format_args!("{count}  {name:<32} {loss} in {took}; about {left} left"));
    }
}

fn share(trainings: &[Training], shares: &[f64]) -> f64 {
    let costs = || trainings.iter().map(|training| training.run.cost);
    let done: f64 = costs().zip(shares).map(|(cost, share)| cost * share).sum();
    done / costs().sum::<f64>().max(1.0)
}
