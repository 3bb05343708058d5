//! Networks that are trained to be inverted, and how far each method comes.

use crate::reproduce::lifting::pieces::{SIGMA, pairs};
use anyhow::Result;
use proxlift::dataset::{ImageSet, synthetic::dead_leaves};
use proxlift::engine;
use proxlift::image::Channels;
use proxlift::lifting::{
    Batch, ByProx, Dense, GradientDescent, Inversion, InversionOptions, Inverted, Loss, Network, Regulariser,
    Rows, Rule, Trainer, Variation,
};
use proxlift::prox::{BoxClip, Identity, Relu};
use proxlift::random::seeded;
use proxlift::solver::TotalVariation;
use proxlift::training::{Config, Descent, EpochRecord, Metric, Rate, Schedule, Session, Settings};
use serde::{Deserialize, Serialize};

/// The side of the denoiser's pictures, and of the encoder's.
const SIDE: usize = 32;
const SMALL: usize = 8;
/// The widths of the autoencoder whose first half is the encoder.
const WIDTHS: [usize; 5] = [SMALL * SMALL, 96, 40, 96, SMALL * SMALL];
const STEPS: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Denoiser,
    Encoder,
}

impl Kind {
    pub const ALL: [Self; 2] = [Self::Denoiser, Self::Encoder];

    /// What is known of the input, without total variation and with it.
    pub fn regularisers(self) -> [&'static str; 2] {
        match self {
            Self::Denoiser => ["denoiser", "denoiser, total variation"],
            Self::Encoder => ["encoder, inputs from 0 to 1", "encoder, total variation"],
        }
    }
}

/// The inversion of a network with and without total variation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    pub kind: Kind,
    pub passes: f64,
    /// Pictures to find; for the encoder, four times as many.
    pub pictures: usize,
    pub seed: u64,
}

/// How far a method is after so many passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub passes: f64,
    pub objective: f64,
    pub misfit: f64,
}

/// What a method found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Way {
    pub end: State,
    /// `||z - truth|| / ||truth||`.
    pub distance: f64,
    /// At some numbers of passes, the same for all.
    pub course: Vec<State>,
}

/// Both methods on the same problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Both {
    pub lifted: Way,
    pub gradient: Way,
}

impl Search {
    /// Without total variation, and with it.
    pub fn work(self) -> Result<[Both; 2]> {
        let variation = |side| Variation::new((1, side, side), TotalVariation::Isotropic);
        match self.kind {
            Kind::Denoiser => {
                let network = self.denoiser()?;
                let (noisy, _) = pairs(200 + 2 * self.seed, 0, self.pictures, SIDE)?;
                let truth = Rows::new(SIDE * SIDE, double(&noisy))?;
                let start = network.forward(&truth).output().clone();
                let free = self.solve(&network, &truth, &start, (&ByProx(Identity), 0.0))?;
                Ok([free, self.solve(&network, &truth, &start, (&variation(SIDE)?, 1e-4))?])
            }
            Kind::Encoder => {
                let (network, patches) = self.encoder()?;
                let count = (4 * self.pictures).min(patches.samples()) * patches.width();
                let truth = Rows::new(patches.width(), double(&patches.data()[..count]))?;
                let start = Rows::new(truth.width(), vec![0.5; count])?;
                let bounds = ByProx(BoxClip::interval(vec![0.0], vec![1.0])?);
                let bounded = self.solve(&network, &truth, &start, (&bounds, 1.0))?;
                Ok([bounded, self.solve(&network, &truth, &start, (&variation(SMALL)?, 1e-3))?])
            }
        }
    }

    fn solve(
        self,
        network: &Network<f64>,
        truth: &Rows<f64>,
        start: &Rows<f64>,
        (regulariser, alpha): (&dyn Regulariser<f64>, f64),
    ) -> Result<Both> {
        let y = network.forward(truth).output().clone();
        let options =
            InversionOptions { alpha, tolerance: 0.0, passes: self.passes, ..InversionOptions::default() };
        let problem = Inversion::new(network, &y, regulariser, options)?;
        let way = |found: &Inverted<f64>| self.way(found, truth);
        Ok(Both { lifted: way(&problem.lifted(start)?), gradient: way(&problem.descent(start)?) })
    }

    /// All numbers are of one sample, on average.
    fn way(self, found: &Inverted<f64>, truth: &Rows<f64>) -> Way {
        let square = |a: f64| a * a;
        let apart: f64 = found.z.data().iter().zip(truth.data()).map(|(a, b)| square(a - b)).sum();
        let distance = (apart / truth.data().iter().map(|b| square(*b)).sum::<f64>()).sqrt();
        let each = 1.0 / truth.samples() as f64;
        let state = |passes: f64| {
            let by_then = found.history.iter().rev().find(|at| at.passes <= passes);
            by_then.map_or_else(State::default, |at| State {
                passes,
                objective: each * at.objective,
                misfit: each * at.misfit,
            })
        };
        let end =
            State { passes: found.history.last().map_or(0.0, |last| last.passes), ..state(f64::INFINITY) };
        let course = grid(self.passes).map(state).collect();
        Way { end, distance, course }
    }

    /// The paper's denoiser after some seconds of training.
    fn denoiser(self) -> Result<Network<f64>> {
        let settings =
            Settings { depth: Some(6), features: Some(8), epochs: Some(10), ..Settings::default() };
        let settings = Settings { count: Some(200), sigma: Some(f64::from(SIGMA)), ..settings };
        let config = Config::resolve(&Settings { seed: Some(self.seed), ..settings })?;
        let patches = config.patches(ImageSet::embedded_train(50, 64, Channels::Grey, self.seed)?.into())?;
        let mut session = Session::new(&config, config.network()?, &patches)?;
        session.run(&*engine::standard(), &mut |_: &EpochRecord| ())?;
        Ok(Network::from_denoiser(&session.network.cast::<f64>(), SIDE, SIDE)?)
    }

    /// The first half of an autoencoder, and the patches that it was trained on.
    fn encoder(self) -> Result<(Network<f64>, Rows<f32>)> {
        let (across, wide) = (16, WIDTHS[0]);
        let picture = dead_leaves(300 + self.seed, 0, across * SMALL, across * SMALL, Channels::Grey)?;
        let from = |i: usize| i * SMALL..(i + 1) * SMALL;
        let patch = |i: usize| picture.crop(from(i / across), from(i % across)).data().to_vec();
        let x = Rows::new(wide, (0..across * across).flat_map(patch).collect())?;
        let mut rng = seeded(self.seed);
        let mut dense = |k: usize| Dense::random(WIDTHS[k], WIDTHS[k + 1], 1.0, &mut rng);
        let network = Network::new(Loss::Squared).layer(dense(0)?, Relu).layer(dense(1)?, Identity);
        let mut network: Network<f32> = network.layer(dense(2)?, Relu).output(dense(3)?)?;
        let rate = Rate { start: 3e-3, schedule: Schedule::Cosine };
        let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
        let mut trainer = GradientDescent::new(&network, Rule::Lifted { mu: 0.1 }, descent)?;
        for step in 0..STEPS {
            let batch = Batch { z: &x, x: &x, indices: &[] };
            trainer.step(&mut network, batch, step as f64 / STEPS as f64)?;
        }
        let copy = |k: usize| {
            let parts = network.layers()[k].parameters();
            Dense::new(WIDTHS[k], double(parts[0]), double(parts[1]))
        };
        Ok((Network::new(Loss::Squared).layer(copy(0)?, Relu).output(copy(1)?)?, x))
    }
}

/// Numbers of passes that are as far from each other on a logarithmic axis.
fn grid(passes: f64) -> impl Iterator<Item = f64> {
    const POINTS: i32 = 25;
    (0..=POINTS).map(move |i| passes.powf(f64::from(i) / f64::from(POINTS)))
}

fn double(values: &[f32]) -> Vec<f64> {
    values.iter().map(|v| f64::from(*v)).collect()
}
