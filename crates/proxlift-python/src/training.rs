//! Training: settings and arrays in, models and their history out.

use crate::error::to_python;
use crate::model::Model;
use crate::pool::{self, Ask, Cancel};
use numpy::PyReadonlyArray3;
use proxlift::dataset::{ImageSet, Pairs};
use proxlift::image::{Channels, Image};
use proxlift::model;
use proxlift::named::Name;
use proxlift::network::Network;
use proxlift::storage::{Lock, read_text};
use proxlift::training::{
    Checkpoint, Config, Ended, EpochRecord, Go, Kind, Material, Notes, Observer, Progress, Session, Settings,
    Source, Trainer, Validation, best_trial, search_rates,
};
use proxlift::{Denoiser, Error, Result};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often progress is told.
const BETWEEN_TELLING: Duration = Duration::from_millis(100);

type Arrays<'py> = Vec<PyReadonlyArray3<'py, f32>>;

/// What the caller's thread is told.
enum Event {
    Batch(Progress),
    /// The record in JSON, and the model as it is.
    Epoch(String, model::Model),
}

/// What comes of a training: the best model, the last, the history and all settings in JSON, and whether it was stopped.
type Trained = (Model, Model, String, String, bool);

/// Trains. Images are `[channel][row][column]`; `hear` is called with `("batch", JSON, None)` and `("epoch", JSON, Model)`, and
/// returns whether to go on.
#[pyfunction]
#[pyo3(signature = (images, noisy, test, settings, out, hear))]
pub fn train(
    py: Python<'_>,
    images: Option<Arrays<'_>>,
    noisy: Option<Arrays<'_>>,
    test: Option<Arrays<'_>>,
    settings: &str,
    out: Option<PathBuf>,
    hear: Py<PyAny>,
) -> PyResult<Trained> {
    let mut given = parse(settings).map_err(to_python)?;
    if noisy.is_some() {
        // Their place is the caller's memory; the name is part of no result.
        given.noisy = Some(PathBuf::from("memory"));
    }
    let [images, noisy, test] = [images, noisy, test].map(|arrays| arrays.map(copied).transpose());
    let (images, noisy, test) = (images?, noisy?, test?);
    let answer = |py: Python<'_>, event: Event| {
        let heard = match event {
            Event::Batch(p) => {
                let told =
                    json!({"epoch": p.epoch, "done": p.done, "all": p.all, "loss": p.loss}).to_string();
                hear.call1(py, ("batch", told, py.None()))?
            }
            Event::Epoch(record, model) => hear.call1(py, ("epoch", record, Model::of(model)))?,
        };
        heard.is_truthy(py)
    };
    let threads = given.threads;
    let work = |ask: Ask<'_, Event>, cancel: &Cancel| {
        let run = || run(given, images, noisy, test, out.as_deref(), (ask, cancel));
        match threads {
            None => run(),
            Some(count) => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
                pool.map_err(|e| Error::invalid(format!("no threads could be started: {e}")))?.install(run)
            }
        }
    };
    pool::run_with(py, work, answer)
}

fn parse(settings: &str) -> Result<Settings> {
    let wrong = |e: serde_json::Error| Error::invalid(e.to_string());
    let Value::Object(map) = serde_json::from_str(settings).map_err(wrong)? else {
        return Err(Error::invalid("settings are a JSON object"));
    };
    Settings::from_map(map)
}

fn copied(arrays: Arrays<'_>) -> PyResult<Vec<Image>> {
    let image = |array: PyReadonlyArray3<'_, f32>| {
        let array = array.as_array();
        let (channels, height, width) = array.dim();
        Image::new(channels, height, width, array.iter().copied().collect())
    };
    arrays.into_iter().map(image).collect::<Result<_>>().map_err(to_python)
}

fn run(
    given: Settings,
    images: Option<Vec<Image>>,
    noisy: Option<Vec<Image>>,
    test: Option<Vec<Image>>,
    out: Option<&Path>,
    caller: (Ask<'_, Event>, &Cancel),
) -> Result<Trained> {
    let mut config = Config::resolve(&given)?;
    let network = config.network()?;
    let channels = if config.architecture.colours() == 1 { Channels::Grey } else { Channels::Rgb };
    let hash = data_hash([&images, &noisy]);
    let set = |images: Vec<Image>| ImageSet::from_images(images, channels);
    let folder = |path: &PathBuf| ImageSet::from_folder(path, channels);
    let clean = match (images, &given.data) {
        (Some(images), _) => Some(set(images)?),
        (None, data) => data.as_ref().map(folder).transpose()?,
    };
    let seen = match (noisy, &given.noisy) {
        (Some(noisy), _) => Some(set(noisy)?),
        (None, path) => path.as_ref().map(folder).transpose()?,
    };
    let source = match (seen, clean) {
        (Some(noisy), Some(partners)) => Source::Pairs(Pairs::new(noisy, partners)?),
        (Some(noisy), None) => Source::Noisy(noisy),
        (None, Some(clean)) => Source::Clean(clean),
        (None, None) => Source::BuiltIn,
    };
    let test = match (test, &given.test) {
        (Some(test), _) => Some(set(test)?),
        (None, path) => path.as_ref().map(folder).transpose()?,
    };
    let test = test.map(|set| Validation::white(&set, usize::MAX, config.sigma, 0)).transpose()?;
    let material = config.material(source)?;
    if let Some(grid) = config.grid.clone() {
        let mut trial = |rate: f64| {
            let config = config.with_rate(rate, grid.epochs)?;
            let mut watch = Watch::new(&config, &material, None, None, caller);
            let ended = watch.train(network.clone(), None)?;
            let last = watch.last.unwrap_or_default();
            Ok((ended == Ended::Done).then_some((last.loss, last.seconds)))
        };
        let trials = search_rates(&grid.rates, Vec::new(), &mut trial, |_| Ok(()))?;
        let trials = trials.ok_or(Error::Cancelled)?;
        config = config.with_rate(best_trial(&trials)?.rate, config.plan.epochs)?;
    }
    let mut watch = Watch::new(&config, &material, test.as_ref(), out, caller);
    let ended = watch.train(network, Some(format!("{} {hash:016x}", config.fingerprint())))?;
    let last = watch.model.ok_or_else(|| Error::invalid("a training needs at least one epoch"))?;
    let best = watch.best.map_or_else(|| last.clone(), |(_, _, model)| model);
    let history = Value::Array(watch.history).to_string();
    let settings = Value::Object(config.settings.to_map()).to_string();
    Ok((Model::of(best), Model::of(last), history, settings, ended != Ended::Done))
}

/// A number for the images, so that a training goes on with the same ones alone.
fn data_hash(images: [&Option<Vec<Image>>; 2]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for image in images.into_iter().flatten().flatten() {
        image.shape().hash(&mut hasher);
        image.data().iter().for_each(|v| v.to_bits().hash(&mut hasher));
    }
    hasher.finish()
}

/// Scores, tells the caller, keeps the best.
struct Watch<'a> {
    config: &'a Config,
    material: &'a Material,
    test: Option<&'a Validation>,
    out: Option<&'a Path>,
    ask: Ask<'a, Event>,
    cancel: &'a Cancel,
    told: Option<Instant>,
    provenance: model::Provenance,
    /// The best score on held-out pictures, its epoch, and the model.
    best: Option<(f64, usize, model::Model)>,
    model: Option<model::Model>,
    last: Option<EpochRecord>,
    history: Vec<Value>,
}

/// The files of a run.
const CHECKPOINT: &str = "checkpoint.safetensors";
const BEST: &str = "model.safetensors";
const LAST: &str = "last.safetensors";
const HISTORY: &str = "history.jsonl";

impl<'a> Watch<'a> {
    fn new(
        config: &'a Config,
        material: &'a Material,
        test: Option<&'a Validation>,
        out: Option<&'a Path>,
        (ask, cancel): (Ask<'a, Event>, &'a Cancel),
    ) -> Self {
        let provenance = model::Provenance::new();
        Self {
            config,
            material,
            test,
            out,
            ask,
            cancel,
            told: None,
            provenance,
            best: None,
            model: None,
            last: None,
            history: Vec::new(),
        }
    }

    /// Trains, from the checkpoint that is there if there is one and it has this `name`.
    fn train(&mut self, network: Network<f32>, name: Option<String>) -> Result<Ended> {
        let mut session = Session::new(self.config, network, &self.material.patches)?;
        let described = match self.material.painted {
            Some(side) => format!("{} built-in pictures of {side} x {side} pixels", self.material.pictures),
            None => format!("{} pictures, {} held out", self.material.pictures, self.material.held_out),
        };
        self.provenance = session.provenance(&described);
        let mut _lock = None;
        if let (Some(out), Some(name)) = (self.out, name) {
            std::fs::create_dir_all(out).map_err(Error::io(out))?;
            _lock = Some(Lock::take(out)?);
            let path = out.join(CHECKPOINT);
            if path.exists() {
                let checkpoint = Checkpoint::load(&path)?;
                if checkpoint.settings != name {
                    let reason = "this training has other settings or other images: give another folder, or the same ones";
                    return Err(Error::file(path, reason));
                }
                self.recall(out, &checkpoint)?;
                session.resume(checkpoint)?;
            }
            session.keep_checkpoints(path, name);
        }
        let engine = proxlift::engine::standard();
        session.run(&*engine, self)
    }

    fn recall(&mut self, out: &Path, checkpoint: &Checkpoint) -> Result<()> {
        let note = |name: &str| checkpoint.notes.get(name).copied();
        if let (Some(psnr), Some(epoch)) = (note("best_psnr"), note("best_epoch")) {
            self.best = Some((psnr, epoch as usize, model::Model::load(out.join(BEST))?));
        }
        let path = out.join(HISTORY);
        let text = read_text(&path)?;
        let lines = text.lines().take(checkpoint.record.epoch);
        self.history = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.model = Some(self.model_of(&checkpoint.network, checkpoint.record.epoch));
        self.last = Some(checkpoint.record.clone());
        Ok(())
    }

    fn model_of(&self, network: &Network<f32>, epoch: usize) -> model::Model {
        self.config.model(self.provenance.clone(), epoch, network)
    }

    fn is_due(&self, every: Option<usize>, epoch: usize) -> bool {
        every.is_some_and(|every| epoch.is_multiple_of(every)) || epoch == self.config.plan.epochs
    }
}

impl Observer for Watch<'_> {
    fn batch(&mut self, progress: &Progress) -> Go {
        if self.cancel.load(Ordering::Relaxed) {
            return Go::Stop;
        }
        if self.told.is_none_or(|told| told.elapsed() > BETWEEN_TELLING) {
            self.told = Some(Instant::now());
            if (self.ask)(Event::Batch(*progress)).is_err() {
                return Go::Stop;
            }
        }
        Go::On
    }

    fn epoch(&mut self, record: &EpochRecord, network: &Network<f32>, _: &dyn Trainer) -> Result<Go> {
        let (epoch, model) = (record.epoch, self.model_of(network, record.epoch));
        let mut entry = json!(record);
        if self.is_due(Some(self.config.evaluate_every), epoch) {
            let scores = self.material.validation.score(&Denoiser::from(model.clone()))?;
            (entry["psnr"], entry["ssim"]) = (json!(scores.psnr.mean), json!(scores.ssim));
            if self.best.as_ref().is_none_or(|best| scores.psnr.mean > best.0) {
                if let Some(out) = self.out {
                    model.save(out.join(BEST))?;
                }
                self.best = Some((scores.psnr.mean, epoch, model.clone()));
            }
        }
        if let Some(test) = self.test.filter(|_| self.is_due(self.config.settings.test_every, epoch)) {
            let scores = test.score(&Denoiser::from(model.clone()))?;
            (entry["test_psnr"], entry["test_ssim"]) = (json!(scores.psnr.mean), json!(scores.ssim));
        }
        let text = entry.to_string();
        self.history.push(entry);
        self.last = Some(record.clone());
        self.model = Some(model.clone());
        Ok(if (self.ask)(Event::Epoch(text, model))? { Go::On } else { Go::Stop })
    }

    fn checkpoint(&mut self, _: &EpochRecord, _: &Network<f32>) -> Result<Option<Notes>> {
        let Some(out) = self.out else { return Ok(None) };
        if let Some(model) = &self.model {
            model.save(out.join(LAST))?;
        }
        let lines: String = self.history.iter().map(|entry| format!("{entry}\n")).collect();
        let path = out.join(HISTORY);
        proxlift::image::io::write_atomically(&path, |file| {
            std::io::Write::write_all(file, lines.as_bytes()).map_err(Error::io(&path))
        })?;
        let best = self.best.iter();
        let notes = best.flat_map(|(psnr, epoch, _)| [("best_psnr", *psnr), ("best_epoch", *epoch as f64)]);
        Ok(Some(notes.map(|(name, value)| (name.to_string(), value)).collect()))
    }
}

/// All settings: name, group, what its value is, and what it means.
#[pyfunction]
pub fn settings() -> Vec<(&'static str, &'static str, String, String)> {
    let kind = |kind: Kind| match kind {
        Kind::Choice(names) => {
            names.iter().map(|n: &Name| format!("{:?}", n.name)).collect::<Vec<_>>().join(" or ")
        }
        Kind::Number => "float".into(),
        Kind::Count => "int".into(),
        Kind::Switch => "bool".into(),
        Kind::Range => "two floats".into(),
        Kind::List => "floats".into(),
        Kind::StepRule => "float, \"backtracking\" or \"grid\"".into(),
        Kind::Path => "path".into(),
    };
    Settings::list().into_iter().map(|s| (s.field, s.group, kind(s.kind), s.help())).collect()
}
