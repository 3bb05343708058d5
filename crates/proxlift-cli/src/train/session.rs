//! A training in a folder: from the start, or from the folder's checkpoint.

use super::{
    data::Data,
    file::is_of_version_0_1,
    folder::Folder,
    watch::{HISTORY_CHECKSUM, Watch},
};
use crate::output;
use proxlift::training::{Checkpoint, Config, Ended, Session};
use proxlift::{Error, Result, engine::Cpu, network::Network, team::Ranks};
use std::sync::Arc;

/// What is trained, whatever the rate.
pub struct Material<'a> {
    pub data: &'a Data,
    /// The network to start from.
    pub network: Network<f32>,
    pub stop_after: Option<usize>,
    /// Whether to go on from the checkpoint before the last.
    pub previous: bool,
    /// Who trains.
    pub ranks: &'a Arc<Ranks>,
}

pub struct Outcome {
    /// The epoch after which it was stopped, if it was.
    pub stopped: Option<usize>,
    /// The best PSNR on the held-out images, and its epoch.
    pub best: Option<(f64, usize)>,
    pub trainer: String,
}

/// Trains in `folder`, which the first process has, from its checkpoint if there is one.
pub fn train_in(
    folder: Option<&Folder>,
    config: &Config,
    material: &Material<'_>,
    announce: impl FnOnce(&Session<'_>),
) -> Result<Outcome> {
    let fingerprint = config.fingerprint();
    let mut session = Session::new(config, material.network.clone(), &material.data.patches)?;
    let mut watch = folder.map(|folder| Watch::new(folder, &session, material.data, material.stop_after));
    let ranks = material.ranks;
    let checkpoint = folder.map(|folder| ready(folder, material.previous, &fingerprint));
    let checkpoint = ranks.agree(checkpoint.unwrap_or(Ok(None)))?;
    if let Some(checkpoint) = shared(ranks, checkpoint)? {
        let epoch = checkpoint.record.epoch;
        watch.iter_mut().for_each(|watch| watch.recall(&checkpoint.notes));
        let of_folder =
            |e: Error| folder.map(|folder| Error::file(folder.root(), e.to_string())).unwrap_or(e);
        ranks.agree(session.resume(checkpoint).map_err(of_folder))?;
        announce(&session);
        if let Some(folder) = folder {
            output::note(format_args!("resuming  {}, stopped after epoch {epoch}", folder.root().display()));
        }
    } else {
        announce(&session);
    }
    folder.into_iter().for_each(|folder| session.keep_two_checkpoints(folder.checkpoint(), &fingerprint));
    let engine = Cpu::new().among(ranks.clone());
    let ended = match &mut watch {
        Some(watch) => session.run(&engine, watch)?,
        None => session.run(&engine, &mut ())?,
    };
    let stopped = if let Ended::Stopped(epoch) = ended { Some(epoch) } else { None };
    Ok(Outcome { stopped, best: watch.and_then(|watch| watch.best), trainer: session.trainer.describe() })
}

/// The folder's checkpoint, if it has one that can be gone on from; the folder is then as it was at that time.
fn ready(folder: &Folder, previous: bool, fingerprint: &str) -> Result<Option<Checkpoint>> {
    let Some(checkpoint) = folder.latest(previous)? else { return Ok(None) };
    check_settings(folder, &checkpoint, fingerprint)?;
    let checksum = checkpoint.notes.get(HISTORY_CHECKSUM).map(|&checksum| checksum as u32);
    folder.rewind(checkpoint.record.epoch, checksum)?;
    folder.rename_old_model()?;
    Ok(Some(checkpoint))
}

/// The checkpoint that the first process has read, for all.
fn shared(ranks: &Ranks, read: Option<Checkpoint>) -> Result<Option<Checkpoint>> {
    if ranks.size() == 1 {
        return Ok(read);
    }
    let bytes = ranks.agree(read.as_ref().map(Checkpoint::to_bytes).transpose())?;
    let bytes = ranks.bytes_of_first(bytes.unwrap_or_default());
    if bytes.is_empty() {
        return Ok(None);
    }
    read.map_or_else(|| Checkpoint::from_bytes(&bytes), Ok).map(Some)
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
