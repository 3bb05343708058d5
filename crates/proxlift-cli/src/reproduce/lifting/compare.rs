//! From trainings to comparisons: the best rate of every method, seeds as a mean and a spread, and a verdict.

use super::job::{Job, Point, Task};
use super::method::Method;
use crate::chart::Style;
use serde::Serialize;

/// Mean, least and largest over all seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub least: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        Self {
            mean: values.clone().sum::<f64>() / count,
            least: values.clone().fold(f64::INFINITY, f64::min),
            most: values.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Of a number that no seed changes.
    pub fn exactly(value: f64) -> Self {
        Self { mean: value, least: value, most: value }
    }

    /// In the notation for numbers that are very small: the mean, and the spread.
    pub fn powers(&self) -> String {
        format!("{:.1e} ({:.1e} to {:.1e})", self.mean, self.least, self.most)
    }

    /// With so many digits: the mean, and the spread where there is one.
    pub fn text(&self, digits: usize) -> String {
        if self.least == self.most {
            return format!("{:.digits$}", self.mean);
        }
        format!("{:.digits$} ({:.digits$} to {:.digits$})", self.mean, self.least, self.most)
    }
}

/// An epoch over all seeds.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    pub epoch: usize,
    pub seconds: f64,
    pub loss: Spread,
    pub score: Spread,
}

/// A method in a case, at the best of its rates: that with the least loss at the end on what it was trained on.
#[derive(Clone, Debug)]
pub struct Entry {
    pub label: String,
    pub style: Style,
    pub lifted: bool,
    /// Whether it is back-propagation.
    pub plain: bool,
    /// Whether it differs from back-propagation in the rule alone.
    pub pair: bool,
    pub rate: f64,
    pub course: Vec<Epoch>,
    pub diverged: usize,
}

impl Entry {
    pub fn last(&self) -> Option<&Epoch> {
        self.course.last()
    }

    fn of(jobs: &[&Job]) -> Self {
        let method = jobs[0].method;
        let (label, style, pair) = match &jobs[0].task {
            Task::Relative(_, relative) => (relative.label().to_string(), relative.style(), false),
            _ => (method.label(), method.style(), true),
        };
        let (lifted, plain) = (method.is_lifted(), method == Method::Backprop);
        let sound: Vec<&[Point]> =
            jobs.iter().map(|job| job.outcome()).filter(|o| !o.diverged).map(|o| &o.points[..]).collect();
        let length = sound.iter().map(|points| points.len()).min().unwrap_or(0);
        let course = (0..length).map(|i| {
            let spread = |of: fn(&Point) -> f64| Spread::of(sound.iter().map(move |points| of(&points[i])));
            Epoch {
                epoch: sound[0][i].epoch,
                seconds: spread(|p| p.seconds).mean,
                loss: spread(|p| p.loss),
                score: spread(|p| p.score),
            }
        });
        let (course, diverged) = (course.collect(), jobs.len() - sound.len());
        Self { label, style, lifted, plain, pair, rate: jobs[0].rate, course, diverged }
    }

    /// Loss at the end, by which rates are chosen; infinite where a seed diverged.
    fn final_loss(&self) -> f64 {
        self.last().filter(|_| self.diverged == 0).map_or(f64::INFINITY, |last| last.loss.mean)
    }
}

/// All methods on the same task.
#[derive(Clone, Debug)]
pub struct Case {
    pub experiment: &'static str,
    pub name: String,
    pub entries: Vec<Entry>,
}

/// What a comparison says of the first of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every seed is better than every seed of the second.
    Wins,
    /// The spreads meet.
    Even,
    /// Every seed is worse.
    Loses,
}

impl Verdict {
    /// Where more is better.
    pub fn of(first: Spread, second: Spread) -> Self {
        if first.least > second.most {
            Self::Wins
        } else if first.most < second.least {
            Self::Loses
        } else {
            Self::Even
        }
    }

    pub fn words(self, first: &str, second: &str) -> String {
        match self {
            Self::Wins => format!("{first} wins"),
            Self::Even => "no difference".into(),
            Self::Loses => format!("{second} wins"),
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Self::Wins => "yes",
            Self::Even => "part",
            Self::Loses => "no",
        }
    }
}

impl Case {
    /// The cases of an experiment, in their order.
    pub fn all(experiment: &str, jobs: &[Job]) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for job in jobs.iter().filter(|job| job.experiment == experiment) {
            if cases.iter().all(|case| case.name != job.case) {
                let same =
                    jobs.iter().filter(|other| (other.experiment, &other.case) == (experiment, &job.case));
                cases.push(Self::of(job.experiment, &job.case, &same.collect::<Vec<_>>()));
            }
        }
        cases
    }

    fn of(experiment: &'static str, name: &str, jobs: &[&Job]) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for job in jobs {
            let of_rate: Vec<&Job> = jobs
                .iter()
                .copied()
                .filter(|other| other.who() == job.who() && other.rate == job.rate)
                .collect();
            let entry = Entry::of(&of_rate);
            match entries.iter_mut().find(|known| known.label == entry.label) {
                None => entries.push(entry),
                Some(known) if entry.final_loss() < known.final_loss() => *known = entry,
                Some(_) => {}
            }
        }
        Self { experiment, name: name.into(), entries }
    }

    pub fn back_propagation(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.plain && entry.last().is_some())
    }

    /// Of those that differ from back-propagation in the rule alone, that with the least loss at the end of the training.
    pub fn best_lifted(&self) -> Option<&Entry> {
        let lifted = self.entries.iter().filter(|entry| entry.lifted && entry.pair && entry.last().is_some());
        lifted.min_by(|a, b| a.final_loss().total_cmp(&b.final_loss()))
    }

    /// Of the best lifted method against back-propagation, by the score on what neither has seen.
    pub fn verdict(&self) -> Option<Verdict> {
        let (lifted, plain) = (self.best_lifted()?.last()?.score, self.back_propagation()?.last()?.score);
        Some(Verdict::of(lifted, plain))
    }
}

/// Two ways held against each other by one number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Duel {
    pub about: String,
    pub first: String,
    pub second: String,
    pub of_first: Spread,
    pub of_second: Spread,
    pub verdict: Verdict,
}

impl Duel {
    /// Where more is better.
    pub fn more(about: &str, (first, of_first): (&str, Spread), (second, of_second): (&str, Spread)) -> Self {
        let verdict = Verdict::of(of_first, of_second);
        Self { about: about.into(), first: first.into(), second: second.into(), of_first, of_second, verdict }
    }

    pub fn words(&self) -> String {
        self.verdict.words(&self.first, &self.second)
    }
}
