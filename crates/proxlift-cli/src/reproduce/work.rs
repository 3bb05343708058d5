//! The work: independent trainings side by side, each on one thread, the longest first.
//!
//! Mini-batches are small, and two trainings on a thread each take less time than one after the other on two threads.
//! Results are the same bits for any number of threads; the time of a run is that of one thread.

use super::folder::Folder;
use super::outcome::{Done, finished};
use super::pictures::Pictures;
use super::plan::Run;
use super::train_one::train_one;
use crate::output::{self, Progress};
use crate::train::announce::duration;
use crate::train::interrupt;
use proxlift::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Steps of the progress bar.
const STEPS: f64 = 1000.0;

/// Does all runs that are not done yet; none if it was stopped by Ctrl-C.
///
/// # Errors
/// When a run cannot be written; those that are under way are finished first.
pub fn carry_out(
    runs: Vec<Run>,
    pictures: &Pictures,
    folder: &Folder,
    threads: usize,
) -> Result<Option<Vec<Done>>> {
    let marked: Vec<String> = runs.iter().map(|run| fingerprint(run, pictures)).collect();
    let places: Vec<_> = runs.iter().zip(&marked).map(|(run, mark)| folder.run(run, mark)).collect();
    let found: Vec<_> = places.iter().zip(&marked).map(|(place, mark)| finished(place, mark)).collect();
    let mut waiting: Vec<usize> = (0..runs.len()).filter(|&i| found[i].is_none()).collect();
    waiting.sort_by(|&a, &b| runs[b].cost.total_cmp(&runs[a].cost));
    if waiting.len() < runs.len() {
        output::note(format_args!("{} of {} runs are done already", runs.len() - waiting.len(), runs.len()));
    }
    let noisy = match runs.first() {
        Some(run) => pictures.noisy(run.config.sigma)?,
        None => Vec::new(),
    };
    let board = Board::new(&runs, &waiting);
    let results = Mutex::new(found);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let lock_failure = || failure.lock().unwrap_or_else(PoisonError::into_inner);
    let worker = || {
        let pool = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
            Ok(pool) => pool,
            Err(error) => {
                *lock_failure() = Some(Error::invalid(format!("cannot start threads: {error}")));
                return;
            }
        };
        while let Some(&i) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
            if failed.load(Ordering::Relaxed) || interrupt::asked() {
                return;
            }
            let advance = |share: f64| board.advance(i, share);
            let one = || train_one(&runs[i], &marked[i], pictures, &noisy, &places[i], &advance);
            match pool.install(one) {
                Ok(Some(outcome)) => {
                    board.finish(i, &runs[i], outcome.final_loss(), outcome.seconds());
                    results.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(outcome);
                }
                Ok(None) => return,
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    lock_failure().get_or_insert(error);
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(waiting.len()) {
            scope.spawn(worker);
        }
    });
    drop(board);
    if let Some(error) = lock_failure().take() {
        return Err(error);
    }
    let outcomes = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done = runs.into_iter().zip(outcomes).zip(places);
    Ok(done.map(|((run, outcome), folder)| Some(Done { run, outcome: outcome?, folder })).collect())
}

/// Settings and pictures in a word.
fn fingerprint(run: &Run, pictures: &Pictures) -> String {
    format!("{}-{}", run.config.fingerprint(), pictures.fingerprint)
}

/// How far all runs are.
struct Board {
    costs: Vec<f64>,
    /// What the runs cost that were done before.
    before: f64,
    count: usize,
    start: Instant,
    state: Mutex<State>,
}

struct State {
    shares: Vec<f64>,
    done: usize,
    bar: Progress,
}

impl Board {
    fn new(runs: &[Run], waiting: &[usize]) -> Self {
        let costs: Vec<f64> = runs.iter().map(|run| run.cost).collect();
        let mut shares = vec![1.0; runs.len()];
        waiting.iter().for_each(|&i| shares[i] = 0.0);
        let all: f64 = costs.iter().sum();
        let before = all - waiting.iter().map(|&i| costs[i]).sum::<f64>();
        let bar = Progress::with_text((STEPS * before / all.max(1.0)) as usize, STEPS as usize);
        let done = runs.len() - waiting.len();
        let state = Mutex::new(State { shares, done, bar });
        Self { costs, before, count: runs.len(), start: Instant::now(), state }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share of all work that is done.
    fn share(&self, state: &State) -> f64 {
        let done: f64 = state.shares.iter().zip(&self.costs).map(|(share, cost)| share * cost).sum();
        done / self.costs.iter().sum::<f64>().max(1.0)
    }

    fn advance(&self, i: usize, share: f64) {
        let mut state = self.lock();
        state.shares[i] = share;
        let text = format!("{} of {} trainings", state.done, self.count);
        state.bar.show((STEPS * self.share(&state)) as usize, text);
    }

    fn finish(&self, i: usize, run: &Run, loss: f64, seconds: f64) {
        let mut state = self.lock();
        state.shares[i] = 1.0;
        state.done += 1;
        let (share, before) = (self.share(&state), self.before / self.costs.iter().sum::<f64>().max(1.0));
        let left = self.start.elapsed().as_secs_f64() * (1.0 - share) / (share - before).max(1e-9);
        let loss = if loss.is_finite() { format!("loss {loss:.3}") } else { "diverged".into() };
        let text = format!(
            "{:>3} of {}  {:<32} {loss} in {}; about {} left",
            state.done,
            self.count,
            run.name,
            duration(seconds),
            duration(left)
        );
        drop(state);
        output::note(text);
    }
}
