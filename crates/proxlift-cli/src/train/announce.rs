//! What a training is going to do, need and take, told before it starts.

use super::build;
use super::config::Config;
use super::data::Data;
use super::settings::Rate;
use crate::output;
use anyhow::Result;
use proxlift::dataset::Patches;
use proxlift::engine::Cpu;
use proxlift::network::Network;
use proxlift::training::{EpochRecord, Go, Observer, Trainer, train};

/// Says what will be done and how long it will take.
pub fn announce(config: &Config, data: &Data, trainer: &dyn Trainer, first: &EpochRecord) -> Result<()> {
    let (network, count) = (build::network(config)?, data.patches.len());
    output::note(format_args!("network   {network}: {} parameters", network.parameters()));
    output::note(format_args!("trainer   {}", trainer.describe()));
    output::note(format_args!(
        "data      {}; {count} patches of {1} x {1} pixels, sigma {2:.4}{3}",
        data.described,
        config.patch,
        config.sigma,
        config.settings.sigma_range.map_or(String::new(), |[a, b]| format!(" (drawn from {a} to {b})"))
    ));
    let growing =
        if config.last_batch == config.batch { String::new() } else { format!(" to {}", config.last_batch) };
    output::note(format_args!("          {} epochs in batches of {}{growing}", config.epochs, config.batch));
    if config.rate == Rate::Grid {
        let rates: Vec<String> = config.rates.iter().map(|rate| format!("{rate:e}")).collect();
        output::note(format_args!("rates     {}, {} epochs each", rates.join(", "), config.grid_epochs));
    }
    let kept = build::persistent_bytes(config, count);
    let kept_text = match kept {
        0 => String::new(),
        kept => format!(", of it {} for persistent u; a checkpoint takes as much on the disk", size(kept)),
    };
    let all = data.bytes + build::batch_bytes(config) + kept;
    output::note(format_args!("memory    about {}{kept_text}", size(all)));
    let seconds = estimate(config, data)? * epochs_left(config, first) as f64;
    output::note(format_args!(
        "time      about {} on {} threads",
        duration(seconds),
        rayon::current_num_threads()
    ));
    Ok(())
}

/// Epochs that are to be done, of all rates of a grid if there is one; a grid that goes on may need fewer.
fn epochs_left(config: &Config, first: &EpochRecord) -> usize {
    match config.rate {
        Rate::Grid if config.grid_epochs == config.epochs => config.rates.len() * config.epochs,
        Rate::Grid => config.rates.len() * config.grid_epochs + config.epochs,
        _ => config.epochs - first.epoch.min(config.epochs),
    }
}

/// Batches that the time of a training is told from, and the seconds that they may take.
const TRIAL: (usize, f64) = (50, 0.5);

/// Seconds that an epoch will take, from some batches on a network that is thrown away; the first one only warms up.
fn estimate(config: &Config, data: &Data) -> Result<f64> {
    struct Clock {
        first: Option<f64>,
        mean: f64,
    }
    impl Observer for Clock {
        fn batch(&mut self, _: usize, _: usize, _: f64) {}
        fn epoch(&mut self, record: &EpochRecord, _: &Network<f32>, _: &dyn Trainer) -> proxlift::Result<Go> {
            let first = *self.first.get_or_insert(record.seconds);
            self.mean = (record.seconds - first) / (record.epoch - 1).max(1) as f64;
            Ok(if record.epoch > 1 && record.seconds > TRIAL.1 { Go::Stop } else { Go::On })
        }
    }
    let count = config.batch.min(data.patches.len());
    let few: Patches = data.patches.first(count);
    let mut network = build::network(config)?;
    let mut trainer = build::trainer(config, &network, count)?;
    let mut clock = Clock { first: None, mean: 0.0 };
    let plan = super::plan(config, TRIAL.0);
    // The same batch again and again may diverge where the training does not: the time is told all the same.
    let _ =
        train(&Cpu::new(), &mut network, trainer.as_mut(), &few, &plan, &EpochRecord::default(), &mut clock);
    let network = build::network(config)?;
    let start = std::time::Instant::now();
    data.validation.score(&proxlift::Denoiser::from(network))?;
    let scoring = start.elapsed().as_secs_f64() / config.evaluate_every as f64;
    Ok(clock.mean * data.patches.len().div_ceil(config.batch) as f64 + scoring)
}

/// Bytes for people.
fn size(bytes: usize) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b => format!("{:.0} MB", (b / 1e6).max(1.0)),
    }
}

/// Seconds for people.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
