//! Drawings: panels of lines with axes, bands and one legend, in SVG that needs nothing else.

mod axis;
mod panel;
mod style;

pub use axis::Axis;
pub use panel::{Line, Panel};
pub use style::{Style, sheet};

use maud::{Markup, PreEscaped, html};

/// A whole drawing.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    /// What a reader must know before trusting it.
    pub caution: Option<String>,
    /// The names of the lines.
    pub legend: Vec<(String, Style)>,
    /// The frames, row by row.
    pub panels: Vec<Panel>,
    /// Frames in a row.
    pub columns: usize,
    /// The size of a frame.
    pub frame: (f64, f64),
}

/// Room around a frame: left, top, right, bottom.
const MARGIN: (f64, f64, f64, f64) = (66.0, 34.0, 22.0, 50.0);
/// The size of the text, and the width of a character of it, about.
const TEXT: f64 = 12.0;
const CHARACTER: f64 = 6.6;
/// A line of the legend.
const LEGEND: f64 = 20.0;

impl Chart {
    pub fn draw(&self) -> String {
        let (left, top, right, bottom) = MARGIN;
        let cell = (left + self.frame.0 + right, top + self.frame.1 + bottom);
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let width = cell.0 * columns as f64;
        let most = ((width - left - right) / CHARACTER * 1.15) as usize;
        let caution = self.caution.as_deref().unwrap_or_default();
        let lines = [(&*self.subtitle, "faint"), (caution, "warn")];
        let lines =
            lines.into_iter().flat_map(|(text, class)| wrap(text, most).into_iter().map(move |t| (t, class)));
        let lines: Vec<(String, &str)> = lines.collect();
        let (legend, head) = self.draw_legend(width - right, 32.0 + 18.0 * lines.len() as f64);
        let height = head + cell.1 * self.panels.len().div_ceil(columns) as f64;
        let corner =
            |i: usize| ((i % columns) as f64 * cell.0 + left, head + (i / columns) as f64 * cell.1 + top);
        let svg = html! {
            svg.chart xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } width=(width)
                height=(height) font-family="Helvetica, Arial, sans-serif" font-size=(TEXT) role="img"
                aria-label=(self.title) {
                style { (PreEscaped(sheet())) }
                rect.paper width="100%" height="100%" {}
                text x=(left) y="24" font-size="16" font-weight="bold" { (self.title) }
                @for (i, (line, class)) in lines.iter().enumerate() {
                    text.(class) x=(left) y=(42 + 18 * i) { (line) }
                }
                (legend)
                @for (i, panel) in self.panels.iter().enumerate() {
                    @let (x, y) = corner(i);
                    g transform={ "translate(" (x) " " (y) ")" } { (panel.draw(self.frame)) }
                }
            }
        };
        svg.into_string() + "\n"
    }

    /// The legend from `y` on, in lines that end before `end`; and where it ends.
    fn draw_legend(&self, end: f64, mut y: f64) -> (Markup, f64) {
        if self.legend.is_empty() {
            return (Markup::default(), y);
        }
        let left = MARGIN.0;
        let mut x = left;
        y += LEGEND - 6.0;
        let mut drawn = Vec::new();
        for (name, style) in &self.legend {
            let wide = 34.0 + CHARACTER * name.chars().count() as f64 + 18.0;
            if x > left && x + wide > end {
                (x, y) = (left, y + LEGEND);
            }
            drawn.push(html! {
                line.(style.class()) x1=(x) x2=(x + 28.0) y1=(y - 4.0) y2=(y - 4.0) stroke-width="2.5"
                    stroke-dasharray=[style.dashes()] {}
                text x=(x + 34.0) y=(y) { (name) }
            });
            x += wide;
        }
        (html! { @for entry in drawn { (entry) } }, y + 6.0)
    }
}

/// Breaks a text into lines of at most `most` characters, at spaces.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
#[path = "../../tests/unit/chart.rs"]
mod tests;
