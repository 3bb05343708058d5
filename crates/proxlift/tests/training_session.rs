//! Sessions: every preset resumes to the same bits, and checkpoints are written when the observer is ready for them.

use proxlift::Result;
use proxlift::dataset::{ImageSet, Patches};
use proxlift::engine::Cpu;
use proxlift::image::Channels;
use proxlift::named::Named;
use proxlift::network::Network;
use proxlift::training::{
    Checkpoint, Config, Ended, EpochRecord, Go, Notes, Observer, Preset, Session, Settings, Trainer,
};
use std::path::PathBuf;

fn tiny(preset: Preset) -> (Config, Patches) {
    let settings =
        Settings { preset: Some(preset), depth: Some(3), features: Some(4), ..Settings::default() };
    let settings = Settings { patch: Some(12), count: Some(16), epochs: Some(3), ..settings };
    let config = Config::resolve(&settings).unwrap();
    let images = ImageSet::embedded_train(8, 24, Channels::Grey, 0).unwrap();
    let patches = config.patches(images.into()).unwrap();
    (config, patches)
}

/// Stops after an epoch, and notes what it is asked for.
#[derive(Default)]
struct Stop {
    after: Option<usize>,
    declines: bool,
    path: PathBuf,
    asked: Vec<(usize, bool)>,
}

impl Observer for Stop {
    fn epoch(&mut self, record: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        Ok(if self.after == Some(record.epoch) { Go::Stop } else { Go::On })
    }

    fn checkpoint(&mut self, record: &EpochRecord, _: &Network<f32>) -> Result<Option<Notes>> {
        self.asked.push((record.epoch, self.path.exists()));
        let notes = Notes::from([("asked".to_string(), self.asked.len() as f64)]);
        Ok((!self.declines).then_some(notes))
    }
}

#[test]
fn every_preset_resumes_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for &preset in Preset::ALL {
        let (config, patches) = tiny(preset);
        let new = || Session::new(&config, config.network().unwrap(), &patches).unwrap();
        let mut whole = new();
        assert_eq!(whole.run(&Cpu::new(), &mut ()).unwrap(), Ended::Done);

        let path = folder.path().join(preset.to_string());
        let mut first = new();
        first.keep_checkpoints(&path, config.fingerprint());
        let mut stop = Stop { after: Some(2), path: path.clone(), ..Stop::default() };
        assert_eq!(first.run(&Cpu::new(), &mut stop).unwrap(), Ended::Stopped(2));
        assert_eq!(stop.asked, [(1, false), (2, true)], "after the first epoch, and when it is stopped");

        let checkpoint = Checkpoint::load(&path).unwrap();
        assert_eq!((checkpoint.notes["asked"], &checkpoint.settings), (2.0, &config.fingerprint()));
        let mut second = new();
        second.resume(checkpoint).unwrap();
        assert_eq!(second.record.epoch, 2);
        second.run(&Cpu::new(), &mut ()).unwrap();
        assert_eq!((&second.network, second.record.loss), (&whole.network, whole.record.loss), "{preset}");
        assert_eq!(second.model("pictures").provenance["epochs"], "3 of 3");
    }
}

#[test]
fn an_observer_can_decline_a_checkpoint_and_another_network_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let (config, patches) = tiny(Preset::Lifted);
    let mut session = Session::new(&config, config.network().unwrap(), &patches).unwrap();
    session.keep_checkpoints(&path, "none");
    session.run(&Cpu::new(), &mut Stop { declines: true, ..Stop::default() }).unwrap();
    assert!(!path.exists());

    session.run(&Cpu::new(), &mut Stop::default()).unwrap();
    assert!(!path.exists(), "all epochs are done");
    let mut session = Session::new(&config, config.network().unwrap(), &patches).unwrap();
    session.keep_checkpoints(&path, "one");
    session.run(&Cpu::new(), &mut ()).unwrap();
    let wider = Config::resolve(&Settings { features: Some(6), ..config.settings.clone() }).unwrap();
    let mut other = Session::new(&wider, wider.network().unwrap(), &patches).unwrap();
    assert!(
        other.resume(Checkpoint::load(&path).unwrap()).unwrap_err().to_string().contains("another network")
    );
}
