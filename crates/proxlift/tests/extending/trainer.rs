//! A new trainer: steps along the signs of the lifted gradients.

use proxlift::Result;
use proxlift::engine::{Engine, Gradients, ReverseRule};
use proxlift::network::{Network, Norms};
use proxlift::training::{Batch, Report, Snapshot, Trainer};

/// `theta <- theta - rate sign(gradient)`.
pub struct SignDescent {
    rate: f32,
    norms: Norms<f32>,
}

impl SignDescent {
    pub fn new(network: &Network<f32>, rate: f32, seed: u64) -> Self {
        Self { rate, norms: Norms::new(network, seed) }
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
    use proxlift::dataset::ImageSet;
    use proxlift::engine::Cpu;
    use proxlift::image::Channels;
    use proxlift::training::{Checkpoint, Config, Ended, EpochRecord, Go, Observer, Session, Settings};

    /// Keeps the losses, and stops after an epoch.
    #[derive(Default)]
    struct Watch {
        losses: Vec<f64>,
        stop: Option<usize>,
    }

    impl Observer for Watch {
        fn epoch(&mut self, record: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
            self.losses.push(record.loss);
            Ok(if self.stop == Some(record.epoch) { Go::Stop } else { Go::On })
        }
    }

    #[test]
    fn it_trains_and_resumes_to_the_same_bits() {
        let settings = Settings { depth: Some(4), features: Some(6), epochs: Some(8), ..Settings::default() };
        let settings = Settings { patch: Some(16), count: Some(64), fresh_noise: Some(false), ..settings };
        let config = Config::resolve(&settings).unwrap();
        let images = ImageSet::embedded_train(16, 32, Channels::Grey, 0).unwrap();
        let patches = config.patches(images.into()).unwrap();
        let new = || {
            let network = config.network().unwrap();
            let trainer = SignDescent::new(&network, 3e-3, 0);
            Session::with_trainer(&config, network, &patches, Box::new(trainer))
        };
        let (mut whole, mut watch) = (new(), Watch::default());
        whole.run(&Cpu::new(), &mut watch).unwrap();
        assert!(watch.losses[7] < 0.8 * watch.losses[0], "{:?}", watch.losses);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let mut first = new();
        first.keep_checkpoints(&path, "sign descent");
        let stop = &mut Watch { stop: Some(3), ..Watch::default() };
        assert_eq!(first.run(&Cpu::new(), stop).unwrap(), Ended::Stopped(3));
        let mut second = new();
        second.resume(Checkpoint::load(&path).unwrap()).unwrap();
        assert_eq!(second.run(&Cpu::new(), &mut ()).unwrap(), Ended::Done);
        assert_eq!(second.network, whole.network);
    }
}
