//! How the time of an epoch grows with the patches, the depth, the features and the threads.

use crate::output;
use proxlift::training::{Config, EpochRecord, Preset, Session, Settings};
use proxlift::{Result, dataset::ImageSet, engine, image::Channels};
use std::sync::Arc;

/// One training whose epochs are timed.
#[derive(Clone, Copy, serde::Serialize)]
struct Point {
    patches: usize,
    depth: usize,
    features: usize,
    threads: usize,
    /// The median of [`EPOCHS`] epochs after the first.
    seconds: f64,
}

/// Epochs that are timed, beside the one that warms up.
const EPOCHS: usize = 5;

/// The side of the built-in pictures that patches are cut from.
const PICTURE: usize = 64;

/// Times epochs of the preset `lifted` around `K=15`, `J=16`, 1,000 patches, one size varied at a time.
pub fn run(threads: usize, json: bool) -> anyhow::Result<()> {
    let base = Point { patches: 1000, depth: 15, features: 16, threads, seconds: 0.0 };
    let mut points: Vec<(&str, usize, Point)> = Vec::new();
    points.extend([250, 500, 1000, 2000, 4000].map(|n| ("patches n", n, Point { patches: n, ..base })));
    points.extend([5, 10, 15, 30].map(|n| ("depth K", n, Point { depth: n, ..base })));
    points.extend([8, 16, 32, 64].map(|n| ("features J", n, Point { features: n, ..base })));
    let counts = (0..).map(|i| 1 << i).take_while(|&count| count < threads).chain([threads]);
    points.extend(counts.map(|n| ("threads", n, Point { threads: n, ..base })));
    let pictures = Arc::new(ImageSet::embedded_train(base.patches, PICTURE, Channels::Grey, 0)?);
    for (name, size, point) in &mut points {
        output::note(format_args!("{name} {size}"));
        point.seconds = crate::flags::pool(Some(point.threads))?.install(|| time(&pictures, point))?;
    }
    if json {
        let points: Vec<Point> = points.into_iter().map(|(_, _, point)| point).collect();
        return output::line(serde_json::to_string_pretty(&points)?);
    }
    output::line(format_args!(
        "the time of an epoch of `proxlift train --preset lifted`; K=15, J=16, 1000 patches of 32x32,\n\
         {threads} threads, but for the size that is varied\n\n{:>32}{:>22}",
        "seconds", "patches a second"
    ))?;
    let mut last = "";
    for (name, size, Point { patches, seconds, .. }) in &points {
        let shown = if last == *name { "" } else { name };
        last = name;
        let speed = *patches as f64 / seconds;
        output::line(format_args!("{shown:<12}{size:>8}{seconds:>12.3}{speed:>22.0}"))?;
    }
    Ok(())
}

fn time(pictures: &Arc<ImageSet>, point: &Point) -> Result<f64> {
    let config = Config::resolve(&Settings {
        preset: Some(Preset::Lifted),
        depth: Some(point.depth),
        features: Some(point.features),
        count: Some(point.patches),
        epochs: Some(EPOCHS + 1),
        ..Settings::default()
    })?;
    let patches = config.patches(Arc::clone(pictures))?;
    let mut seconds = Vec::new();
    let mut session = Session::new(&config, config.network()?, &patches)?;
    session.run(&*engine::standard(), &mut |epoch: &EpochRecord| seconds.push(epoch.seconds))?;
    let mut epochs: Vec<f64> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    epochs.sort_by(f64::total_cmp);
    Ok(epochs[epochs.len() / 2])
}
