//! A new trainer: steps along the signs of the lifted gradients.

use proxlift::Result;
use proxlift::engine::{Engine, Gradients, ReverseRule};
use proxlift::network::Network;
use proxlift::training::{Batch, Report, Snapshot, TrackedNorms, Trainer};

/// `theta <- theta - rate sign(gradient)`.
pub struct SignDescent {
    rate: f32,
    norms: TrackedNorms,
}

impl SignDescent {
    pub fn new(network: &Network<f32>, rate: f32, seed: u64) -> Self {
        Self { rate, norms: TrackedNorms::new(network, seed) }
    }
}

impl Trainer for SignDescent {
    fn describe(&self) -> String {
        format!("sign descent, rate {}", self.rate)
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        self.norms.start(network);
        let mut gradients = Gradients::zeros(network, batch.z.samples());
        let rule = ReverseRule::Lifted { mu: 0.1 };
        engine.training_pass(network, rule, &batch.z, &batch.x, &mut gradients)?;
        let rate = self.rate * (1.0 - progress as f32);
        for (theta, gradient) in network.theta.iter_mut().zip(&gradients.theta) {
            for (w, g) in theta.weights_mut().iter_mut().zip(gradient.weights()) {
                *w -= rate * g.signum();
            }
        }
        self.norms.follow(network); // the steps tau_k depend on the filters
        let rate = f64::from(rate);
        Ok(Report { loss: gradients.loss.iter().sum(), steps: (rate, rate), ..Report::default() })
    }

    fn save(&self, state: &mut Snapshot) {
        self.norms.save(state);
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.norms.restore(state)
    }
}

mod tests {
    use super::*;
    use proxlift::dataset::{ImageSet, Order, PatchSpec, Patches};
    use proxlift::engine::Cpu;
    use proxlift::image::Channels;
    use proxlift::network::Architecture;
    use proxlift::training::{EpochRecord, Go, Observer, Plan, train};
    use std::sync::Arc;

    /// Keeps the losses, and after `stop` epochs ends with what a checkpoint would hold.
    #[derive(Default)]
    struct Watch {
        losses: Vec<f64>,
        stop: Option<usize>,
        kept: Option<(EpochRecord, Network<f32>, Snapshot)>,
    }

    impl Observer for Watch {
        fn batch(&mut self, _: usize, _: usize, _: f64) {}

        fn epoch(
            &mut self,
            record: &EpochRecord,
            network: &Network<f32>,
            trainer: &dyn Trainer,
        ) -> Result<Go> {
            self.losses.push(record.loss);
            if self.stop != Some(record.epoch) {
                return Ok(Go::On);
            }
            let mut state = Snapshot::default();
            trainer.save(&mut state);
            self.kept = Some((record.clone(), network.clone(), state));
            Ok(Go::Stop)
        }
    }

    #[test]
    fn it_trains_and_resumes_to_the_same_bits() {
        let images = ImageSet::embedded_train(16, 32, Channels::Grey, 0).unwrap();
        let spec = PatchSpec { size: 16, count: 64, augment: true, sigma: 0.1, levels: None, seed: 0 };
        let patches = Patches::new(Arc::new(images), spec).unwrap();
        let architecture = Architecture { depth: 4, features: 6, kernel: 3, channels: 1 };
        let start = Network::glorot(architecture, 0.1, 0).unwrap();
        let plan = Plan {
            epochs: 8,
            batch: 4,
            last_batch: 4,
            order: Order::Shuffled(0),
            fresh_noise: false,
            fresh_places: false,
        };
        let run =
            |mut network: Network<f32>, mut trainer: SignDescent, first: &EpochRecord, mut watch: Watch| {
                train(&Cpu::new(), &mut network, &mut trainer, &patches, &plan, first, &mut watch).unwrap();
                (network, watch)
            };
        let new = || SignDescent::new(&start, 3e-3, 0);
        let (whole, watch) = run(start.clone(), new(), &EpochRecord::default(), Watch::default());
        assert!(watch.losses[7] < 0.8 * watch.losses[0], "{:?}", watch.losses);

        let stop = Watch { stop: Some(3), ..Watch::default() };
        let (_, stopped) = run(start.clone(), new(), &EpochRecord::default(), stop);
        let (record, network, state) = stopped.kept.unwrap();
        let mut trainer = new();
        trainer.restore(&state).unwrap();
        assert_eq!(run(network, trainer, &record, Watch::default()).0, whole);
    }
}
