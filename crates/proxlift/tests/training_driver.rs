//! The driver ends a training that diverges at the batch that shows it, and counts where `E` rose.

use proxlift::Error;
use proxlift::dataset::{ImageSet, Order, PatchNoise, PatchSpec, Patches};
use proxlift::engine::{Cpu, Engine};
use proxlift::image::Channels;
use proxlift::network::{Architecture, Network};
use proxlift::training::{
    Batch, Constraint, Descent, EpochRecord, Go, GradientDescent, Metric, Observer, Plan, Progress, Rate,
    Report, Rule, Schedule, Snapshot, Trainer, train,
};
use std::sync::Arc;

/// How far the training was after each batch, and the record of each epoch.
#[derive(Default)]
struct Seen {
    batches: Vec<Progress>,
    epochs: Vec<EpochRecord>,
}

impl Observer for Seen {
    fn batch(&mut self, progress: &Progress) -> Go {
        self.batches.push(*progress);
        Go::On
    }

    fn epoch(&mut self, record: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> proxlift::Result<Go> {
        self.epochs.push(record.clone());
        Ok(Go::On)
    }
}

/// A network for 200 patches, two epochs of them in batches of 2, by the trainer that `make` gives.
fn trained<T: Trainer>(make: impl Fn(&Network<f32>) -> T) -> (Seen, proxlift::Result<()>) {
    trained_in_batches(2, 2, make)
}

/// The same with batches that grow from epoch to epoch.
fn trained_in_batches<T: Trainer>(
    batch: usize,
    last_batch: usize,
    make: impl Fn(&Network<f32>) -> T,
) -> (Seen, proxlift::Result<()>) {
    let images = ImageSet::embedded_train(8, 32, Channels::Grey, 0).unwrap();
    let spec = PatchSpec {
        size: 12,
        count: 200,
        augment: false,
        sigma: 0.1,
        levels: None,
        noise: PatchNoise::White,
        seed: 0,
    };
    let patches = Patches::new(Arc::new(images), spec).unwrap();
    let architecture = Architecture { depth: 3, features: 4, kernel: 3, channels: 1 };
    let mut network = Network::glorot(architecture, 0.1, 0).unwrap();
    let mut trainer = make(&network);
    let plan = Plan {
        epochs: 2,
        batch,
        last_batch,
        order: Order::Shuffled(0),
        fresh_noise: false,
        fresh_places: false,
    };
    let mut seen = Seen::default();
    let first = EpochRecord::default();
    let result = train(&Cpu::new(), &mut network, &mut trainer, &patches, &plan, &first, &mut seen);
    (seen, result)
}

fn sgd(start: f64) -> impl Fn(&Network<f32>) -> GradientDescent {
    let rate = Rate { start, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Euclidean, momentum: 0.0, beta2: 0.0, rate };
    move |network| GradientDescent::new(network, Rule::Backprop, descent, Constraint::FREE, 0).unwrap()
}

/// Changes nothing; says that `E` fell from 2 to 1, but for every tenth batch, where it rose to 2 and a bit.
struct Scripted {
    steps: usize,
}

impl Trainer for Scripted {
    fn describe(&self) -> String {
        "scripted".into()
    }

    fn step(
        &mut self,
        _: &dyn Engine<f32>,
        _: &mut Network<f32>,
        _: &Batch,
        _: f64,
    ) -> proxlift::Result<Report> {
        self.steps += 1;
        let after = match self.steps % 10 {
            0 => 2.001,
            1 => 2.000_001,
            _ => 1.0,
        };
        Ok(Report { energy_before: Some(2.0), energy: Some(after), ..Report::default() })
    }

    fn save(&self, _: &mut Snapshot) {}

    fn restore(&mut self, _: &Snapshot) -> proxlift::Result<()> {
        Ok(())
    }
}

#[test]
fn a_training_that_diverges_ends_within_its_epoch() {
    let (Seen { batches, .. }, result) = trained(sgd(1e9));
    let error = result.expect_err("a rate of 1e9 diverges");
    assert!(matches!(error, Error::Diverged { epoch: 1 }), "{error}");
    assert!(error.to_string().contains("smaller rate"));
    assert!(batches.len() < 20, "it went on for {} batches of 100", batches.len());
}

#[test]
fn a_training_that_does_not_diverge_sees_every_batch() {
    let (seen, result) = trained(sgd(1e-4));
    assert!(result.is_ok() && seen.batches.len() == 200);
    assert!(seen.epochs.iter().all(|epoch| epoch.energy_steps == 0));
}

#[test]
fn rises_of_the_energy_beyond_rounding_are_counted() {
    let (seen, _) = trained(|_| Scripted { steps: 0 });
    let counted: Vec<_> = seen.epochs.iter().map(|epoch| (epoch.energy_steps, epoch.energy_rises)).collect();
    assert_eq!(counted, [(100, 10), (100, 10)]);
}

#[test]
fn progress_knows_its_epoch_also_where_batches_grow() {
    let (seen, _) = trained_in_batches(2, 50, |_| Scripted { steps: 0 });
    let epochs: Vec<usize> = seen.batches.iter().map(|batch| batch.epoch).collect();
    assert_eq!(epochs, [vec![1; 100], vec![2; 4]].concat());
    let done: Vec<usize> = seen.batches.iter().map(|batch| batch.done).collect();
    assert_eq!((done[0], done[99], done[100], done[103]), (2, 200, 250, 400));
    assert!(seen.batches.iter().all(|batch| batch.all == 400));
}
