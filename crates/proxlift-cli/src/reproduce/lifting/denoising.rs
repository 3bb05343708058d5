//! The paper's denoiser with a fixed clip, trained by tangents or secants in the fused engine.

use super::method::Method;
use super::point::Point;
use crate::reproduce::machine::thread_seconds;
use proxlift::dataset::{ImageSet, PatchSpec, Patches};
use proxlift::evaluation::mean_psnr;
use proxlift::image::noise::add_gaussian;
use proxlift::image::{Channels, Image};
use proxlift::training::{
    Algorithm, Config, EpochRecord, Go, Metric, Observer, Schedule, Secant, Session, Settings, StepRule,
    Trainer,
};
use proxlift::{Denoiser, Result, engine, network::Network};
use std::sync::Arc;

/// The scenes to test with, and their side.
const TEST: usize = 6;
const SIDE: usize = 96;

/// Patches of this many pixels in a row.
pub const PATCH: usize = 24;

/// The setting of an experiment but for depth, samples and epochs.
pub fn settings(depth: usize, count: usize, epochs: usize) -> Settings {
    Settings {
        depth: Some(depth),
        features: Some(16),
        patch: Some(PATCH),
        count: Some(count),
        epochs: Some(epochs),
        batch: Some(10),
        sigma: Some(0.1),
        lambda: Some(0.1),
        ..Settings::default()
    }
}

/// Seconds of one thread, about.
pub fn cost(settings: &Settings) -> f64 {
    let visits = settings.epochs.unwrap_or(1) * settings.count.unwrap_or(1) * settings.depth.unwrap_or(1);
    visits as f64 / 40e3 + 0.1
}

fn config(settings: &Settings, method: Method, rate: f64, seed: u64) -> Result<Config> {
    let (mu, secant) = match method {
        Method::Backprop | Method::StraightThrough => (None, None),
        Method::Lifted(mu) => (Some(mu), None),
        Method::Centred(mu) => (Some(mu), Some(Secant::Centred)),
        // The denoiser's weight of the loss falls along a cosine, to a hundredth.
        Method::Falling(from, _) => (Some(from), None),
        Method::CentredFalling(from, _) => (Some(from), Some(Secant::Centred)),
    };
    let falls = matches!(method, Method::Falling(..) | Method::CentredFalling(..));
    Config::resolve(&Settings {
        trainer: Some(if mu.is_some() { Algorithm::Lb } else { Algorithm::Backprop }),
        mu,
        mu_schedule: mu.map(|_| if falls { Schedule::Cosine } else { Schedule::Constant }),
        secant,
        metric: Some(Metric::Diagonal),
        rate: Some(StepRule::Rate(rate)),
        schedule: Some(Schedule::Cosine),
        momentum: Some(0.9),
        beta2: Some(0.99),
        augment: Some(false),
        fresh_noise: Some(false),
        fresh_places: Some(false),
        seed: Some(seed),
        ..settings.clone()
    })
}

/// Trains; what the network was after every epoch.
pub fn train(settings: &Settings, method: Method, rate: f64, seed: u64) -> Result<Vec<Point>> {
    let config = config(settings, method, rate, seed)?;
    let set = Arc::new(ImageSet::embedded_train(settings.count.unwrap_or(1), PATCH, Channels::Grey, 5)?);
    let patches = config.patches(set.clone())?;
    let plain = PatchSpec { augment: false, ..*patches.spec() };
    let test = ImageSet::embedded_test(TEST, SIDE, Channels::Grey, 6)?;
    let noisy =
        test.images().iter().enumerate().map(|(i, x)| add_gaussian(x, config.sigma as f32, 7, i as u64));
    let network = config.network()?;
    let mut clerk = Clerk {
        fixed: crate::reproduce::training::first_visit(&Patches::new(set, plain)?, &network)?,
        noisy: noisy.collect::<Result<_>>()?,
        clean: test.images().to_vec(),
        points: Vec::new(),
        seconds: 0.0,
        clock: None,
    };
    clerk.note(0, &network)?;
    Session::new(&config, network, &patches)?.run(&*engine::standard(), &mut clerk)?;
    Ok(clerk.points)
}

struct Clerk {
    fixed: Vec<(proxlift::field::Field<f32>, proxlift::field::Field<f32>)>,
    noisy: Vec<Image>,
    clean: Vec<Image>,
    points: Vec<Point>,
    seconds: f64,
    clock: Option<f64>,
}

impl Clerk {
    fn note(&mut self, epoch: usize, network: &Network<f32>) -> Result<()> {
        let loss = crate::reproduce::training::fixed_loss(&self.fixed, network);
        let denoised = Denoiser::from(network.clone()).denoise_all(&self.noisy)?;
        let score = mean_psnr(&self.clean, &denoised)?;
        self.points.push(Point { epoch, seconds: self.seconds, loss, score });
        Ok(())
    }
}

impl Observer for Clerk {
    fn begin(&mut self, _: usize) {
        self.clock = thread_seconds();
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        let spent = self.clock.zip(thread_seconds()).map(|(from, to)| to - from);
        self.seconds = spent.map_or(record.seconds, |spent| self.seconds + spent);
        self.note(record.epoch, network)?;
        Ok(Go::On)
    }
}
