//! `proxlift-mpi sweep`: independent trainings, one for every combination of a grid, whoever is free takes the next.
//!
//! Every training has a folder of its own, in which it goes on from its checkpoint; one that has its result is not repeated.

use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::train::{self, file, folder::Folder};
use crate::{files, flags::pool, output, workers::over_processes};
use proxlift::storage::{self, Lock};
use proxlift::team::{Alone, Ranks};
use proxlift::training::{Config, Settings};
use proxlift::{Error, Result};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most trainings of a grid.
const MOST: usize = 10_000;

/// Train a network with every combination of settings of a grid, side by side.
///
/// The file has two tables, both with the keys of `proxlift train --config`: [fixed], what all trainings have, and [grid], a
/// list of values for each key. Every process takes the next training that is left. The same command goes on with a sweep
/// that was interrupted.
#[derive(clap::Args)]
pub struct Arguments {
    /// TOML file with the tables [fixed] and [grid]
    #[arg(value_name = "FILE")]
    grid: PathBuf,
    /// Folder of the sweep [default: runs/ and the name of the file]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads of each process [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fixed: Map<String, Value>,
    grid: Map<String, Value>,
}

/// A training of the grid: what it has of its own, and all that is given.
#[derive(Debug)]
struct Job {
    own: Vec<(String, Value)>,
    given: Settings,
}

impl Job {
    fn name(&self) -> String {
        let safe = |c: char| if c.is_alphanumeric() || "-.".contains(c) { c } else { '-' };
        let words = self.own.iter().map(|(key, value)| format!("{key}-{}", shown(value)));
        words.collect::<Vec<_>>().join("_").chars().map(|c| if c == '_' { c } else { safe(c) }).collect()
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The trainings of a file, the last key changing fastest.
fn jobs(text: &str, path: &Path) -> Result<Vec<Job>> {
    let wrong = |reason: String| Error::file(path, reason);
    let File { fixed, grid } = toml::from_str(text).map_err(|e| wrong(e.message().to_string()))?;
    let mut all: Vec<Vec<(String, Value)>> = vec![Vec::new()];
    for (key, values) in grid {
        let values = values.as_array().filter(|values| !values.is_empty()).cloned();
        let values = values.ok_or_else(|| wrong(format!("[grid] {key} must be a list of values")))?;
        if all.len() * values.len() > MOST {
            return Err(wrong(format!("the grid has more than {MOST} trainings")));
        }
        let with = |job: &Vec<(String, Value)>, value: &Value| {
            job.iter().cloned().chain([(key.clone(), value.clone())]).collect()
        };
        all = all.iter().flat_map(|job| values.iter().map(move |value| with(job, value))).collect();
    }
    let job = |own: Vec<(String, Value)>| {
        let map = fixed.clone().into_iter().chain(own.iter().cloned()).collect();
        let given = Settings::from_map(map).map_err(|e| wrong(e.to_string()))?;
        Config::resolve(&given).map_err(|e| wrong(e.to_string()))?;
        Ok(Job { own, given })
    };
    all.into_iter().map(job).collect()
}

pub fn run(arguments: &Arguments, ranks: &Arc<Ranks>) -> anyhow::Result<()> {
    let path = &arguments.grid;
    let text = ranks.from_first(|| storage::read_text(path))?;
    let jobs = ranks.agree(jobs(&text, path))?;
    let stem = path.file_stem().unwrap_or_default();
    let out = arguments.out.clone().unwrap_or_else(|| Path::new("runs").join(stem));
    let opened = if ranks.is_first() { open(&out, &text).map(Some) } else { Ok(None) };
    let _lock = ranks.agree(opened)?;
    let done = jobs.iter().filter(|job| result(&out, job).is_some()).count();
    output::note(format_args!("{} trainings in {}, {done} of them done", jobs.len(), out.display()));
    output::be_quiet();
    let pool = ranks.agree(pool(arguments.threads))?;
    over_processes(&jobs, ranks, |job| pool.install(|| train_one(&out, job)))?;
    if ranks.is_first() {
        report(&out, &jobs)?;
    }
    Ok(ranks.agree(Ok(()))?)
}

/// The folder of the sweep: new, or of the same grid.
fn open(out: &Path, text: &str) -> Result<Lock> {
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    let (lock, kept) = (Lock::take(out)?, out.join("grid.toml"));
    if kept.is_file() && storage::read_text(&kept)? != text {
        return Err(Error::file(out, "this is the folder of another sweep: choose another --out"));
    }
    files::write(&kept, text.as_bytes())?;
    Ok(lock)
}

fn result(out: &Path, job: &Job) -> Option<Value> {
    files::read_json(&out.join(job.name()).join("result.json"))
}

fn train_one(out: &Path, job: &Job) -> anyhow::Result<()> {
    if result(out, job).is_some() {
        return Ok(());
    }
    let config = Config::resolve(&job.given)?;
    let folder = Folder::at(out.join(job.name()), &file::text(&config)?)?;
    let alone = Arc::new(Ranks::new(Arc::new(Alone)));
    match train::train_whole(config, &folder, &alone) {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Diverged { .. })) => {
            Ok(folder.finish(&json!({"diverged": true}))?)
        }
        ended => ended,
    }
}

/// One table and one plot of all trainings.
fn report(out: &Path, jobs: &[Job]) -> anyhow::Result<()> {
    let results: Vec<Value> = jobs.iter().map(|job| result(out, job).unwrap_or_default()).collect();
    let keys: Vec<&str> =
        jobs.first().map_or(vec![], |job| job.own.iter().map(|(key, _)| key.as_str()).collect());
    let psnr = |result: &Value| result["scores"]["network"]["psnr"].as_f64();
    let mut rows = vec![keys.iter().map(ToString::to_string).collect::<Vec<_>>()];
    rows[0].extend(["PSNR (dB)", "SSIM", "held-out PSNR", "seconds"].map(String::from));
    for (job, result) in jobs.iter().zip(&results) {
        let number = |value: &Value, digits| value.as_f64().map_or("-".into(), |v| format!("{v:.digits$}"));
        let psnr = if result["diverged"] == true {
            "diverged".into()
        } else {
            number(&result["scores"]["network"]["psnr"], 2)
        };
        let mut row: Vec<String> = job.own.iter().map(|(_, value)| shown(value)).collect();
        row.extend([
            psnr,
            number(&result["scores"]["network"]["ssim"], 4),
            number(&result["best_held_out_psnr"], 2),
            number(&result["training_seconds"], 1),
        ]);
        rows.push(row);
    }
    let csv: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    files::write(&out.join("sweep.csv"), csv.as_bytes())?;
    files::write(&out.join("sweep.svg"), plot(jobs, &results, psnr).as_bytes())?;
    let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        output::line(cells.collect::<Vec<_>>().join("  "))?;
    }
    output::line(format_args!("table {0}/sweep.csv, plot {0}/sweep.svg", out.display()))
}

/// The score over the first key with numbers, a line for each combination of the others.
fn plot(jobs: &[Job], results: &[Value], psnr: impl Fn(&Value) -> Option<f64>) -> String {
    let keys = jobs.first().map_or(0, |job| job.own.len());
    let x = (0..keys).find(|&k| jobs.iter().all(|job| job.own[k].1.is_number())).unwrap_or(0);
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (i, (job, result)) in jobs.iter().zip(results).enumerate() {
        let others = job.own.iter().enumerate().filter(|(k, _)| *k != x);
        let others: Vec<String> = others.map(|(_, (key, value))| format!("{key} {}", shown(value))).collect();
        let name = others.join(", ");
        let Some(score) = psnr(result) else { continue };
        let point = (job.own.get(x).and_then(|(_, value)| value.as_f64()).unwrap_or(i as f64), score);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some(line) => line.1.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    let label = Settings::list().into_iter().find(|setting| {
        jobs.first().is_some_and(|job| job.own.get(x).is_some_and(|own| own.0 == setting.name()))
    });
    let legend = lines.iter().enumerate().map(|(i, (name, _))| (name.clone(), Style::kind(i)));
    let legend: Vec<_> = legend.filter(|(name, _)| !name.is_empty()).collect();
    let lines = lines.into_iter().enumerate();
    let lines =
        lines.map(|(i, (_, points))| Line { dots: true, ..Line::new(Style::kind(i), points) }).collect();
    let axis = Axis::auto(label.map_or("training", |setting| setting.field));
    let panel = Panel::new("PSNR on the test set", axis, Axis::auto("dB"), lines);
    Chart {
        title: format!("{} trainings", jobs.len()),
        legend,
        panels: vec![panel],
        columns: 1,
        frame: (520.0, 320.0),
        ..Chart::default()
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::jobs;
    use std::path::Path;

    #[test]
    fn a_grid_has_all_combinations_and_is_checked() {
        let text = "[fixed]\nepochs = 2\n[grid]\ndepth = [3, 4]\nrate = [1e-3, 1e-2, 0.1]\n";
        let all = jobs(text, Path::new("grid.toml")).unwrap();
        assert_eq!(all.len(), 6);
        assert_eq!(all[1].name(), "depth-3_rate-0.01");
        for (wrong, words) in [
            ("[grid]\ndepth = 3\n", "depth must be a list"),
            ("[grid]\nnothing = [3]\n", "nothing"),
            ("[fixed]\ndepth = 1\n[grid]\nseed = [0]\n", "grid.toml"),
            ("[other]\n[grid]\n", "other"),
        ] {
            let said = jobs(wrong, Path::new("grid.toml")).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
