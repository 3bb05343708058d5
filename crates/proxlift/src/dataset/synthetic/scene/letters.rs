//! Lettering: strokes of even width with round ends, as a router cuts them into wood.

use super::shape::{Area, to_line};
use crate::image::Image;

/// Letters and their strokes, on a grid 8 units high: pairs of digits are points `x y`; `~` makes a curve that is
/// pulled by its points.
const GLYPHS: &str = "\
    A 083068 1555; B 0008 ~003050543404 ~043464683808; C ~626000086866; D 0008 ~003060683808; \
    E 50000858 0444; F 500008 0444; G ~626000086865 6545; H 0008 6068 0464; I 0008; J ~4045480806; \
    K 0008 5005 2358; L 000858; M 0800356068; N 08006860; O ~300008686030; P 0008 ~003060643404; \
    Q ~300008686030 4679; R 0008 ~003060643404 3468; S ~6160000464680807; T 0060 3038; U ~000508686560; \
    V 003860; W 0028426880; X 0068 6008; Y 003460 3438; Z 00600868; 0 ~200008484020; 1 022028; \
    2 ~0200505308 0858; 3 ~0100505424 ~2454580807; 4 48400565; 5 500004 ~0454580807; 6 ~50000858530306; \
    7 006028; 8 ~300004646030 ~340408686434; 9 ~08585000055502; . 0808; , 0809; - 0434; ' 0002";

/// Between letters, and a space.
const GAP: f32 = 2.2;
const SPACE: f32 = 2.6;
/// Pieces of a curve between two of its points.
const PIECES: usize = 4;

type Point = (f32, f32);

#[derive(Default)]
pub(super) struct Text {
    /// Each with where it is and the pieces of its strokes.
    glyphs: Vec<(Area, Vec<(Point, Point)>)>,
}

impl Text {
    /// Adds a line of capitals `height` high, with its upper edge at `at`: there is its middle, or its left end.
    pub(super) fn line(mut self, text: &str, at: Point, height: f32, centred: bool) -> Self {
        let unit = height / 8.0;
        let strokes =
            |letter| GLYPHS.split("; ").find_map(|glyph| glyph.strip_prefix([letter])).map_or("", str::trim);
        let width = |letter: char| {
            let xs = strokes(letter).split(' ').flat_map(|s| s.trim_start_matches('~').bytes().step_by(2));
            xs.map(|b| f32::from(b - b'0')).fold(0.0, f32::max) + if letter == ' ' { SPACE } else { GAP }
        };
        let whole: f32 = text.chars().map(width).sum::<f32>() - GAP;
        let mut x = at.0 - if centred { 0.5 * whole * unit } else { 0.0 };
        for letter in text.chars() {
            let place = |(u, v): Point| (x + unit * u, at.1 + unit * v);
            let pieces: Vec<_> =
                strokes(letter).split(' ').flat_map(stroke).map(|(a, b)| (place(a), place(b))).collect();
            if !pieces.is_empty() {
                let area = Area::around(pieces.iter().flat_map(|(a, b)| [*a, *b])).grown(1.5 * unit);
                self.glyphs.push((area, pieces));
            }
            x += unit * width(letter);
        }
        self
    }

    /// The distance to the middle of the nearest stroke; large where there is no letter.
    pub(super) fn distance(&self, x: f32, y: f32) -> f32 {
        let near = self.glyphs.iter().filter(|(area, _)| area.holds(x, y));
        near.flat_map(|(_, pieces)| pieces).map(|&(a, b)| to_line(x, y, a, b).0).fold(f32::MAX, f32::min)
    }
}

/// Writes a line of capitals, digits, and `.,-'` into an image: `height` pixels high from its upper left corner `at`, in the
/// grey `value`. Other characters leave a gap.
pub fn caption(image: &mut Image, text: &str, at: (f32, f32), height: f32, value: f32) {
    let text = Text::default().line(text, at, height, false);
    let (_, rows, columns) = image.shape();
    for (i, pixel) in image.data_mut().iter_mut().enumerate() {
        let (x, y) = ((i % columns) as f32 + 0.5, (i / columns % rows) as f32 + 0.5);
        let cover = (0.5 + height / 14.0 - text.distance(x, y)).clamp(0.0, 1.0);
        *pixel += cover * (value - *pixel);
    }
}

fn stroke(code: &str) -> Vec<(Point, Point)> {
    let digits = code.trim_start_matches('~').as_bytes();
    let corners: Vec<Point> =
        digits.chunks_exact(2).map(|d| (f32::from(d[0] - b'0'), f32::from(d[1] - b'0'))).collect();
    let points = if code.starts_with('~') { curve(&corners) } else { corners };
    points.windows(2).map(|w| (w[0], w[1])).collect()
}

/// A quadratic spline: from the first point to the last, touching the lines between the others in their middles.
fn curve(corners: &[Point]) -> Vec<Point> {
    let between = |a: Point, b: Point, t: f32| (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1));
    let last = corners.len() - 1;
    let mut points = vec![corners[0]];
    for i in 1..last {
        let start = if i == 1 { corners[0] } else { between(corners[i - 1], corners[i], 0.5) };
        let end = if i + 1 == last { corners[last] } else { between(corners[i], corners[i + 1], 0.5) };
        for piece in 1..=PIECES {
            let t = piece as f32 / PIECES as f32;
            points.push(between(between(start, corners[i], t), between(corners[i], end, t), t));
        }
    }
    points
}
