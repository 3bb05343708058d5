//! The driver ends a training that diverges at the batch that shows it.

use proxlift::Error;
use proxlift::dataset::{ImageSet, Order, PatchSpec, Patches};
use proxlift::engine::Cpu;
use proxlift::image::Channels;
use proxlift::network::{Architecture, Network};
use proxlift::training::{
    Backprop, Constraint, Descent, EpochRecord, Go, Observer, Plan, Rate, Schedule, Trainer, train,
};
use std::sync::Arc;

struct Count(usize);

impl Observer for Count {
    fn batch(&mut self, done: usize, _: usize, _: f64) {
        self.0 = done;
    }

    fn epoch(&mut self, _: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> proxlift::Result<Go> {
        Ok(Go::On)
    }
}

/// Trains with SGD and returns how many batches were done, and the result.
fn trained(start: f64) -> (usize, proxlift::Result<()>) {
    let images = ImageSet::embedded_train(8, 32, Channels::Gray, 0).unwrap();
    let spec = PatchSpec { size: 12, count: 200, augment: false, sigma: 0.1, levels: None, seed: 0 };
    let patches = Patches::new(Arc::new(images), spec).unwrap();
    let architecture = Architecture { depth: 3, features: 4, kernel: 3, channels: 1 };
    let mut network = Network::glorot(architecture, 0.1, 0).unwrap();
    let rate = Rate { start, schedule: Schedule::Constant };
    let mut trainer = Backprop::new(&network, Descent::Sgd, rate, Constraint::FREE, 0);
    let plan = Plan {
        epochs: 2,
        batch: 2,
        last_batch: 2,
        order: Order::Shuffled(0),
        fresh_noise: false,
        fresh_places: false,
    };
    let mut count = Count(0);
    let first = EpochRecord::default();
    let result = train(&Cpu::new(), &mut network, &mut trainer, &patches, &plan, &first, &mut count);
    (count.0, result)
}

#[test]
fn a_training_that_diverges_ends_within_its_epoch() {
    let (batches, result) = trained(1e9);
    let error = result.expect_err("a rate of 1e9 diverges");
    assert!(matches!(error, Error::Diverged { epoch: 1 }), "{error}");
    assert!(error.to_string().contains("smaller rate"));
    assert!(batches < 20, "it went on for {batches} batches of 100");
}

#[test]
fn a_training_that_does_not_diverge_sees_every_batch() {
    let (batches, result) = trained(1e-4);
    assert!(result.is_ok() && batches == 200);
}
