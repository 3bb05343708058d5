//! General networks that learn to tell digits, or to draw them again from a few numbers.

use super::method::Method;
use super::point::Point;
use crate::reproduce::machine::thread_seconds;
use proxlift::dataset::Labelled;
use proxlift::lifting::{
    Batch, Dense, GradientDescent, Imprecise, Loss, Network, Rows, Rule, Trainer, one_hot,
};
use proxlift::network::Activation;
use proxlift::prox::{BoxClip, Relu, SoftThreshold};
use proxlift::random::{Purpose, shuffle, stream};
use proxlift::training::{Descent, Metric, Rate, Schedule};
use proxlift::{Error, Result};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    Relu,
    /// From -1 to 1.
    Clip,
    /// With a threshold of 1/2.
    Soft,
}

impl Shape {
    pub fn label(self) -> &'static str {
        match self {
            Self::Relu => "ReLU",
            Self::Clip => "clip",
            Self::Soft => "soft-threshold",
        }
    }

    fn activation(self) -> Result<Activation<f32>> {
        Ok(match self {
            Self::Relu => Relu.into(),
            Self::Clip => BoxClip::symmetric(vec![1.0])?.into(),
            Self::Soft => SoftThreshold::new(vec![0.5])?.into(),
        })
    }
}

/// A network and what it learns from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Digits {
    /// The widths of its hidden layers.
    pub hidden: Vec<usize>,
    /// Whether it gives the picture again, by the logistic loss; else it tells the class.
    pub autoencoder: bool,
    pub shape: Shape,
    /// How many times larger than He's its first weights are.
    pub gain: f64,
    pub samples: usize,
    pub batch: usize,
    pub epochs: usize,
    /// Bits of features and errors, if not all.
    pub bits: Option<u32>,
    /// Noise on errors and gradients, as a multiple of their root mean square.
    pub noise: f64,
}

/// The pictures to train on and those to test with.
pub struct DigitSet {
    train: Labelled,
    test: Labelled,
    pub described: String,
    /// In a word.
    pub fingerprint: String,
}

impl DigitSet {
    /// Drawn digits, or those of a folder with MNIST's files.
    pub fn load(folder: Option<&Path>, (most, tests): (usize, usize)) -> Result<Self> {
        let Some(folder) = folder else {
            let (train, test) = (Labelled::drawn(most, 1), Labelled::drawn(tests, 2));
            let described = format!("{most} digits that the program draws, {tests} others to test with");
            return Ok(Self { train, test, described, fingerprint: "drawn".into() });
        };
        let (train, test) = Labelled::from_idx(folder)?;
        let (train, test) = (train.first(most), test.first(tests));
        let sum: f64 = (0..train.len()).flat_map(|i| train.picture(i)).map(|v| f64::from(*v)).sum();
        let name = crate::files::short_name(folder);
        let described =
            format!("the first {} digits of {name}, the first {} of its test set", train.len(), test.len());
        Ok(Self { train, test, described, fingerprint: format!("{name} {sum}") })
    }

    /// Samples that a task has.
    pub fn samples(&self, task: &Digits) -> usize {
        task.samples.min(self.train.len())
    }

    fn pixels(&self) -> usize {
        self.train.size().0 * self.train.size().1
    }
}

impl Digits {
    /// Seconds of one thread, about.
    pub fn cost(&self) -> f64 {
        let widths = [&[784], &*self.hidden, &[if self.autoencoder { 784 } else { 10 }]].concat();
        let weights: usize = widths.windows(2).map(|pair| pair[0] * pair[1]).sum();
        8.0 * (weights * self.samples * self.epochs) as f64 / 20e9 + 0.02
    }

    fn network(&self, pixels: usize, seed: u64) -> Result<Network<f32>> {
        let outputs = if self.autoencoder { pixels } else { Labelled::CLASSES };
        let widths = [&[pixels], &*self.hidden, &[outputs]].concat();
        let dense = |k: usize| {
            let mut rng = stream(seed, Purpose::Weights, 0, k as u64);
            Dense::random(widths[k], widths[k + 1], self.gain, &mut rng)
        };
        let imprecise = |k: usize| Imprecise::new(dense(k)?, self.bits, self.noise, 1000 * seed + k as u64);
        let exact = self.bits.is_none() && self.noise == 0.0;
        let (last, loss) = (self.hidden.len(), if self.autoencoder { Loss::Logistic } else { Loss::Softmax });
        let mut network = Network::new(loss);
        for k in 0..last {
            let activation = self.shape.activation()?;
            network = if exact {
                network.layer(dense(k)?, activation)
            } else {
                network.layer(imprecise(k)?, activation)
            };
        }
        if exact { network.output(dense(last)?) } else { network.output(imprecise(last)?) }
    }

    /// Adam, by the rule of a method.
    pub fn descent(
        &self,
        network: &Network<f32>,
        method: Method,
        rate: f64,
    ) -> Result<Box<dyn Trainer<f32>>> {
        let rate = Rate { start: rate, schedule: Schedule::Cosine };
        let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
        Ok(Box::new(Scheduled {
            method,
            descent: GradientDescent::new(network, rule(method, 0.0), descent)?,
        }))
    }
}

/// The rule of a method when so much of the training is done.
fn rule(method: Method, progress: f64) -> Rule<f32> {
    let between = |from: f64, to: f64| (from * (to / from).powf(progress)) as f32;
    match method {
        Method::Backprop => Rule::Backprop,
        Method::StraightThrough => Rule::StraightThrough,
        Method::Lifted(mu) => Rule::Lifted { mu: mu as f32 },
        Method::Centred(mu) => Rule::Centred { mu: mu as f32 },
        Method::Falling(from, to) => Rule::Lifted { mu: between(from, to) },
        Method::CentredFalling(from, to) => Rule::Centred { mu: between(from, to) },
    }
}

/// Gradient descent by a rule that may change on the way.
struct Scheduled {
    method: Method,
    descent: GradientDescent,
}

impl Trainer<f32> for Scheduled {
    fn step(
        &mut self,
        network: &mut Network<f32>,
        batch: Batch<'_, f32>,
        progress: f64,
    ) -> Result<proxlift::lifting::Step> {
        self.descent.set_rule(rule(self.method, progress))?;
        self.descent.step(network, batch, progress)
    }
}

fn batch_of(set: &Labelled, which: &[usize], autoencoder: bool) -> Result<(Rows<f32>, Rows<f32>)> {
    let pixels = set.size().0 * set.size().1;
    let mut z = Vec::with_capacity(which.len() * pixels);
    which.iter().for_each(|&i| z.extend_from_slice(set.picture(i)));
    let z = Rows::new(pixels, z)?;
    let x = if autoencoder {
        z.clone()
    } else {
        let labels: Vec<usize> = which.iter().map(|&i| set.labels()[i]).collect();
        one_hot(&labels, Labelled::CLASSES)?
    };
    Ok((z, x))
}

/// The mean loss of a network.
fn loss_of(network: &Network<f32>, (z, x): &(Rows<f32>, Rows<f32>)) -> f64 {
    network.loss.values(network.forward(z).output(), x).iter().sum::<f64>() / z.samples() as f64
}

/// What a network makes of pictures: the share that it tells right, or the PSNR of what it draws.
fn score_of(network: &Network<f32>, (z, x): &(Rows<f32>, Rows<f32>), autoencoder: bool) -> f64 {
    let pass = network.forward(z);
    let pairs = pass.output().rows().zip(x.rows());
    if autoencoder {
        let drawn = |o: f32| 1.0 / (1.0 + (-o).exp());
        let away = |(o, x): (&f32, &f32)| f64::from(drawn(*o) - x).powi(2);
        let squares: f64 = pairs.map(|(output, x)| output.iter().zip(x).map(away).sum::<f64>()).sum();
        -10.0 * (squares / z.data().len() as f64).log10()
    } else {
        let best = |row: &[f32]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(i, _)| i);
        let right = pairs.filter(|(output, x)| best(output) == best(x));
        100.0 * right.count() as f64 / z.samples() as f64
    }
}

/// Trains a network from the start of this seed; what it was after every epoch.
pub fn train(
    task: &Digits,
    data: &DigitSet,
    seed: u64,
    trainer: impl FnOnce(&Network<f32>) -> Result<Box<dyn Trainer<f32>>>,
) -> Result<Vec<Point>> {
    let mut network = task.network(data.pixels(), seed)?;
    let mut trainer = trainer(&network)?;
    let samples = data.samples(task);
    let steps = task.epochs * samples.div_ceil(task.batch);
    let (mut done, mut seconds) = (0, 0.0);
    let first = |set: &Labelled, count| batch_of(set, &Vec::from_iter(0..count), task.autoencoder);
    let (seen, unseen) = (first(&data.train, samples)?, first(&data.test, data.test.len())?);
    let note = |network: &Network<f32>, epoch: usize, seconds: f64| -> Result<Point> {
        let (loss, score) = (loss_of(network, &seen), score_of(network, &unseen, task.autoencoder));
        let sound = loss.is_finite() && score.is_finite();
        if sound { Ok(Point { epoch, seconds, loss, score }) } else { Err(Error::Diverged { epoch }) }
    };
    let mut points = vec![note(&network, 0, 0.0)?];
    for epoch in 0..task.epochs {
        let mut order: Vec<usize> = (0..samples).collect();
        shuffle(&mut stream(seed, Purpose::Shuffle, epoch as u64, 0), &mut order);
        let batches =
            order.chunks(task.batch).map(|some| Ok((some, batch_of(&data.train, some, task.autoencoder)?)));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let (clock, wall) = (thread_seconds(), Instant::now());
        for (indices, (z, x)) in &batches {
            trainer.step(&mut network, Batch { z, x, indices }, done as f64 / steps as f64)?;
            done += 1;
        }
        seconds += clock.zip(thread_seconds()).map_or(wall.elapsed().as_secs_f64(), |(from, to)| to - from);
        points.push(note(&network, epoch + 1, seconds)?);
    }
    Ok(points)
}
