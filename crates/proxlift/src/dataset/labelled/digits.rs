//! Digits drawn by hand, as it were: strokes through points that shake, turned, slanted and stretched at random.

use super::Labelled;
use crate::random::{Purpose, below, stream, unit};
use rand::Rng;
use rayon::prelude::*;

/// Rows and columns, as MNIST has them.
const SIDE: usize = 28;

/// The size of a digit, in pixels; the rest is margin.
const BODY: f32 = 20.0;

type Point = (f32, f32);

/// A stroke through these points of the unit square, `y` downwards: round, or with corners.
struct Stroke {
    round: bool,
    points: &'static [Point],
}

const fn round(points: &'static [Point]) -> Stroke {
    Stroke { round: true, points }
}

const fn straight(points: &'static [Point]) -> Stroke {
    Stroke { round: false, points }
}

/// The strokes of every digit, in one way or in two.
const DIGITS: [&[&[Stroke]]; Labelled::CLASSES] = [
    &[&[round(&[(0.5, 0.08), (0.22, 0.3), (0.22, 0.7), (0.5, 0.92), (0.78, 0.7), (0.78, 0.3), (0.5, 0.08)])]],
    &[&[straight(&[(0.52, 0.08), (0.5, 0.92)])], &[straight(&[(0.32, 0.28), (0.55, 0.08), (0.55, 0.92)])]],
    &[&[
        round(&[(0.2, 0.3), (0.35, 0.1), (0.65, 0.1), (0.78, 0.32), (0.6, 0.55), (0.2, 0.9)]),
        straight(&[(0.2, 0.9), (0.82, 0.88)]),
    ]],
    &[&[
        round(&[(0.22, 0.18), (0.45, 0.08), (0.72, 0.2), (0.7, 0.38), (0.42, 0.48)]),
        round(&[(0.42, 0.48), (0.74, 0.56), (0.78, 0.78), (0.5, 0.92), (0.2, 0.8)]),
    ]],
    &[
        &[straight(&[(0.6, 0.08), (0.18, 0.62), (0.86, 0.62)]), straight(&[(0.65, 0.35), (0.65, 0.92)])],
        &[straight(&[(0.25, 0.1), (0.22, 0.52), (0.8, 0.5)]), straight(&[(0.72, 0.12), (0.68, 0.92)])],
    ],
    &[&[
        straight(&[(0.76, 0.1), (0.3, 0.1), (0.27, 0.45)]),
        round(&[(0.27, 0.45), (0.55, 0.4), (0.78, 0.6), (0.65, 0.88), (0.22, 0.86)]),
    ]],
    &[&[round(&[
        (0.68, 0.1),
        (0.4, 0.25),
        (0.24, 0.6),
        (0.38, 0.9),
        (0.68, 0.86),
        (0.74, 0.62),
        (0.5, 0.5),
        (0.27, 0.66),
    ])]],
    &[
        &[straight(&[(0.2, 0.12), (0.8, 0.12), (0.42, 0.92)])],
        &[straight(&[(0.2, 0.12), (0.8, 0.12), (0.42, 0.92)]), straight(&[(0.35, 0.5), (0.75, 0.5)])],
    ],
    &[&[round(&[
        (0.5, 0.48),
        (0.28, 0.28),
        (0.5, 0.08),
        (0.72, 0.28),
        (0.5, 0.48),
        (0.24, 0.7),
        (0.5, 0.92),
        (0.76, 0.7),
        (0.5, 0.48),
    ])]],
    &[&[round(&[
        (0.72, 0.34),
        (0.5, 0.5),
        (0.27, 0.34),
        (0.45, 0.1),
        (0.7, 0.18),
        (0.73, 0.5),
        (0.58, 0.92),
    ])]],
];

impl Labelled {
    /// So many drawn digits of 28 x 28 pixels, all ten in turn; the same for the same seed.
    ///
    /// ```
    /// use proxlift::dataset::Labelled;
    /// let digits = Labelled::drawn(20, 0);
    /// assert_eq!((digits.len(), digits.size(), digits.labels()[13]), (20, (28, 28), 3));
    /// ```
    pub fn drawn(count: usize, seed: u64) -> Self {
        let count = count.max(1);
        let mut pixels = vec![0.0; count * SIDE * SIDE];
        pixels.par_chunks_exact_mut(SIDE * SIDE).enumerate().for_each(|(i, picture)| {
            draw(&mut stream(seed, Purpose::Digits, 0, i as u64), i % Self::CLASSES, picture);
        });
        let labels = (0..count).map(|i| i % Self::CLASSES).collect();
        Self { height: SIDE, width: SIDE, pixels, labels }
    }
}

fn draw(rng: &mut impl Rng, digit: usize, picture: &mut [f32]) {
    let mut range = |low: f32, high: f32| low + (high - low) * unit(rng);
    let (turn, slant) = (range(-0.22, 0.22), range(-0.35, 0.35));
    let (wide, high) = (BODY * range(0.6, 1.05), BODY * range(0.8, 1.1));
    let (right, down) = (range(-2.0, 2.0), range(-2.0, 2.0));
    let (thick, ink) = (range(0.9, 2.1), range(0.75, 1.0));
    let middle = 0.5 * (SIDE - 1) as f32;
    let ways = DIGITS[digit];
    let strokes = ways[below(rng, ways.len())];
    let mut lines: Vec<(Point, Point)> = Vec::new();
    for stroke in strokes {
        let mut shaken = |&(x, y): &Point| {
            let (x, y) = (x + 0.07 * (unit(rng) - 0.5), y + 0.07 * (unit(rng) - 0.5));
            let (x, y) = (wide * (x - 0.5) - slant * high * (y - 0.5), high * (y - 0.5));
            (middle + right + x - turn * y, middle + down + y + turn * x)
        };
        let points: Vec<Point> = stroke.points.iter().map(&mut shaken).collect();
        let course = if stroke.round { rounded(&points) } else { points };
        lines.extend(course.windows(2).map(|pair| (pair[0], pair[1])));
    }
    for (i, pixel) in picture.iter_mut().enumerate() {
        let at = ((i % SIDE) as f32, (i / SIDE) as f32);
        let near = lines.iter().map(|line| distance(at, *line)).fold(f32::INFINITY, f32::min);
        *pixel = ink * (thick + 0.5 - near).clamp(0.0, 1.0);
    }
}

/// A curve through the points (Catmull and Rom), as short lines.
fn rounded(points: &[Point]) -> Vec<Point> {
    let at = |i: isize| points[i.clamp(0, points.len() as isize - 1) as usize];
    let piece = |i: usize| {
        let [a, b, c, d] = [-1, 0, 1, 2].map(|step| at(i as isize + step));
        (0..6).map(move |n| {
            let t = n as f32 / 6.0;
            let blend = |a: f32, b: f32, c: f32, d: f32| {
                b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)))
            };
            (blend(a.0, b.0, c.0, d.0), blend(a.1, b.1, c.1, d.1))
        })
    };
    (0..points.len() - 1).flat_map(piece).chain(points.last().copied()).collect()
}

fn distance((x, y): Point, (from, to): (Point, Point)) -> f32 {
    let along = (to.0 - from.0, to.1 - from.1);
    let square = along.0 * along.0 + along.1 * along.1;
    let t = ((x - from.0) * along.0 + (y - from.1) * along.1) / square.max(1e-12);
    let t = t.clamp(0.0, 1.0);
    let (dx, dy) = (x - from.0 - t * along.0, y - from.1 - t * along.1);
    (dx * dx + dy * dy).sqrt()
}
