//! Every call to the disk fails in turn, in every way: what was promised before is there after.
#![allow(missing_docs)]

use proxlift::dataset::ImageSet;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::engine;
use proxlift::image::io::{self, Depth, Picture, Raster};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::model::{BuiltIn, Model};
use proxlift::storage::faults::{self, Fault};
use proxlift::training::{Checkpoint, Config, EpochRecord, Session, Settings};
use proxlift::{Denoiser, Result};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Faults are those of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` in a fresh folder that `prepare` filled, once for every fault at every call, and then `check`s what is there.
/// Returns the number of faults.
fn walk(
    prepare: impl Fn(&Path),
    work: impl Fn(&Path) -> Result<()>,
    check: impl Fn(&Path, Fault, &Result<()>),
) -> usize {
    let _turn = turn();
    let fresh = || {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        folder
    };
    let folder = fresh();
    let (done, calls) = faults::count(|| work(folder.path()));
    done.unwrap();
    for fault in Fault::ALL {
        for at in 0..calls {
            let folder = fresh();
            let (result, _) = faults::with(fault, at, || work(folder.path()));
            check(folder.path(), fault, &result);
            if fault != Fault::Crash && fault != Fault::Denied {
                assert!(partials(folder.path()).is_empty(), "{fault:?} at {at}");
            }
        }
    }
    calls * Fault::ALL.len()
}

fn partials(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".partial")).collect()
}

#[test]
fn a_picture_is_replaced_by_its_result_or_stays_as_it_was() {
    let noisy = add_gaussian(&dead_leaves(1, 0, 40, 40, Channels::Grey).unwrap(), 0.1, 1, 0).unwrap();
    let before = Raster::of_picture(&Picture::new(noisy, Depth::Eight)).unwrap();
    let mut after = before.clone();
    let on = &mut |_: usize, _: usize| ControlFlow::Continue(());
    Denoiser::from(BuiltIn::Small).sigma(0.1).denoise_raster(&mut after, on).unwrap();
    for name in ["a.png", "a.tif", "a.jpg", "a.webp", "a.pgm", "a.bmp", "a.fits"] {
        let path = |folder: &Path| folder.join(name);
        let folder = tempfile::tempdir().unwrap();
        let bytes = |raster: &Raster| {
            io::write_raster(path(folder.path()), raster).unwrap();
            std::fs::read(path(folder.path())).unwrap()
        };
        let (old, new) = (bytes(&before), bytes(&after));
        let faults = walk(
            |folder| std::fs::write(path(folder), &old).unwrap(),
            |folder| io::write_raster(path(folder), &after),
            |folder, fault, result| {
                let found = std::fs::read(path(folder)).unwrap();
                assert!(found == old || found == new, "{name}: {fault:?}");
                // Success is never claimed for less.
                assert!(result.is_err() || found == new, "{name}: {fault:?}");
            },
        );
        assert!(faults > 20, "{faults}");
    }
}

fn config(epochs: usize) -> Config {
    let small = Settings {
        depth: Some(3),
        features: Some(3),
        kernel: Some(3),
        patch: Some(12),
        ..Settings::default()
    };
    Config::resolve(&Settings { count: Some(4), epochs: Some(epochs), ..small }).unwrap()
}

/// Trains to the end from the checkpoint in the folder, or from the start; the model that comes out.
fn train(folder: &Path, epochs: usize) -> Result<Model> {
    let config = config(3);
    let images = ImageSet::embedded_train(4, 24, Channels::Grey, 0)?;
    let patches = config.patches(images.into())?;
    let mut session = Session::new(&config, config.network()?, &patches)?;
    let latest = folder.join("latest.safetensors");
    if latest.is_file() {
        session.resume(Checkpoint::load(&latest)?)?;
    }
    session.keep_two_checkpoints(&latest, config.fingerprint());
    let mut watch = Watch { stop: epochs };
    session.run(&*engine::standard(), &mut watch)?;
    let model = session.model("four pictures");
    model.save(folder.join("model.safetensors"))?;
    Ok(model)
}

/// Asks for a checkpoint after every epoch by stopping.
struct Watch {
    stop: usize,
}

impl proxlift::training::Observer for Watch {
    fn epoch(
        &mut self,
        record: &EpochRecord,
        _: &proxlift::network::Network<f32>,
        _: &dyn proxlift::training::Trainer,
    ) -> Result<proxlift::training::Go> {
        let stop = record.epoch >= self.stop;
        Ok(if stop { proxlift::training::Go::Stop } else { proxlift::training::Go::On })
    }
}

#[test]
fn a_training_loses_nothing_but_the_epochs_after_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let whole = {
        let _turn = turn();
        train(folder.path(), 3).unwrap()
    };
    let faults = walk(
        |folder| drop(train(folder, 1).unwrap()),
        |folder| train(folder, 2).and_then(|_| train(folder, 3)).map(drop),
        |folder, fault, result| {
            // There is a whole checkpoint of the first epoch or a later one, whatever happened, and training goes on from
            // it to the same bits.
            let latest = Checkpoint::load(folder.join("latest.safetensors")).unwrap();
            assert!(latest.record.epoch >= 1, "{fault:?}");
            Model::load(folder.join("model.safetensors")).unwrap();
            assert!(result.is_err() || latest.record.epoch == 3, "{fault:?}");
            assert_eq!(train(folder, 3).unwrap().network, whole.network, "{fault:?}");
        },
    );
    assert!(faults > 50, "{faults}");
}

#[test]
fn lines_that_were_appended_stay_whole() {
    walk(
        |folder| std::fs::write(folder.join("history"), "one\n").unwrap(),
        |folder| proxlift::storage::append(&folder.join("history"), b"another line\n"),
        |folder, fault, result| {
            let text = std::fs::read_to_string(folder.join("history")).unwrap();
            assert!(text == "one\n" || text == "one\nanother line\n", "{fault:?}: {text}");
            assert!(result.is_err() || text.len() > 4, "{fault:?}");
        },
    );
}
