//! The noise of a picture drawn: against the intensity, and by frequency.

use crate::chart::{Axis, Chart, Line, Panel, Style};
use proxlift::denoiser::Noise;
use proxlift::noise::NoiseModel;

/// Points of a fitted curve.
const POINTS: usize = 60;
const NAMES: [&str; 3] = ["red", "green", "blue"];
/// Their colours: orange, green and blue can be told apart by everybody.
const STYLES: [usize; 3] = [1, 2, 0];

/// The drawing for a picture of this name.
pub(super) fn draw(name: &str, noise: &Noise, model: &NoiseModel) -> String {
    let unit = noise.unit();
    let style = |c: usize| Style::kind(if model.spectrum.len() == 3 { STYLES[c] } else { 0 });
    let mut against = Vec::new();
    for (c, variance) in model.variances.iter().enumerate() {
        let measured: Vec<(f64, f64)> =
            variance.points.iter().map(|[x, v]| (x / unit, v.max(0.0).sqrt() / unit)).collect();
        let ends =
            measured.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p.0), b.max(p.0)));
        let fitted = (0..=POINTS).filter(|_| ends.0 < ends.1).map(|i| {
            let x = ends.0 + (ends.1 - ends.0) * i as f64 / POINTS as f64;
            (x, variance.at(x * unit).max(0.0).sqrt() / unit)
        });
        against.push(Line::new(style(c), fitted.collect()));
        against.push(Line { dots: true, ..Line::new(style(c), measured) });
    }
    let spectrum = model.spectrum.iter().enumerate().map(|(c, levels)| {
        let highest = levels.len() as f64;
        let points = levels.iter().enumerate().map(|(i, level)| ((i + 1) as f64 / highest, level / unit));
        Line::new(style(c), points.collect())
    });
    let level = "standard deviation, in values of the file";
    let mut panels = Vec::new();
    if !against.is_empty() {
        panels.push(Panel::new(
            "Noise against intensity",
            Axis::linear("value in the file"),
            Axis::linear(level),
            against,
        ));
    }
    panels.push(Panel::new(
        "Noise by frequency, in quiet places",
        Axis::linear("frequency, as a share of the highest"),
        Axis::linear(level),
        spectrum.collect(),
    ));
    let legend = if model.spectrum.len() == 3 {
        NAMES.iter().enumerate().map(|(c, name)| (name.to_string(), style(c))).collect()
    } else {
        Vec::new()
    };
    Chart {
        title: format!("Noise of {name}"),
        subtitle: format!("{} noise: {noise}", model.kind),
        legend,
        columns: panels.len(),
        panels,
        frame: (400.0, 260.0),
        ..Chart::default()
    }
    .draw()
}
