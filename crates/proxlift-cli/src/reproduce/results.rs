//! The outcomes of all runs, by what they are for; several seeds become a mean and a band.

use super::outcome::Done;
use super::plan::{Method, Role};
use proxlift::Result;
use proxlift::model::Model;
use proxlift::training::rate_search::PAPER_RATES;

/// Everything that was trained.
pub struct Results(Vec<Done>);

/// An epoch over all seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Epochs done.
    pub epoch: usize,
    /// Seconds of training, the mean over seeds.
    pub seconds: f64,
    /// Loss: mean, least, largest.
    pub loss: (f64, f64, f64),
    /// PSNR on the test images: mean, least, largest.
    pub psnr: Option<(f64, f64, f64)>,
    /// The mean energy.
    pub energy: Option<f64>,
}

/// The course of a training, over all seeds that did not diverge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// From epoch 0.
    pub points: Vec<Point>,
    /// Seeds that diverged.
    pub diverged: usize,
}

impl Course {
    fn of(runs: &[&Done]) -> Self {
        let good: Vec<&Done> = runs.iter().copied().filter(|d| d.outcome.diverged.is_none()).collect();
        let length = good.iter().map(|d| d.outcome.epochs.len()).min().unwrap_or(0);
        let points = (0..length).map(|i| {
            let all = || good.iter().map(|d| &d.outcome.epochs[i]);
            let psnr: Vec<f64> = all().filter_map(|e| e.psnr).collect();
            let energy: Vec<f64> = all().filter_map(|e| e.energy).collect();
            Point {
                epoch: all().next().map_or(i, |e| e.epoch),
                seconds: spread(all().map(|e| e.seconds)).0,
                loss: spread(all().map(|e| e.loss)),
                psnr: (!psnr.is_empty()).then(|| spread(psnr.iter().copied())),
                energy: (!energy.is_empty()).then(|| spread(energy.iter().copied()).0),
            }
        });
        Self { points: points.collect(), diverged: runs.len() - good.len() }
    }

    /// The mean losses, epoch by epoch.
    pub fn losses(&self) -> Vec<f64> {
        self.points.iter().map(|p| p.loss.0).collect()
    }

    /// The mean loss at the end; infinite where all seeds diverged.
    pub fn final_loss(&self) -> f64 {
        self.points.last().map_or(f64::INFINITY, |p| p.loss.0)
    }

    /// The same for a table.
    pub fn final_loss_text(&self) -> String {
        let loss = self.final_loss();
        if loss.is_finite() { format!("{loss:.3}") } else { "diverged".into() }
    }

    /// The mean PSNR at the end.
    pub fn final_psnr(&self) -> Option<f64> {
        self.points.last().and_then(|p| p.psnr).map(|p| p.0)
    }

    /// The seconds of the whole training.
    pub fn seconds(&self) -> f64 {
        self.points.last().map_or(0.0, |p| p.seconds)
    }

    /// The first epoch whose mean loss is at most `level`.
    pub fn reaches(&self, level: f64) -> Option<&Point> {
        self.points.iter().find(|p| p.loss.0 <= level)
    }
}

/// Mean, least and largest.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let (mut sum, mut count, mut low, mut high) = (0.0, 0.0_f64, f64::INFINITY, f64::NEG_INFINITY);
    for v in values {
        (sum, count, low, high) = (sum + v, count + 1.0, low.min(v), high.max(v));
    }
    (sum / count, low, high)
}

impl Results {
    /// All that was done.
    pub fn new(done: Vec<Done>) -> Self {
        Self(done)
    }

    /// All runs.
    pub fn all(&self) -> &[Done] {
        &self.0
    }

    fn with(&self, is: impl Fn(&Role) -> bool) -> Vec<&Done> {
        self.0.iter().filter(|done| is(&done.run.role)).collect()
    }

    /// A form of LB-FB with a batch size.
    pub fn batch(&self, method: Method, size: usize) -> Course {
        Course::of(&self.with(|role| *role == Role::Batch { method, size }))
    }

    /// A form of LB-FB on a fixed batch.
    pub fn energy(&self, method: Method) -> Vec<&Done> {
        self.with(|role| *role == Role::Energy { method })
    }

    /// SGD at a depth with a rate.
    pub fn sgd(&self, depth: usize, rate: f64) -> Course {
        Course::of(&self.with(|role| *role == Role::Compare { method: Method::Sgd, depth, rate: Some(rate) }))
    }

    /// The rate of SGD's grid with the least loss at the end, averaged over seeds; one that diverged never wins. The
    /// paper's grid has no rate above `PAPER_RATES`'.
    pub fn best_rate(&self, method: Method, depth: usize) -> Option<f64> {
        let most = if method == Method::SgdWide { f64::INFINITY } else { PAPER_RATES[PAPER_RATES.len() - 1] };
        let rates = self.0.iter().filter_map(|done| match done.run.role {
            Role::Compare { method: Method::Sgd, depth: d, rate } if d == depth => {
                rate.filter(|r| *r <= most)
            }
            _ => None,
        });
        let courses = rates.map(|rate| (rate, self.sgd(depth, rate)));
        let sound = courses.filter(|(_, course)| course.diverged == 0 && course.final_loss().is_finite());
        sound.min_by(|a, b| a.1.final_loss().total_cmp(&b.1.final_loss())).map(|(rate, _)| rate)
    }

    fn compared(&self, method: Method, depth: usize) -> Vec<&Done> {
        let (method, rate) = match method {
            Method::Sgd | Method::SgdWide => (Method::Sgd, self.best_rate(method, depth)),
            method => (method, None),
        };
        self.with(|role| *role == Role::Compare { method, depth, rate })
    }

    /// A method at a depth; SGD with its best rate.
    pub fn course(&self, method: Method, depth: usize) -> Course {
        Course::of(&self.compared(method, depth))
    }

    /// Its networks, one for each seed that did not diverge.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn models(&self, method: Method, depth: usize) -> Result<Vec<Model>> {
        self.compared(method, depth).into_iter().filter_map(|done| done.model().transpose()).collect()
    }

    /// What a trainer calls itself, for a method at a depth.
    pub fn trainer(&self, method: Method, depth: usize) -> Option<&str> {
        self.compared(method, depth).first().map(|done| done.outcome.trainer.as_str())
    }
}
