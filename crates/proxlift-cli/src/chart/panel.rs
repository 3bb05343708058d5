//! One frame of a drawing: axes, lines, bands, a level to compare with.

use super::axis::{Axis, Range};
use super::style::Style;
use super::{CHARACTER, TEXT, escape};
use std::fmt::Write;

/// A line of a panel.
#[derive(Clone, Debug)]
pub struct Line {
    pub style: Style,
    pub points: Vec<(f64, f64)>,
    /// From where to where its values go: `x`, least, largest.
    pub band: Vec<(f64, f64, f64)>,
    /// Whether only the points are drawn, as dots.
    pub dots: bool,
    /// Where on the horizontal axis a line has its dot, if not at its end.
    pub mark: Option<f64>,
}

impl Line {
    pub fn new(style: Style, points: Vec<(f64, f64)>) -> Self {
        Self { style, points, band: Vec::new(), dots: false, mark: None }
    }
}

/// One frame with its axes.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// A level to compare with, and its name.
    pub level: Option<(f64, &'static str)>,
}

impl Panel {
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self { title: title.into(), x, y, lines, level: None }
    }

    /// Draws it into a frame of this size, whose corner is the origin.
    pub(super) fn draw(&self, svg: &mut String, (w, h): (f64, f64)) {
        let _ = writeln!(svg, "<text x=\"0\" y=\"-10\" font-weight=\"bold\">{}</text>", escape(&self.title));
        let points = self.lines.iter().flat_map(|line| &line.points);
        let bands = self.lines.iter().flat_map(|line| &line.band);
        let values = points.clone().map(|p| p.1).chain(bands.flat_map(|b| [b.1, b.2]));
        let values = values.chain(self.level.iter().map(|level| level.0));
        let horizontal = Range::of(points.map(|p| p.0), self.x.scale, 0.02);
        let vertical = Range::of(values, self.y.scale, 0.06);
        let (Some(horizontal), Some(vertical)) = (horizontal, vertical) else {
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">no values</text>",
                w / 2.0,
                h / 2.0
            );
            return;
        };
        let place = |x: f64, y: f64| Some((w * horizontal.place(x)?, h * (1.0 - vertical.place(y)?)));
        for (tick, label) in vertical.ticks((h / 32.0) as usize) {
            let Some(at) = vertical.place(tick).map(|t| h * (1.0 - t)) else { continue };
            let _ = writeln!(
                svg,
                "<line x1=\"0\" x2=\"{w}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/>\
                 <text x=\"-8\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                at + 4.0
            );
        }
        let mut free = f64::NEG_INFINITY;
        for (tick, label) in horizontal.ticks((w / 42.0) as usize) {
            let Some(at) = horizontal.place(tick).map(|t| w * t) else { continue };
            // Labels of a logarithmic axis come near each other: one that would touch the last is left out.
            let half = 0.5 * CHARACTER * label.chars().count() as f64 + 2.0;
            let label = if at - half < free { String::new() } else { label };
            free = if label.is_empty() { free } else { at + half };
            let _ = writeln!(
                svg,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{h}\" y2=\"{}\" class=\"frame\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                h + 5.0,
                h + 19.0
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M0 0V{h}H{w}\" class=\"frame\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" class=\"faint\">{}</text>\
             <text transform=\"translate(-50 {}) rotate(-90)\" text-anchor=\"middle\" class=\"faint\">{}</text>",
            w / 2.0,
            h + 38.0,
            escape(self.x.label),
            h / 2.0,
            escape(self.y.label)
        );
        let level = self.level.and_then(|(level, name)| Some((h * (1.0 - vertical.place(level)?), name)));
        if let Some((at, _)) = level {
            let _ = writeln!(
                svg,
                "<line x1=\"0\" x2=\"{w}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"level\" stroke-dasharray=\"5 4\"/>"
            );
        }
        for line in &self.lines {
            line.draw(svg, &place);
        }
        if let Some((at, name)) = level {
            let wide = CHARACTER * name.chars().count() as f64;
            let courses: Vec<Vec<(f64, f64)>> = self.lines.iter().map(|line| line.placed(&place)).collect();
            let (x, y) = free_place(&courses, (w, h), at, wide);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"faint\" paint-order=\"stroke\">{}</text>",
                escape(name)
            );
        }
    }
}

/// Where a name of this width is written at the level `at`: over or under it, at one end or the other, where lines come
/// least in its way.
fn free_place(courses: &[Vec<(f64, f64)>], (w, h): (f64, f64), at: f64, wide: f64) -> (f64, f64) {
    let ends = [4.0, (w - wide - 4.0).max(4.0), ((w - wide) / 2.0).max(4.0)];
    let places = ends.into_iter().flat_map(|x| [(x, at - 5.0), (x, at + TEXT + 3.0)]);
    // Points of all lines, a pixel apart, inside the box of the name with some air around it.
    let in_the_way = |(x, y): (f64, f64)| {
        let inside = |px: f64, py: f64| px > x - 4.0 && px < x + wide + 4.0 && py > y - TEXT && py < y + 6.0;
        let along = |a: (f64, f64), b: (f64, f64)| {
            let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).ceil().max(1.0) as usize;
            (0..=steps)
                .map(move |i| i as f64 / steps as f64)
                .filter(|t| inside(a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1)))
                .count()
        };
        let beyond = if y - TEXT < 0.0 || y > h { 10_000 } else { 0 };
        beyond + courses.iter().flat_map(|points| points.windows(2)).map(|w| along(w[0], w[1])).sum::<usize>()
    };
    places.min_by_key(|&place| in_the_way(place)).unwrap_or((4.0, at - 5.0))
}

impl Line {
    /// Its points on the paper.
    fn placed(&self, place: &dyn Fn(f64, f64) -> Option<(f64, f64)>) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|p| place(p.0, p.1)).collect()
    }

    fn draw(&self, svg: &mut String, place: &dyn Fn(f64, f64) -> Option<(f64, f64)>) {
        let text = |points: &[(f64, f64)]| {
            points.iter().map(|p| format!("{:.2},{:.2}", p.0, p.1)).collect::<Vec<_>>().join(" ")
        };
        let class = self.style.class();
        let low = self.band.iter().filter_map(|b| place(b.0, b.1));
        let high = self.band.iter().rev().filter_map(|b| place(b.0, b.2));
        let band: Vec<(f64, f64)> = low.chain(high).collect();
        if !band.is_empty() {
            let _ = writeln!(
                svg,
                "<polygon points=\"{}\" class=\"{class}\" fill=\"currentColor\" fill-opacity=\"0.15\" \
                 stroke-width=\"0\"/>",
                text(&band)
            );
        }
        let points = self.placed(place);
        if !self.dots {
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" class=\"{class}\" stroke-width=\"2\" \
                 stroke-linejoin=\"round\"{}/>",
                text(&points),
                self.style.stroke()
            );
        }
        let marked = self.mark.and_then(|x| self.points.iter().find(|p| p.0 == x));
        let marked = marked.and_then(|p| place(p.0, p.1)).or(points.last().copied());
        let shown = if self.dots { points } else { marked.into_iter().collect() };
        for (x, y) in shown {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"3.2\" class=\"{class}\" fill=\"currentColor\"/>"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_level_is_not_written_over_a_line() {
        // Where a line rises from the left end of the level, the name goes under it; where another falls from there too, to
        // the right.
        let rising = vec![(0.0, 100.0), (60.0, 92.0), (300.0, 20.0)];
        let falling = vec![(0.0, 100.0), (60.0, 108.0), (300.0, 180.0)];
        let place = |courses: &[Vec<(f64, f64)>]| free_place(courses, (300.0, 200.0), 100.0, 90.0);
        let (x, y) = place(std::slice::from_ref(&rising));
        assert!(x == 4.0 && y > 100.0 + TEXT, "{x} {y}");
        assert!(place(&[rising, falling]).0 > 200.0);
        assert_eq!(free_place(&[], (300.0, 200.0), 100.0, 90.0), (4.0, 95.0));
        // Never outside the frame.
        assert!(free_place(&[], (300.0, 200.0), 3.0, 90.0).1 > 3.0);
    }

    #[test]
    fn the_dot_is_on_the_marked_point() {
        let mut line = Line::new(Style::kind(0), vec![(1.0, 5.0), (2.0, 9.0), (3.0, 7.0)]);
        line.mark = Some(2.0);
        let mut svg = String::new();
        line.draw(&mut svg, &|x, y| Some((10.0 * x, y)));
        assert!(svg.contains("cx=\"20.00\" cy=\"9.00\""), "{svg}");
    }
}
