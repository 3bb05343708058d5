//! The end of a run: scores beside what needs no training, pictures, the drawing of its course.

use super::data::Data;
use super::folder::{Entry, Folder, LAST, MODEL};
use super::{announce::duration, session::Outcome};
use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::output;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::training::{Config, Validation, ValidationScores};
use proxlift::{Denoiser, image::Image, model::Model};
use serde_json::{Map, json};

const SHEET: &str = "before-after.png";
const PLOT: &str = "training.svg";

/// Test pictures on the sheet, and the side that they are cropped to.
const ROWS: usize = 3;
const SIDE: usize = 192;
const GAP: usize = 4;

/// What is told at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Say {
    Table,
    Json,
    Nothing,
}

/// Scores the best network on the test set, draws, prints, and marks the run as finished.
pub fn finish(
    config: &Config,
    data: &Data,
    folder: &Folder,
    outcome: &Outcome,
    say: Say,
) -> anyhow::Result<()> {
    let best = outcome.best;
    let path = folder.path(if best.is_some() { MODEL } else { LAST });
    let network = Denoiser::from(Model::load(&path)?);
    let (variation, test) = (Denoiser::total_variation(), data.test());
    let trained = test.score(&network)?;
    let spread = trained.psnr;
    let rows = [
        ("noisy", test.score_noisy()?),
        ("total variation", test.score(&variation)?),
        ("best (built in)", test.score(&Denoiser::best())?),
        ("network", trained),
    ];

    io::write(folder.path(SHEET), &Picture::new(sheet(&network, test)?, Depth::Eight))?;
    let history = folder.history()?;
    let level = data.validation.score(&variation)?.psnr.mean;
    folder.write(PLOT, course(config, &history, level, outcome).as_bytes())?;

    let last = history.last().map(|entry| entry.record.clone()).unwrap_or_default();
    let scores = rows.iter().map(|(name, scores)| {
        let name = name.replace(' ', "_").replace(['(', ')'], "");
        (name, json!({"psnr": scores.psnr.mean, "ssim": scores.ssim}))
    });
    let result = json!({
        "folder": folder.root(),
        "model": path,
        "trainer": outcome.trainer,
        "test": data.test_described,
        "images": spread.count,
        "scores": scores.collect::<Map<_, _>>(),
        "psnr_std": spread.std,
        "epochs": last.epoch,
        "training_seconds": last.seconds,
        "best_epoch": best.map(|(_, epoch)| epoch),
        "best_held_out_psnr": best.map(|(psnr, _)| psnr),
    });
    folder.finish(&result)?;

    if say == Say::Nothing {
        return Ok(());
    }
    if say == Say::Json {
        output::json(&result)?;
    } else {
        let which = best.map_or(String::new(), |(_, epoch)| format!(", network of epoch {epoch}"));
        let sigma = test.sigma().map_or(String::new(), |sigma| format!(", sigma {sigma:.4}"));
        output::line(format_args!("On {}{sigma}{which}:", data.test_described))?;
        output::line(format_args!("{:<16} {:>10} {:>10}", "", "PSNR (dB)", "SSIM"))?;
        for (name, ValidationScores { psnr, ssim }) in &rows {
            let ssim = ssim.map_or("-".into(), |ssim| format!("{ssim:.4}"));
            output::line(format_args!("{name:<16} {:>10.2} {ssim:>10}", psnr.mean))?;
        }
    }
    let [sheet, plot] = [SHEET, PLOT].map(|name| folder.path(name));
    output::note(format_args!("trained for {}", duration(last.seconds)));
    output::note(format_args!("model     {}", path.display()));
    output::note(format_args!("pictures  {} (clean, noisy, denoised)", sheet.display()));
    output::note(format_args!("course    {}", plot.display()));
    output::note(format_args!("use it    proxlift denoise PHOTO --model {}", path.display()));
    let behind = rows[2].1.psnr.mean - rows[3].1.psnr.mean;
    if behind > 0.0 {
        output::note(format_args!(
            "next      the built-in model is {behind:.2} dB better; to adapt it to your own pictures:\n          \
             proxlift train --from best --data DIR"
        ));
    }
    Ok(())
}

/// The training loss and the score on held-out pictures, epoch by epoch; total variation scores `level` on these.
fn course(config: &Config, history: &[Entry], level: f64, outcome: &Outcome) -> String {
    let points = |f: &dyn Fn(&Entry) -> Option<f64>| {
        history.iter().filter_map(|entry| Some((entry.record.epoch as f64, f(entry)?))).collect()
    };
    let panel = |title: &str, unit, style, points: Vec<(f64, f64)>| {
        // The dot is on the network that was kept.
        let line = Line { mark: outcome.best.map(|(_, epoch)| epoch as f64), ..Line::new(style, points) };
        Panel::new(title, Axis::linear("epoch"), Axis::auto(unit), vec![line])
    };
    let loss = points(&|entry| Some(entry.record.loss));
    let loss = panel("Training loss", "half the squared error of a patch", Style::kind(1), loss);
    let psnr = panel("PSNR on held-out pictures", "dB", Style::kind(0), points(&|entry| entry.psnr));
    let sizes = config.architecture;
    let chart = Chart {
        title: format!("K = {}, J = {}, σ = {}", sizes.depth, sizes.features, config.sigma),
        subtitle: outcome.trainer.clone(),
        panels: vec![loss, Panel { level: Some((level, "total variation")), ..psnr }],
        columns: 2,
        frame: (400.0, 260.0),
        ..Chart::default()
    };
    chart.draw()
}

/// Clean, noisy and denoised, side by side; a row for each picture.
fn sheet(denoiser: &Denoiser, test: &Validation) -> proxlift::Result<Image> {
    let denoiser = test.set(denoiser.clone());
    let rows = test.clean.iter().zip(&test.noisy).take(ROWS);
    let rows =
        rows.map(|(clean, noisy)| Ok([clean, noisy, &denoiser.denoise(noisy)?].map(|i| i.centre(SIDE))));
    let rows = rows.collect::<proxlift::Result<Vec<_>>>()?;
    let channels = rows[0][0].channels();
    let cell = rows.iter().map(|row| row[0].width()).max().unwrap_or(0);
    let width = 3 * cell + 2 * GAP;
    let height = rows.iter().map(|row| row[0].height() + GAP).sum::<usize>().saturating_sub(GAP);
    let mut sheet = Image::new(channels, height, width, vec![1.0; channels * height * width])?;
    let mut top = 0;
    for row in &rows {
        row.iter().enumerate().for_each(|(column, image)| sheet.put((top, column * (cell + GAP)), image));
        top += row[0].height() + GAP;
    }
    Ok(sheet)
}
