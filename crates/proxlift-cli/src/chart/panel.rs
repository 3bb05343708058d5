//! One frame of a drawing: axes, lines, bands, a level to compare with.

use super::axis::{Axis, Range};
use super::{CHARACTER, TEXT, style::Style};
use maud::{Markup, html};

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

    /// The panel in a frame of this size, whose corner is the origin.
    pub(super) fn draw(&self, (w, h): (f64, f64)) -> Markup {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let bands = self.lines.iter().flat_map(|line| &line.band);
        let values = points.clone().map(|p| p.1).chain(bands.flat_map(|b| [b.1, b.2]));
        let values = values.chain(self.level.iter().map(|level| level.0));
        let horizontal = Range::of(points.map(|p| p.0), self.x.scale, 0.02);
        let vertical = Range::of(values, self.y.scale, 0.06);
        let title = html! { text x="0" y="-10" font-weight="bold" { (self.title) } };
        let (Some(horizontal), Some(vertical)) = (horizontal, vertical) else {
            return html! { (title) text x=(w / 2.0) y=(h / 2.0) text-anchor="middle" { "no values" } };
        };
        let across = |x: f64| horizontal.place(x).map(|t| w * t);
        let down = |y: f64| vertical.place(y).map(|t| h * (1.0 - t));
        let place = |x: f64, y: f64| across(x).zip(down(y));
        let level = self.level.and_then(|(level, name)| Some((down(level)?, name)));
        html! {
            (title)
            @for (tick, label) in vertical.ticks((h / 32.0) as usize) {
                @if let Some(at) = down(tick) {
                    line.grid x1="0" x2=(w) y1=(pixel(at)) y2=(pixel(at)) {}
                    text x="-8" y=(pixel(at + 4.0)) text-anchor="end" { (label) }
                }
            }
            @for (at, label) in apart(horizontal.ticks((w / 42.0) as usize), across) {
                line.frame x1=(pixel(at)) x2=(pixel(at)) y1=(h) y2=(h + 5.0) {}
                text x=(pixel(at)) y=(h + 19.0) text-anchor="middle" { (label) }
            }
            path.frame d={ "M0 0V" (h) "H" (w) } {}
            text.faint x=(w / 2.0) y=(h + 38.0) text-anchor="middle" { (self.x.label) }
            text.faint transform={ "translate(-50 " (h / 2.0) ") rotate(-90)" } text-anchor="middle" { (self.y.label) }
            @if let Some((at, _)) = level {
                line.level x1="0" x2=(w) y1=(pixel(at)) y2=(pixel(at)) stroke-dasharray="5 4" {}
            }
            @for line in &self.lines { (line.draw(&place)) }
            @if let Some((at, name)) = level {
                @let courses: Vec<_> = self.lines.iter().map(|line| line.placed(&place)).collect();
                @let (x, y) = free_place(&courses, (w, h), at, CHARACTER * name.chars().count() as f64);
                text.faint x=(pixel(x)) y=(pixel(y)) paint-order="stroke" { (name) }
            }
        }
    }
}

/// A place on the paper, to a tenth.
fn pixel(place: f64) -> String {
    format!("{place:.1}")
}

/// Where ticks are, with their labels. Those of a logarithmic axis come near each other: a label that would touch the last
/// one is left out.
fn apart(
    ticks: Vec<(f64, String)>,
    place: impl Fn(f64) -> Option<f64>,
) -> impl Iterator<Item = (f64, String)> {
    let mut free = f64::NEG_INFINITY;
    ticks.into_iter().filter_map(move |(tick, label)| {
        let at = place(tick)?;
        let half = 0.5 * CHARACTER * label.chars().count() as f64 + 2.0;
        let fits = at - half >= free;
        free = if fits { at + half } else { free };
        Some((at, if fits { label } else { String::new() }))
    })
}

/// Where a name of this width is written at the level `at`: over or under it, at one end or the other, where lines come
/// least in its way.
pub fn free_place(courses: &[Vec<(f64, f64)>], (w, h): (f64, f64), at: f64, wide: f64) -> (f64, f64) {
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

    pub fn draw(&self, place: &dyn Fn(f64, f64) -> Option<(f64, f64)>) -> Markup {
        let text = |points: &[(f64, f64)]| {
            points.iter().map(|p| format!("{:.2},{:.2}", p.0, p.1)).collect::<Vec<_>>().join(" ")
        };
        let class = self.style.class();
        let low = self.band.iter().filter_map(|b| place(b.0, b.1));
        let high = self.band.iter().rev().filter_map(|b| place(b.0, b.2));
        let band: Vec<(f64, f64)> = low.chain(high).collect();
        let points = self.placed(place);
        let marked = self.mark.and_then(|x| self.points.iter().find(|p| p.0 == x));
        let marked = marked.and_then(|p| place(p.0, p.1)).or(points.last().copied());
        let dots = if self.dots { points.clone() } else { marked.into_iter().collect() };
        html! {
            @if !band.is_empty() {
                polygon.(class) points=(text(&band)) fill="currentColor" fill-opacity="0.15" stroke-width="0" {}
            }
            @if !self.dots {
                polyline.(class) points=(text(&points)) fill="none" stroke-width="2" stroke-linejoin="round"
                    stroke-dasharray=[self.style.dashes()] {}
            }
            @for (x, y) in dots {
                circle.(class) cx=(format!("{x:.2}")) cy=(format!("{y:.2}")) r="3.2" fill="currentColor" {}
            }
        }
    }
}
