//! The outcomes of all trainings, by what they are for; several seeds become a mean and a band.

use super::runs::{Experiment, Method};
use super::training::{Epoch, Training};
use proxlift::training::rate_search::PAPER_RATES;
use proxlift::{Result, network::Network};

pub struct Results(pub Vec<Training>);

/// Mean, least and largest over all seeds.
pub type Spread = (f64, f64, f64);

/// An epoch over all seeds.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub epoch: usize,
    /// Seconds of training, the mean.
    pub seconds: f64,
    pub loss: Spread,
    pub psnr: Option<Spread>,
}

/// The course of a training, over all seeds that did not diverge.
#[derive(Clone, Debug)]
pub struct Course {
    /// From epoch 0.
    pub points: Vec<Point>,
    pub diverged: usize,
}

impl Course {
    fn of(trainings: &[&Training]) -> Self {
        let outcomes = trainings.iter().map(|training| training.outcome());
        let good: Vec<&[Epoch]> = outcomes.filter(|o| o.diverged.is_none()).map(|o| &o.epochs[..]).collect();
        let length = good.iter().map(|epochs| epochs.len()).min().unwrap_or(0);
        let points = (0..length).map(|i| {
            let spread = |of: fn(&Epoch) -> Option<f64>| spread(good.iter().filter_map(|e| of(&e[i])));
            Point {
                epoch: good[0][i].epoch,
                seconds: spread(|e| Some(e.seconds)).map_or(0.0, |seconds| seconds.0),
                loss: spread(|e| Some(e.loss)).unwrap_or_default(),
                psnr: spread(|e| e.psnr),
            }
        });
        Self { points: points.collect(), diverged: trainings.len() - good.len() }
    }

    pub fn losses(&self) -> Vec<f64> {
        self.points.iter().map(|p| p.loss.0).collect()
    }

    /// The mean loss at the end; infinite where all seeds diverged.
    pub fn final_loss(&self) -> f64 {
        self.points.last().map_or(f64::INFINITY, |p| p.loss.0)
    }

    pub fn final_loss_text(&self) -> String {
        let loss = self.final_loss();
        if loss.is_finite() { format!("{loss:.3}") } else { "diverged".into() }
    }

    pub fn seconds(&self) -> f64 {
        self.points.last().map_or(0.0, |p| p.seconds)
    }
}

fn spread(values: impl Iterator<Item = f64> + Clone) -> Option<Spread> {
    let count = values.clone().count();
    let (low, high) = (values.clone().fold(f64::INFINITY, f64::min), values.clone().fold(f64::MIN, f64::max));
    (count > 0).then(|| (values.sum::<f64>() / count as f64, low, high))
}

impl Results {
    /// What was trained by a method for an experiment: one for each seed.
    pub fn of(&self, method: Method, experiment: Experiment) -> Vec<&Training> {
        let fits =
            |training: &&Training| (training.run.method, training.run.experiment) == (method, experiment);
        self.0.iter().filter(fits).collect()
    }

    pub fn course(&self, method: Method, experiment: Experiment) -> Course {
        Course::of(&self.of(method, experiment))
    }

    pub fn sgd(&self, depth: usize, rate: f64) -> Course {
        self.course(Method::Sgd, Experiment::Compare { depth, rate: Some(rate) })
    }

    /// The rate of SGD's grid with the least loss at the end, averaged over seeds; one that diverged never wins. The
    /// paper's grid has no rate above `PAPER_RATES`'.
    pub fn best_rate(&self, method: Method, depth: usize) -> Option<f64> {
        let most = if method == Method::SgdWide { f64::INFINITY } else { PAPER_RATES[PAPER_RATES.len() - 1] };
        let rates = self.0.iter().filter_map(|training| match training.run.experiment {
            Experiment::Compare { depth: d, rate } if d == depth => rate.filter(|r| *r <= most),
            _ => None,
        });
        let courses = rates.map(|rate| (rate, self.sgd(depth, rate)));
        let sound = courses.filter(|(_, course)| course.diverged == 0 && course.final_loss().is_finite());
        sound.min_by(|a, b| a.1.final_loss().total_cmp(&b.1.final_loss())).map(|(rate, _)| rate)
    }

    /// What was trained by a method at a depth in the comparison; SGD with its best rate.
    pub fn compared(&self, method: Method, depth: usize) -> Vec<&Training> {
        let (method, rate) = match method {
            Method::Sgd | Method::SgdWide => (Method::Sgd, self.best_rate(method, depth)),
            method => (method, None),
        };
        self.of(method, Experiment::Compare { depth, rate })
    }

    pub fn compared_course(&self, method: Method, depth: usize) -> Course {
        Course::of(&self.compared(method, depth))
    }

    /// The networks of each method at a depth, one for each seed that did not diverge; methods without any are left out.
    pub fn networks(&self, depth: usize) -> Result<Vec<(Method, Vec<Network<f32>>)>> {
        let all = Method::ALL.into_iter().map(|method| {
            let models = self.compared(method, depth).into_iter().filter_map(Training::model);
            let networks = models.map(|model| Ok(model?.network)).collect::<Result<Vec<_>>>()?;
            Ok((method, networks))
        });
        Ok(all.collect::<Result<Vec<_>>>()?.into_iter().filter(|(_, some)| !some.is_empty()).collect())
    }
}
