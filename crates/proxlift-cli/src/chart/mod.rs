//! Drawings: panels of lines with axes, bands and one legend, in SVG that needs nothing else.

mod axis;
mod panel;
mod style;

pub use axis::Axis;
pub use panel::{Line, Panel};
pub use style::{Style, sheet};

use std::fmt::Write;

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
        let mut head = String::new();
        let mut y = 24.0;
        let _ = writeln!(
            head,
            "<text x=\"{left}\" y=\"{y}\" font-size=\"16\" font-weight=\"bold\">{}</text>",
            escape(&self.title)
        );
        for (text, class) in [(Some(&self.subtitle), "faint"), (self.caution.as_ref(), "warn")] {
            for line in
                wrap(text.map_or("", |text| text), ((width - left - right) / CHARACTER * 1.15) as usize)
            {
                y += 18.0;
                let _ =
                    writeln!(head, "<text x=\"{left}\" y=\"{y}\" class=\"{class}\">{}</text>", escape(&line));
            }
        }
        y += 8.0;
        self.draw_legend(&mut head, width - right, &mut y);
        let rows = self.panels.len().div_ceil(columns);
        let height = y + cell.1 * rows as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"{TEXT}\" role=\"img\" aria-label=\"{}\">\n<style>{}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{head}",
            escape(&self.title),
            sheet()
        );
        for (i, panel) in self.panels.iter().enumerate() {
            let at = ((i % columns) as f64 * cell.0 + left, y + (i / columns) as f64 * cell.1 + top);
            let _ = writeln!(svg, "<g transform=\"translate({} {})\">", at.0, at.1);
            panel.draw(&mut svg, self.frame);
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_legend(&self, svg: &mut String, end: f64, y: &mut f64) {
        if self.legend.is_empty() {
            return;
        }
        let left = MARGIN.0;
        let mut x = left;
        *y += LEGEND - 6.0;
        for (name, style) in &self.legend {
            let wide = 34.0 + CHARACTER * name.chars().count() as f64 + 18.0;
            if x > left && x + wide > end {
                x = left;
                *y += LEGEND;
            }
            let _ = writeln!(
                svg,
                "<line x1=\"{x}\" x2=\"{}\" y1=\"{1}\" y2=\"{1}\" class=\"{2}\" stroke-width=\"2.5\"{3}/>\
                 <text x=\"{4}\" y=\"{y}\">{5}</text>",
                x + 28.0,
                *y - 4.0,
                style.class(),
                style.stroke(),
                x + 34.0,
                escape(name)
            );
            x += wide;
        }
        *y += 6.0;
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

/// As text of XML and HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::axis::Scale;
    use super::*;

    #[test]
    fn any_course_can_be_drawn() {
        let courses = [
            vec![],
            vec![(1.0, 2.0)],
            vec![(0.0, 2.0), (2.0, f64::INFINITY), (3.0, 0.0)],
            vec![(1.0, f64::NAN)],
        ];
        for points in courses {
            for scale in [Scale::Linear, Scale::Log, Scale::Auto] {
                let line = Line { band: vec![(1.0, 0.5, 2.0)], ..Line::new(Style::kind(0), points.clone()) };
                let (x, y) = (Axis { label: "x", scale }, Axis { label: "y", scale });
                let panel = Panel { level: Some((2.0, "c")), ..Panel::new("a < b", x, y, vec![line]) };
                let chart = Chart {
                    title: "title".into(),
                    subtitle: "word ".repeat(100),
                    caution: Some("quick".into()),
                    legend: vec![("a & b".into(), Style::step(2).dashed(1))],
                    panels: vec![panel.clone(), panel],
                    columns: 2,
                    frame: (300.0, 200.0),
                };
                let svg = chart.draw();
                assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn long_text_is_broken_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert!(wrap("", 7).is_empty());
    }
}
