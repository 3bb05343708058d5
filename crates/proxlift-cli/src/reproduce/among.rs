//! The trainings of a report spread over the processes of a team: whoever is free takes the next. The first process has the
//! folder; all write to it, so it must be one that all machines see.

use super::training::Training;
use super::{Folder, pictures::Pictures};
use crate::train::announce::duration;
use crate::{flags::pool, output, workers::over_processes};
use anyhow::Result;
use proxlift::image::Image;
use proxlift::{Error, team::Ranks};
use std::path::Path;

/// Refuses to begin where processes would do different things.
pub fn same_work(own: &str, ranks: &Ranks) -> Result<()> {
    let same = ranks.text_of_first(own) == own;
    let reason = || {
        let rank = ranks.rank();
        format!("process {rank} has other flags or pictures than the first: start all with the same")
    };
    Ok(ranks.agree(if same { Ok(()) } else { Err(Error::invalid(reason())) })?)
}

/// Does all trainings that are not done yet, the longest first.
pub fn carry_out(trainings: &[Training], pictures: &Pictures, noisy: &[Image], ranks: &Ranks) -> Result<()> {
    let names: Vec<String> = trainings.iter().map(Training::full_name).collect();
    same_work(&names.join("\n"), ranks)?;
    let waiting: Vec<usize> = ranks.from_first(|| {
        let mut waiting: Vec<usize> = (0..trainings.len()).filter(|&i| !trainings[i].is_done()).collect();
        waiting.sort_by(|&a, &b| trainings[b].run.cost.total_cmp(&trainings[a].run.cost));
        Ok(waiting)
    })?;
    if waiting.len() < trainings.len() {
        let done = trainings.len() - waiting.len();
        output::note(format_args!("{done} of {} runs are done already", trainings.len()));
    }
    let work = |&i: &usize| {
        let training = &trainings[i];
        pool(Some(1))?.install(|| training.train(pictures, noisy, &|_| ()))?;
        let took = duration(training.outcome().seconds());
        output::note(format_args!("{} in {took}, by the first process", training.run.name));
        Ok(())
    };
    over_processes(&waiting, ranks, work)?;
    // What the others have done is in the folder.
    trainings.iter().for_each(Training::recall);
    let missing = trainings.iter().find(|training| !training.is_done());
    let reason = |training: &Training| {
        Error::file(
            Path::new(&training.full_name()),
            "this training was done by another process, but is not in the folder: give all machines the same --out",
        )
    };
    let found = missing.filter(|_| ranks.is_first()).map_or(Ok(()), |training| Err(reason(training)));
    Ok(ranks.agree(found)?)
}

/// Goes on if all processes can, where there are several.
pub fn agreed<T>(result: proxlift::Result<T>, ranks: Option<&Ranks>) -> proxlift::Result<T> {
    match ranks {
        Some(ranks) => ranks.agree(result),
        None => result,
    }
}

/// The folder of the report, for the first process.
pub fn open(root: &Path, ranks: Option<&Ranks>) -> proxlift::Result<Option<Folder>> {
    let first = ranks.is_none_or(Ranks::is_first);
    agreed(if first { Folder::open(root).map(Some) } else { Ok(None) }, ranks)
}
