//! A training in a folder: from the start, or from the folder's checkpoint.

use super::{
    data::Data,
    file::is_of_version_0_1,
    folder::Folder,
    watch::{HISTORY_CHECKSUM, Watch},
};
use crate::output;
use proxlift::training::{Checkpoint, Config, Ended, Session};
use proxlift::{Error, Result, engine, network::Network};

/// What is trained, whatever the rate.
pub struct Material<'a> {
    pub data: &'a Data,
    /// The network to start from.
    pub network: Network<f32>,
    pub stop_after: Option<usize>,
    /// Whether to go on from the checkpoint before the last.
    pub previous: bool,
}

pub struct Outcome {
    /// The epoch after which it was stopped, if it was.
    pub stopped: Option<usize>,
    /// The best PSNR on the held-out images, and its epoch.
    pub best: Option<(f64, usize)>,
    pub trainer: String,
}

/// Trains in `folder`, from its checkpoint if there is one.
pub fn train_in(
    folder: &Folder,
    config: &Config,
    material: &Material<'_>,
    announce: impl FnOnce(&Session<'_>),
) -> Result<Outcome> {
    let fingerprint = config.fingerprint();
    let mut session = Session::new(config, material.network.clone(), &material.data.patches)?;
    let mut watch = Watch::new(folder, &session, material.data, material.stop_after);
    if let Some(checkpoint) = folder.latest(material.previous)? {
        check_settings(folder, &checkpoint, &fingerprint)?;
        let epoch = checkpoint.record.epoch;
        watch.recall(&checkpoint.notes);
        let checksum = checkpoint.notes.get(HISTORY_CHECKSUM).map(|&checksum| checksum as u32);
        session.resume(checkpoint).map_err(|e| Error::file(folder.root(), e.to_string()))?;
        folder.rewind(epoch, checksum)?;
        folder.rename_old_model()?;
        announce(&session);
        output::note(format_args!("resuming  {}, stopped after epoch {epoch}", folder.root().display()));
    } else {
        announce(&session);
    }
    session.keep_two_checkpoints(folder.checkpoint(), fingerprint);
    let ended = session.run(&*engine::standard(), &mut watch)?;
    let stopped = if let Ended::Stopped(epoch) = ended { Some(epoch) } else { None };
    Ok(Outcome { stopped, best: watch.best, trainer: session.trainer.describe() })
}

/// Refuses a checkpoint of other settings than those of its folder.
fn check_settings(folder: &Folder, checkpoint: &Checkpoint, fingerprint: &str) -> Result<()> {
    if checkpoint.settings == fingerprint {
        return Ok(());
    }
    let path = folder.config();
    if is_of_version_0_1(&path) {
        output::note(format_args!(
            "{}: a run of proxlift 0.1; whether its settings were changed since cannot be checked",
            folder.root().display()
        ));
        return Ok(());
    }
    Err(Error::file(path, "the checkpoint is of other settings than this config.toml: restore the file"))
}
