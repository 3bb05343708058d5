//! Scores over the noise level: a table, an object, a drawing.

use super::Arguments;
use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::scores::{Scores, score};
use crate::{files::write, output, test_set::TestSet};
use anyhow::Result;
use proxlift::Denoiser;
use serde_json::{Value, json};

struct Point {
    scores: Scores,
    /// Total variation's, where it was asked for.
    variation: Option<Scores>,
}

/// Scores the pictures at every level, draws and prints; thresholds follow the level, unless `--as-trained`.
pub fn run(arguments: &Arguments, denoiser: &Denoiser, pictures: &TestSet, levels: &[f64]) -> Result<()> {
    let count = arguments.count(pictures);
    let score = |denoiser: &Denoiser, sigma| score(denoiser, pictures, count, sigma, arguments.seed);
    let variation = Denoiser::total_variation().clipped(arguments.clip);
    let point = |&sigma: &f64| -> Result<Point> {
        let scores = score(&arguments.at(denoiser, sigma), sigma)?;
        let variation = arguments.tv.then(|| score(&variation.clone().sigma(sigma), sigma)).transpose()?;
        Ok(Point { scores, variation })
    };
    let points = levels.iter().map(point).collect::<Result<Vec<_>>>()?;
    if let Some(path) = &arguments.plot {
        write(path, draw(&points, arguments, pictures).as_bytes())?;
        output::note(format_args!("wrote {}", path.display()));
    }
    if arguments.json {
        let points: Vec<Value> = points.iter().map(|point| point.to_json(arguments.verbose)).collect();
        return arguments.print_json(pictures, json!({"curve": points}));
    }
    // As it was made; the thresholds of each level are its own.
    output::line(denoiser.describe(pictures.channels()))?;
    let levels = format!("{} noise levels", points.len());
    output::line(format_args!("{}\n", arguments.describe(pictures, &levels)))?;
    for Point { scores, .. } in points.iter().filter(|_| arguments.verbose) {
        output::line(format_args!("sigma {:.4}\n{}\n", scores.sigma, scores.per_image_table()))?;
    }
    let tv = if arguments.tv { "     TV dB   TV SSIM" } else { "" };
    output::line(format_args!("   sigma    /255  noisy dB        dB      SSIM{tv}"))?;
    points.iter().try_for_each(|point| output::line(point.row()))
}

fn draw(points: &[Point], arguments: &Arguments, pictures: &TestSet) -> String {
    let (denoised, variation, noisy) = (Style::kind(0), Style::kind(1), Style::kind(5).dashed(1));
    let line = |style, of: &dyn Fn(&Point) -> Option<f64>| {
        let points = points.iter().filter_map(|point| Some((point.scores.sigma, of(point)?)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line::new(style, points)
    };
    let panel = |title: &str, axis: Axis, of: fn((f64, f64)) -> f64| {
        let lines = [
            line(noisy, &|point| Some(of(point.scores.noisy_means()))),
            line(variation, &|point| point.variation.as_ref().map(|scores| of(scores.means()))),
            line(denoised, &|point| Some(of(point.scores.means()))),
        ];
        let lines = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        Panel::new(title, Axis::linear("σ of the noise, where white is 1"), axis, lines)
    };
    let mut legend = vec![(arguments.choice.name().to_string(), denoised)];
    legend.extend(arguments.tv.then(|| ("total variation".into(), variation)));
    legend.push(("noisy".into(), noisy));
    Chart {
        title: "Denoising at several noise levels".into(),
        subtitle: arguments.describe(pictures, "means"),
        legend,
        panels: vec![
            panel("PSNR", Axis::linear("PSNR in dB, peak 1"), |means| means.0),
            panel("SSIM", Axis::linear("SSIM"), |means| means.1),
        ],
        columns: 2,
        frame: (380.0, 260.0),
        ..Chart::default()
    }
    .draw()
}

impl Point {
    fn row(&self) -> String {
        let (sigma, (noisy, _), (psnr, ssim)) =
            (self.scores.sigma, self.scores.noisy_means(), self.scores.means());
        let row = format!("{sigma:>8.4} {:>7.1} {noisy:>9.2} {psnr:>9.2} {ssim:>9.4}", 255.0 * sigma);
        let tv = self.variation.as_ref().map(Scores::means);
        row + &tv.map_or(String::new(), |(psnr, ssim)| format!(" {psnr:>9.2} {ssim:>9.4}"))
    }

    fn to_json(&self, verbose: bool) -> Value {
        let mut object = self.scores.to_json(verbose);
        if let Some(tv) = &self.variation {
            let (psnr, ssim) = tv.means();
            (object["tv_psnr"], object["tv_ssim"]) = (json!(psnr), json!(ssim));
        }
        object
    }
}
