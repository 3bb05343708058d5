//! The course of a training as a drawing: loss and PSNR over the epochs, in SVG.

use std::fmt::Write;

/// A line of the drawing: what it is, and its points.
pub struct Curve<'a> {
    /// The title of its panel.
    pub title: &'a str,
    /// What the vertical axis measures.
    pub unit: &'a str,
    /// Epoch and value.
    pub points: Vec<(f64, f64)>,
    /// A level to compare with, and its name.
    pub level: Option<(f64, &'a str)>,
    /// Its colour.
    pub colour: &'a str,
}

/// The size of a panel's frame, and the room around it.
const FRAME: (f64, f64) = (400.0, 260.0);
const MARGIN: (f64, f64, f64, f64) = (72.0, 76.0, 24.0, 52.0);
const INK: &str = "#333";

/// Draws the panels side by side below `title` and `subtitle`.
pub fn draw(title: &str, subtitle: &str, curves: &[Curve<'_>]) -> String {
    let (left, top, right, bottom) = MARGIN;
    let panel = left + FRAME.0 + right;
    let (width, height) = (panel * curves.len() as f64, top + FRAME.1 + bottom);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{left}\" y=\"42\" fill=\"#666\">{}</text>\n",
        escape(title),
        escape(subtitle)
    );
    for (i, curve) in curves.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate({} {top})\">", i as f64 * panel + left);
        draw_panel(&mut svg, curve);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_panel(svg: &mut String, curve: &Curve<'_>) {
    let (w, h) = FRAME;
    let finite: Vec<(f64, f64)> = curve.points.iter().copied().filter(|(_, y)| y.is_finite()).collect();
    let values = finite.iter().map(|p| p.1).chain(curve.level.map(|l| l.0));
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), y| (a.min(y), b.max(y)));
    let last = finite.last().map_or(1.0, |p| p.0).max(1.0);
    let _ = writeln!(svg, "<text x=\"0\" y=\"-10\" font-weight=\"bold\">{}</text>", escape(curve.title));
    if finite.is_empty() {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">no values</text>",
            w / 2.0,
            h / 2.0
        );
        return;
    }
    // A loss that falls by much is drawn on a logarithmic scale.
    let log = low > 0.0 && high / low > 8.0;
    let scale = |y: f64| if log { y.ln() } else { y };
    let room = 0.06 * (scale(high) - scale(low)).max(1e-3 * scale(high).abs()).max(1e-12);
    let (bottom, top) = (scale(low) - room, scale(high) + room);
    let first = if finite.len() > 1 { finite[0].0 } else { 0.0 };
    let x = |epoch: f64| w * (epoch - first) / (last - first).max(1.0);
    let y = |value: f64| h * (top - scale(value)) / (top - bottom);

    let ticks = if log { log_ticks(bottom.exp(), top.exp()) } else { ticks(bottom, top, 8) };
    for tick in &ticks {
        let (at, label) = (y(*tick), label(*tick, &ticks));
        let _ = writeln!(
            svg,
            "<line x1=\"0\" x2=\"{w}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>\
             <text x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            at + 4.0
        );
    }
    let epochs: Vec<f64> = ticks_of_epochs(first, last);
    for epoch in epochs {
        let at = x(epoch);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{h}\" y2=\"{}\" stroke=\"{INK}\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{epoch}</text>",
            h + 5.0,
            h + 19.0
        );
    }
    let _ = writeln!(svg, "<path d=\"M0 0V{h}H{w}\" fill=\"none\" stroke=\"{INK}\"/>");
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">epoch</text>", w / 2.0, h + 40.0);
    let _ = writeln!(
        svg,
        "<text transform=\"translate(-54 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        h / 2.0,
        escape(curve.unit)
    );
    if let Some((level, name)) = curve.level {
        let at = y(level);
        let _ = writeln!(
            svg,
            "<line x1=\"0\" x2=\"{w}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{}</text>",
            w - 4.0,
            at - 5.0,
            escape(name)
        );
    }
    let points: Vec<String> = finite.iter().map(|p| format!("{:.2},{:.2}", x(p.0), y(p.1))).collect();
    let colour = curve.colour;
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>",
        points.join(" ")
    );
    if let Some(end) = finite.last() {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.2}\" cy=\"{:.2}\" r=\"3.5\" fill=\"{colour}\"/>",
            x(end.0),
            y(end.1)
        );
    }
}

/// Round numbers between `low` and `high`, `most` at most.
fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let raw = (high - low) / most as f64;
    let unit = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * unit).find(|s| *s >= raw).unwrap_or(10.0 * unit);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

fn ticks_of_epochs(first: f64, last: f64) -> Vec<f64> {
    let inner = ticks(first, last, 8).into_iter().filter(|t| t.fract() == 0.0 && *t > first);
    std::iter::once(first).chain(inner).collect()
}

/// 1, 2 and 5 times the powers of ten between `low` and `high`.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|p| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(p)));
    all.filter(|t| (low..=high).contains(t)).collect()
}

/// With as many digits as tell the ticks apart.
fn label(tick: f64, ticks: &[f64]) -> String {
    let gap = ticks.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let digits = if gap.is_finite() { (-gap.log10()).ceil().clamp(0.0, 9.0) as usize } else { 2 };
    format!("{tick:.digits$}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.3, 4.2, 5), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(log_ticks(0.15, 6.0), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(label(0.5, &[0.0, 0.5, 1.0]), "0.5");
        assert_eq!(ticks_of_epochs(1.0, 3.0), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn any_course_can_be_drawn() {
        let courses = [vec![], vec![(1.0, 2.0)], vec![(1.0, 2.0), (2.0, f64::INFINITY), (3.0, 2.0)]];
        for points in courses {
            let curve = Curve { title: "a < b", unit: "dB", points, level: Some((2.0, "c")), colour: "red" };
            let svg = draw("title", "", &[curve]);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
